"""The page `/sweeps`: running sweeps, then those that have ended, the latest first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.model import Verdict
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.pages.bounded import Bounded, bounded
from muster_coordinator.views.pages.sweep_culprits import SweepCulprit, sweep_culprits

PAGE_SIZE = 25
"""A sweep of 10,000 nodes takes 2 ms to read."""

MOST_RUNNING = 50
MOST_CULPRITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLine:
    """A sweep: what it does, how far it is, and what it has found."""

    id: str
    state: str
    verdict: Verdict | None
    check: str
    strategy: str
    origin: str
    nodes: int
    absent: int
    rounds: int
    cleared: int
    suspects: int
    inconclusive: int
    culprits: Bounded[SweepCulprit]
    spent_node_s: float
    created_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTable:
    """One page of the sweeps. `running` are on the first page only; `next_cursor` asks for the page after this one."""

    at: float
    running: Bounded[SweepLine]
    ended: tuple[SweepLine, ...]
    is_first: bool
    next_cursor: str | None

    @property
    def why_empty(self) -> str:
        """Why no ended sweep is listed; empty if some are."""
        if self.ended:
            return ""
        return "No sweep has ended yet." if self.is_first else "There are no earlier sweeps."


def sweep_table(
    running: Iterable[SweepRecord],
    latest: Sequence[SweepRecord],
    *,
    at: float,
    is_first: bool = True,
    next_cursor: str | None = None,
) -> SweepTable:
    """The page of these sweeps. One of the `latest` without an end runs, even if it is not among the `running`.

    That one has ended, and its end is being stored: otherwise it would be on no list until then.
    """
    listed = {sweep.id: sweep for sweep in latest if is_first and sweep.ended_at is None}
    listed |= {sweep.id: sweep for sweep in running}
    begun = sorted(listed.values(), key=lambda sweep: -sweep.created_at)
    return SweepTable(
        at=at,
        running=bounded(map(_line, begun), MOST_RUNNING),
        ended=tuple(_line(sweep) for sweep in latest if sweep.ended_at is not None),
        is_first=is_first,
        next_cursor=next_cursor,
    )


def _line(sweep: SweepRecord) -> SweepLine:
    return SweepLine(
        id=sweep.id,
        state=sweep.state,
        verdict=sweep.verdict,
        check=sweep.check,
        strategy=sweep.strategy,
        origin=sweep.requester,
        nodes=len(sweep.nodes),
        absent=len(sweep.absent),
        rounds=len(sweep.rounds),
        cleared=len(sweep.cleared_nodes),
        suspects=len(sweep.suspects),
        inconclusive=len(sweep.inconclusive),
        culprits=bounded(sweep_culprits(sweep), MOST_CULPRITS),
        spent_node_s=sweep.spent_node_s,
        created_at=sweep.created_at,
        ended_at=sweep.ended_at,
    )
