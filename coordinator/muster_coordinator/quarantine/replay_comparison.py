"""The decisions of a replay beside those that were made at the time."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from muster.model import Data, Instant, Name
from muster_coordinator.quarantine.replay import ReplayedDecision, ReplayedKind

SAME_S = 3600.0
"""A real drain and a decision of the replay about the same node are the same if they are at most so far apart.

Their times always differ: at the time a report could be late, and draining could wait for a second opinion.
"""

_ABOUT_DRAINING = frozenset({ReplayedKind.DRAINED, ReplayedKind.WAITS, ReplayedKind.ON_HOLD})


class DrainThen(Data):
    """A drain as it was decided at the time; `dry_run` means that no actor carried it out."""

    at: Instant
    node: Name
    reason: str
    codes: tuple[str, ...] = ()
    dry_run: bool = False


class Compared(Data):
    """A decision of the replay, a real drain, or both if they are the same."""

    at: Instant
    node: Name | None
    replayed: ReplayedDecision | None = None
    then: DrainThen | None = None

    @property
    def differs(self) -> bool:
        """Whether only one of both drained the node. Returns and mass events have no counterpart."""
        if self.replayed is None:
            return True
        if self.replayed.kind not in _ABOUT_DRAINING:
            return False
        return (self.replayed.kind is ReplayedKind.DRAINED) is not (self.then is not None)


def compared(decisions: Iterable[ReplayedDecision], drains: Iterable[DrainThen]) -> tuple[Compared, ...]:
    """Both in one list by time. Each real drain goes with the nearest decision about its node that has none yet.

    Real drains are matched with replayed drains first: a node that waited and was then drained is listed once.
    """
    by_node: defaultdict[Name, list[DrainThen]] = defaultdict(list)
    for drain in drains:
        by_node[drain.node].append(drain)
    decided = list(decisions)
    then: dict[int, DrainThen] = {}
    for kinds in (frozenset({ReplayedKind.DRAINED}), _ABOUT_DRAINING):
        for number, decision in enumerate(decided):
            if decision.node is None or decision.kind not in kinds or number in then:
                continue
            if (drain_then := _nearest(by_node[decision.node], decision.at)) is not None:
                by_node[decision.node].remove(drain_then)
                then[number] = drain_then
    rows = [Compared(at=one.at, node=one.node, replayed=one, then=then.get(n)) for n, one in enumerate(decided)]
    rows += [Compared(at=drain.at, node=drain.node, then=drain) for left in by_node.values() for drain in left]
    return tuple(sorted(rows, key=lambda row: (row.at, row.node or "")))


def _nearest(drains: Sequence[DrainThen], at: float) -> DrainThen | None:
    near = (drain for drain in drains if abs(drain.at - at) <= SAME_S)
    return min(near, key=lambda drain: abs(drain.at - at), default=None)
