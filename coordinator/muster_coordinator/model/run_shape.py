"""What is equal in runs that differ only in numbers, and the numbers in which they differ.

The idea: a run is cut into an outline and its numbers. The outline has everything but id, sequence number, times and
numbers: verdict, findings, parameters, the names and lengths of the metrics, and the facts with a gap for each number.
Two runs with the same outline are alike. From one of them, in full, and the numbers of the other, the other can be
made again, number by number as it was measured.

Example: `{"disk_free": 0.5}` with the facts `{"mounts": [{"path": "/", "free": 0.5}]}`, and the same with 0.4 twice,
are alike. With the path `/data` they are not.

Most runs of a check have the same facts to the letter. Their facts need not be cut, which takes most of the time.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from pydantic_core import from_json, to_json

from muster.model import Run

_NUMBER = re.compile(r"([:,\[])(-?\d[\d.eE+-]*)(?=[,\]}])")
"""A number in compact JSON. In a text it may find one, too, which does no harm: it is put back where it was."""

DIGEST_BYTES = 12
"""Two of a million outlines are then alike by chance once in a thousand billion fleets."""

SAME = ""
"""In place of the numbers in the facts if these are the same to the letter."""


@dataclass(frozen=True, slots=True)
class RunShape:
    """Digests of a run: of its outline without the facts, of its facts to the letter, and of these without numbers."""

    outline: bytes
    facts: bytes
    gaps: bytes


Layout = tuple[tuple[str, int | None], ...]
"""The names of metrics, and the length of each that is a list."""


def shape_of(run: Run) -> RunShape:
    """The shape of a run."""
    facts = to_json(run.facts)
    parts = (run.check, run.verdict, run.simulated, run.findings, run.params, layout_of(run), _numbered_devices(run))
    return RunShape(_digest(to_json(parts)), _digest(facts), _digest(_gaps(facts.decode())))


def layout_of(run: Run) -> Layout:
    """The names and lengths of the metrics of a run."""
    return tuple((name, len(value) if isinstance(value, list) else None) for name, value in run.metrics.items())


def facts_beside(run: Run, shape: RunShape, base: RunShape) -> str | None:
    """The numbers in the facts of a run of this shape, SAME if its facts are those of `base`.

    None if they differ in more.
    """
    if shape.facts == base.facts:
        return SAME
    return ",".join(_found(to_json(run.facts).decode())) if shape.gaps == base.gaps else None


def metric_numbers(metrics: Mapping[str, Any]) -> str:
    """The numbers in metrics, with a comma after each but the last; `null` for None."""
    return to_json(list(metrics.values()))[1:-1].decode().replace("[", "").replace("]", "")


def numbers_in(base: Mapping[str, Any]) -> list[str]:
    """All numbers of a run that is read from its JSON: those in its metrics, then those in its facts."""
    return [*split(metric_numbers(base["metrics"])), *_found(to_json(base["facts"]).decode())]


def split(numbers: str) -> list[str]:
    """The single numbers."""
    return numbers.split(",") if numbers else []


def metrics_of(base: Mapping[str, Any], numbers: Sequence[str]) -> dict[str, Any]:
    """The metrics of `base` with these numbers."""
    metrics: dict[str, Any] = {}
    at = 0
    for name, value in base["metrics"].items():
        if isinstance(value, list):
            metrics[name] = [_number(text) for text in numbers[at : at + len(value)]]
            at += max(1, len(value))  # an empty list leaves an empty text
        else:
            metrics[name] = _number(numbers[at])
            at += 1
    return metrics


def facts_of(base: Mapping[str, Any], numbers: Sequence[str]) -> dict[str, Any]:
    """The facts of `base` with these numbers."""
    following = iter(numbers)
    filled = _NUMBER.sub(lambda found: found[1] + next(following), to_json(base["facts"]).decode())
    facts: dict[str, Any] = from_json(filled)
    return facts


def _numbered_devices(run: Run) -> list[int] | None:
    """The devices that the numbers are of, if the facts name them: these are names, not numbers."""
    named = run.facts.get("devices")
    return [index for index in named if isinstance(index, int)] if isinstance(named, list) else None


def _number(text: str) -> float | None:
    return None if text == "null" else float(text)


def _gaps(text: str) -> bytes:
    return _NUMBER.sub(_gap, text).encode()


def _gap(found: re.Match[str]) -> str:
    """A gap that tells whole numbers from others: the type of a fact is not a number."""
    return f"{found[1]}{'i' if found[2].lstrip('-').isdecimal() else 'f'}"


def _found(text: str) -> list[str]:
    return [number for _, number in _NUMBER.findall(text)]


def _digest(text: bytes) -> bytes:
    return blake2b(text, digest_size=DIGEST_BYTES).digest()
