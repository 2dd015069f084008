"""Runs that travel as the numbers in which they differ from an earlier run, their base.

The idea: most runs of a check differ from the run before only in numbers. The outline of a run is everything but its
number, id, times, metric values and the numbers in its facts; the names and lengths of metrics belong to it. If a run
has the outline of one that the coordinator has stored, only its numbers are sent.

Example: run 7 has the metrics `{"free": 0.5, "celsius": [40, 41]}` and the facts `{"mounts": [{"path": "/", "free":
0.5}]}`. Run 9 with 0.4, 42 and 43 travels as `{"seq": 9, "like": 7, "metrics": [0.4, 42, 43], "facts": [0.4], …}`.
Without `facts`, these are the same as those of run 7. With the path `/data`, run 9 travels whole.

A run takes time in proportion to its size, about 50 µs for that of eight GPUs.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from pydantic_core import from_json, to_json

from muster.model import parse_instant
from muster.wire.scheduled_runs import is_uneventful

MOST_BASES = 4
"""How many runs of a check others may be like: the last ones that travelled whole. Some metrics are there only under
load, such as clocks."""

MOST_BYTES = 12 << 10
"""Larger runs travel whole, so that a small message cannot stand for much. That of eight GPUs has 3 KiB."""

_OWN = ("seq", "id", "started_at", "duration_s")

_MICROSECONDS = 6
"""Decimals of a duration. All others would be noise."""

_EXACT = 1 << 53
"""Below it, a whole number and its float have the same digits."""

Number = int | float


class Outline(NamedTuple):
    """A digest of what a run has in common with others, and the numbers in its facts."""

    digest: bytes
    facts: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class RepeatableRun:
    """A run that may be a repeat or a base: what it has in common with others, and its own numbers."""

    check: str
    outline: Outline
    started_at: float
    duration_s: float
    metrics: list[float | None]


def repeatable_run(body: str) -> RepeatableRun | None:
    """The run in JSON if it may be a repeat or a base: uneventful, and not too large."""
    if len(body) > MOST_BYTES:
        return None
    run = from_json(body)
    if not is_uneventful(run["cause"], run["group"], run["verdict"], run["facts"]):
        return None
    return RepeatableRun(
        check=run["check"],
        outline=_outline_of(run),
        started_at=parse_instant(run["started_at"]),
        duration_s=run["duration_s"],
        metrics=[_short(value) for value in flat(run["metrics"].values())],
    )


def _outline_of(run: Mapping[str, Any]) -> Outline:
    numbers: list[Number] = []

    def gap(number: Number) -> Number:
        numbers.append(number)
        return 0 if isinstance(number, int) else 0.5

    facts = _with_each_number(run["facts"], gap)
    lengths = {name: len(value) if isinstance(value, list) else None for name, value in run["metrics"].items()}
    rest = {name: value for name, value in run.items() if name not in _OWN}
    digest = blake2b(to_json({**rest, "metrics": lengths, "facts": facts}), digest_size=16).digest()
    return Outline(digest, tuple(numbers))


def repeat_of(run: RepeatableRun, seq: int, like: int, sent_at: float) -> dict[str, Any]:
    """The run as a `Repeat` of number `like` in a report of that time, as JSON, without numbers in facts."""
    return {
        "seq": seq,
        "like": like,
        "age_ms": milliseconds(sent_at) - milliseconds(run.started_at),
        "duration_s": round(run.duration_s, _MICROSECONDS),
        "metrics": run.metrics,
    }


def started_at(sent_at: float, age_ms: int) -> float:
    """When a repeat began that was so old when its report was sent. The same milliseconds as of the run itself."""
    return (milliseconds(sent_at) - age_ms) / 1000


def milliseconds(instant: float) -> int:
    """An instant as messages have it."""
    return round(instant * 1000)


def flat(values: Iterable[Any]) -> list[float | None]:
    """The values of metrics one after the other."""
    numbers: list[float | None] = []
    for value in values:
        if isinstance(value, list):
            numbers += value
        else:
            numbers.append(value)
    return numbers


def with_numbers(facts: Any, numbers: Iterable[Number]) -> Any:
    """The facts with these numbers in place of their own. ValueError if there are too many, too few or others."""
    following = iter(numbers)

    def fill(number: Number) -> Number:
        given = next(following, None)
        if given is None or isinstance(given, int) is not isinstance(number, int):
            raise ValueError("has not the numbers of the run that it is like")
        return given

    filled = _with_each_number(facts, fill)
    if next(following, None) is not None:
        raise ValueError("has more numbers than the run that it is like")
    return filled


def _with_each_number(value: Any, change: Callable[[Number], Number]) -> Any:
    if isinstance(value, dict):
        return {name: _with_each_number(each, change) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_each_number(each, change) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return change(value)
    return value


def _short(value: float | None) -> float | None:
    """The number without `.0` if it is whole; metrics are floats anyway. A negative zero keeps its sign."""
    if value is None or not value.is_integer() or abs(value) >= _EXACT or (value == 0 and math.copysign(1, value) < 0):
        return value
    return int(value)
