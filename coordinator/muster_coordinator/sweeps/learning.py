"""What a round has changed about the judgement, in words."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from muster_coordinator.localize.ruling import Ruling

MOST_NAMES = 8
"""More names than these in a line are only counted."""

Failed = TypeVar("Failed")


def learned(before: Ruling, after: Ruling) -> tuple[str, ...]:
    """A line for each kind of change; none when nothing has changed."""
    return tuple(_lines(before, after))


def _lines(before: Ruling, after: Ruling) -> Iterator[str]:
    yield from _line("cleared", sorted(after.cleared - before.cleared))
    yield from _line("no longer cleared", sorted(before.cleared - after.cleared))
    yield from _line("suspected", _new(before.suspects, after.suspects, str))
    yield from _line("convicted", _new(before.failed_nodes, after.failed_nodes, lambda it: it.node))
    yield from _line("convicted link", _new(before.failed_links, after.failed_links, lambda it: " - ".join(it.between)))
    yield from _line(
        "convicted fabric", _new(before.failed_fabric, after.failed_fabric, lambda it: " - ".join(it.leaves))
    )
    yield from _line("no longer convicted", _new(after.failed_nodes, before.failed_nodes, lambda it: it.node))


def _new(before: Iterable[Failed], after: Iterable[Failed], name: Callable[[Failed], str]) -> list[str]:
    known = set(map(name, before))
    return [found for found in map(name, after) if found not in known]


def _line(what: str, names: list[str]) -> Iterator[str]:
    if len(names) > MOST_NAMES:
        yield f"{what}: {len(names)}, among them {', '.join(names[:MOST_NAMES])}"
    elif names:
        yield f"{what}: {', '.join(names)}"
