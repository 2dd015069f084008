"""What changed in the fleet lately, with the cause; the same change of many nodes is one line."""

from collections.abc import Iterable
from dataclasses import dataclass

from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.quarantine_events import Asked
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.gist import gist
from muster_coordinator.views.quarantine_text import what_was_asked

STORY_KINDS = ("health", "service", "lost", "back", "joined", "left", "convicted", "forgotten", "drift")
"""The kinds of story entries that change what an operator sees. Others, such as tests, are steps on the way."""

_RETEST = "; retest after "
"""Begins what a cordon adds: for each node another time. The page of the node has it."""

MOST_CHANGES = 25
MOST_NODES = 5


@dataclass(frozen=True, slots=True)
class RecentChange:
    """The same change of some nodes: the time of the last one, its kind, its text, and who asked for it."""

    at: float
    kind: str
    text: str
    nodes: Bounded[str]
    by: str | None = None


def recent_changes(
    story: Iterable[StoryEntry], asked: Iterable[Asked], *, is_cut: bool = False
) -> Bounded[RecentChange]:
    """The changes, the latest first."""
    latest: dict[tuple[str, str], float] = {}
    nodes: dict[tuple[str, str], dict[str, None]] = {}
    for entry in story:
        key = entry.kind, gist(entry.text.partition(_RETEST)[0])
        latest[key] = max(entry.at, latest.get(key, entry.at))
        nodes.setdefault(key, {})[entry.node] = None
    changes = [RecentChange(at, *key, bounded(nodes[key], MOST_NODES)) for key, at in latest.items()]
    changes += map(_of_request, asked)
    return bounded(sorted(changes, key=lambda change: -change.at), MOST_CHANGES, is_least=is_cut)


def _of_request(asked: Asked) -> RecentChange:
    nodes = () if asked.node is None else (asked.node,)
    text = f"{what_was_asked(asked)}: {asked.request.reason}"
    return RecentChange(asked.at, "request", text, bounded(nodes, MOST_NODES), asked.request.by)
