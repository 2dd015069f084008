"""What is expected of a measurement, as data with a source for every row.

Shipped rows are in `references.toml` beside this file. A row applies to one metric of one check, under the conditions
in `when`, which are compared with the facts of the measurement. Of several rows that apply to a metric, the one with
the most conditions wins, and of equals the last, so that an operator's rows come after the shipped ones.
"""

import math
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources

from pydantic import Field, JsonValue, TypeAdapter

from muster.model import Action, Data, Finding, Severity


class Reference(Data):
    """One row: the bounds of one metric. `unit` is for people, `source` says where the figures come from."""

    check: str
    metric: str
    when: dict[str, JsonValue] = {}
    fail_below: float | None = None
    warn_below: float | None = None
    warn_above: float | None = None
    fail_above: float | None = None
    unit: str = ""
    source: str = Field(min_length=1)


_ROWS = TypeAdapter(tuple[Reference, ...])


def shipped() -> tuple[Reference, ...]:
    """The references that come with muster."""
    text = resources.files("muster").joinpath("references.toml").read_text(encoding="utf-8")
    return _ROWS.validate_python(tomllib.loads(text)["reference"])


def applicable(rows: Iterable[Reference], check: str, facts: Mapping[str, JsonValue]) -> dict[str, Reference]:
    """By metric name, the row that applies to a measurement of `check` with these facts."""
    chosen: dict[str, Reference] = {}
    for row in rows:
        if row.check != check or any(facts.get(key) != value for key, value in row.when.items()):
            continue
        current = chosen.get(row.metric)
        if current is None or len(row.when) >= len(current.when):
            chosen[row.metric] = row
    return chosen


def judge_value(
    value: float | None,
    reference: Reference | None,
    *,
    code: str,
    device: int | None = None,
    action: Action = Action.NONE,
) -> list[Finding]:
    """At most one finding: `value` against its bounds. Without a reference or a value nothing is judged."""
    if reference is None or value is None or not math.isfinite(value):
        return []
    for bound, severity, sign, word in (
        (reference.fail_below, Severity.ERROR, 1, "below"),
        (reference.fail_above, Severity.ERROR, -1, "above"),
        (reference.warn_below, Severity.WARNING, 1, "below"),
        (reference.warn_above, Severity.WARNING, -1, "above"),
    ):
        if bound is None or (value - bound) * sign >= 0:
            continue
        return [
            Finding(
                code=code,
                summary=f"{reference.metric} {value:.4g} {reference.unit} is {word} {bound:.4g}".replace("  ", " "),
                severity=severity,
                device=device,
                action=action,
                evidence={"value": value, "bound": bound, "source": reference.source},
            )
        ]
    return []
