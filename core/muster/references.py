"""References: the expected values of measurements, as rows with a source each.

Shipped rows are in `references.toml` beside this file; operators write rows of the same form. A row applies to one
metric of one check if the facts of the measurement meet all conditions in `when` (see `conditions`).

If several rows apply to a metric, an operator's row wins over a shipped one, regardless of their conditions. Within one
origin, the row with the most conditions wins, then the last one.

Example: the shipped row for `tflops_bf16` of `gemm` on an H100 has two conditions and `fail_below = 556`. An operator's
row without conditions and with `fail_below = 500` replaces it, on every GPU model. A second operator's row with the
condition `gpu_model = "NVIDIA H100 80GB HBM3"` has more conditions, so it wins on H100s.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Self

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from muster.conditions import Condition, in_words, is_met
from muster.errors import unknown
from muster.model import Action, Data, Finding, Name, Severity
from muster.toml import shipped_table

BOUNDS = ("fail_below", "warn_below", "warn_above", "fail_above")
"""The bounds that a row can have, from the lowest to the highest."""

MACHINE_TYPE = "machine_type"
"""The fact that says the machine type of the node."""

Bound = Annotated[float | None, Field(allow_inf_nan=False, strict=True)]


class Origin(StrEnum):
    """The origin of a row."""

    SHIPPED = "shipped"
    OPERATOR = "operator"


_PRECEDENCE = (Origin.SHIPPED, Origin.OPERATOR)
"""The origins; each wins over those before it."""


class ReferenceRow(Data, extra="forbid"):
    """One row as it is written: the bounds of one metric under the conditions in `when`.

    `unit` is for people, `source` says where the numbers come from.
    """

    check: Name
    metric: str = Field(min_length=1)
    when: dict[str, Condition] = {}
    fail_below: Bound = None
    warn_below: Bound = None
    warn_above: Bound = None
    fail_above: Bound = None
    unit: str = ""
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _has_bounds_that_rise(self) -> Self:
        bounds = self.bounds
        if not bounds:
            raise ValueError(f"give at least one of {', '.join(BOUNDS)}")
        if sorted(bounds.values()) != [*bounds.values()]:
            given = ", ".join(map(str, bounds.values()))
            raise ValueError(f"{', '.join(bounds)} must not fall in this order, as {given} do")
        return self

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds of this row by name, from the lowest to the highest."""
        return {name: bound for name in BOUNDS if (bound := getattr(self, name)) is not None}

    @property
    def key(self) -> str:
        """The key of a row: check, metric and conditions."""
        return key_of(self.check, self.metric, self.when)


class Reference(ReferenceRow, extra="ignore"):
    """One row with its origin, by default the operator's. `set_by`: which operator, if they had logged in."""

    origin: Origin = Origin.OPERATOR
    set_by: str | None = None


def key_of(check: str, metric: str, when: Mapping[str, JsonValue]) -> str:
    """The key of the row with these conditions: the same text for the same conditions in any order."""
    return json.dumps([check, metric, when], sort_keys=True)


_ROWS = TypeAdapter(tuple[Reference, ...])


@cache
def shipped() -> tuple[Reference, ...]:
    """The references that come with muster."""
    rows = shipped_table("muster", "references.toml")["reference"]
    return _ROWS.validate_python([{**row, "origin": Origin.SHIPPED} for row in rows])


def pointless(row: ReferenceRow, judged: Mapping[str, Collection[str]]) -> str | None:
    """Why `row` can never apply to a measurement; None if it can.

    `judged` has the judged metrics of each check. A check that lists none may still judge any.
    """
    if row.check not in judged:
        return unknown("check", row.check, judged)
    metrics = {*judged[row.check], *(each.metric for each in shipped() if each.check == row.check)}
    if judged[row.check] and row.metric not in metrics:
        return unknown(f"metric of {row.check} that is judged", row.metric, metrics)
    return None


def applicable(rows: Iterable[Reference], check: str, facts: Mapping[str, JsonValue]) -> dict[str, Reference]:
    """The row that applies to each metric of a measurement of `check` with these facts."""
    chosen: dict[str, Reference] = {}
    for row in rows:
        if row.check != check or not _applies(row, facts):
            continue
        current = chosen.get(row.metric)
        if current is None or _weight(row) >= _weight(current):
            chosen[row.metric] = row
    return chosen


def waiting(rows: Iterable[Reference], check: str, facts: Mapping[str, JsonValue]) -> list[Reference]:
    """The rows for certain machine types that might apply to this measurement, if its facts said the machine type.

    Rows that would not win over the one that applies now are left out.
    """
    if facts.get(MACHINE_TYPE) is not None:
        return []
    rows = [row for row in rows if row.check == check]
    chosen = applicable(rows, check, facts)
    return [
        row
        for row in rows
        if MACHINE_TYPE in row.when
        and all(is_met(condition, facts.get(name)) for name, condition in row.when.items() if name != MACHINE_TYPE)
        and (row.metric not in chosen or _weight(row) >= _weight(chosen[row.metric]))
    ]


class Considered(Data):
    """A row for a metric: whether it applies, and why or why not."""

    reference: Reference
    applies: bool
    reason: str


def explain(rows: Iterable[Reference], check: str, facts: Mapping[str, JsonValue]) -> dict[str, tuple[Considered, ...]]:
    """All rows for each metric; the row that applies, if any, is first."""
    rows = [row for row in rows if row.check == check]
    chosen = applicable(rows, check, facts)
    considered: dict[str, list[Considered]] = {}
    for row in rows:
        best = chosen.get(row.metric)
        item = Considered(reference=row, applies=row is best, reason=_reason(row, best, facts))
        others = considered.setdefault(row.metric, [])
        others.insert(0 if item.applies else len(others), item)
    return {metric: tuple(items) for metric, items in considered.items()}


def _reason(row: Reference, best: Reference | None, facts: Mapping[str, JsonValue]) -> str:
    """Why a row applies, or why it does not and `best` does."""
    if (unmet := _unmet(row, facts)) or best is None:
        return "; ".join(unmet)
    if row is best:
        return "all its conditions are met" if row.when else "applies everywhere"
    if row.origin is not best.origin:
        return f"the {best.origin}'s reference overrides the {row.origin} one"
    if len(row.when) < len(best.when):
        return f"has fewer conditions than the one that applies ({len(row.when)} against {len(best.when)})"
    return "as specific as the one that applies, which comes after it"


def _applies(row: Reference, facts: Mapping[str, JsonValue]) -> bool:
    return all(is_met(condition, facts.get(name)) for name, condition in row.when.items())


def _unmet(row: Reference, facts: Mapping[str, JsonValue]) -> list[str]:
    """The conditions of a row that the facts do not meet, each with the actual fact."""
    return [
        f"{name} must be {in_words(condition)}, is {json.dumps(facts[name]) if name in facts else 'not known'}"
        for name, condition in row.when.items()
        if not is_met(condition, facts.get(name))
    ]


def _weight(row: Reference) -> tuple[int, int]:
    """The weight of a row; of several that apply, the highest wins."""
    return _PRECEDENCE.index(row.origin), len(row.when)


def judge_value(
    value: float | None,
    reference: Reference | None,
    *,
    code: str,
    device: int | None = None,
    action: Action = Action.NONE,
) -> list[Finding]:
    """Judges `value` against its bounds: at most one finding, and none without a reference or a value."""
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
