"""The page `/events`: what happened in the fleet, the entries of all stories, the latest first."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.views.pages.bounded import Bounded, bounded

PAGE_SIZE = 200
"""Entries that are read for a page; equal ones of several nodes are one line."""

MOST_NODES = 10

KINDS = {
    "Health and findings": ("health", "found", "no_longer", "out_of_line", "misconduct", "clock", "second_opinion"),
    "Service state": ("service", "policy", "held", "released", "test", "action", "alarm", "scheduler", "drift"),
    "Presence": ("joined", "lost", "back", "left", "forgotten", "erased", "place", "plugin_failed"),
    "Sweeps and runs": ("run_requested", "sweep_begun", "cleared", "convicted", "inconclusive", "link_failed"),
}
"""The kinds of entries by subject; a test compares them with those that the coordinator writes."""


@dataclass(frozen=True, slots=True)
class EventLine:
    """What happened to some nodes one after the other: the time of the last entry, and the sweep or run behind it."""

    at: float
    kind: str
    text: str
    nodes: Bounded[str]
    sweep: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventList:
    """One page of the events that fit `node` and `kind`; None stands for all. Nothing is listed if it is `refused`."""

    at: float
    node: str | None
    kind: str | None
    lines: tuple[EventLine, ...]
    is_first: bool
    next_cursor: str | None
    refused: str = ""

    @property
    def why_empty(self) -> str:
        """Why the page has no lines; empty if it has some, or if the filter is refused."""
        if self.lines or self.refused:
            return ""
        if not self.is_first or self.next_cursor:
            return "No event on this page fits."
        if self.node or self.kind:
            return "No stored event fits this filter."
        return "Nothing has happened yet. Start `muster agent` on each node."


def event_list(
    entries: Iterable[StoryEntry],
    *,
    at: float,
    node: str | None = None,
    kind: str | None = None,
    is_first: bool = True,
    next_cursor: str | None = None,
    refused: str = "",
) -> EventList:
    """The page of these entries, the latest first."""
    lines = tuple(map(_line, _runs(entries)))
    return EventList(
        at=at, node=node, kind=kind, lines=lines, is_first=is_first, next_cursor=next_cursor, refused=refused
    )


def _runs(entries: Iterable[StoryEntry]) -> list[list[StoryEntry]]:
    """The entries, those together that follow each other and say the same of different nodes.

    Example: a sweep of 1,000 nodes writes that it has begun into the story of each.
    """
    runs: list[list[StoryEntry]] = []
    nodes: set[str] = set()
    for entry in entries:
        same = runs and (runs[-1][0].kind, runs[-1][0].text) == (entry.kind, entry.text)
        if not same or entry.node in nodes:
            runs.append([])
            nodes = set()
        runs[-1].append(entry)
        nodes.add(entry.node)
    return runs


_OF_SWEEPS = frozenset({"sweep_begun", "cleared", "convicted", "inconclusive", "link_failed"})


def _line(entries: list[StoryEntry]) -> EventLine:
    first = entries[0]
    sweep = first.cause if first.kind in _OF_SWEEPS else None
    return EventLine(first.at, first.kind, first.text, bounded((entry.node for entry in entries), MOST_NODES), sweep)
