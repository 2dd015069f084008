"""What every strategy that runs groups does about the nodes and paths that its own groups have left open.

It is the same for all of them: a strategy decides how a sweep begins, and the judgement what is still missing. See
`adaptive` for the order in which it is asked for.
"""

from collections.abc import Set

from muster_coordinator.localize.comparing import to_compare
from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.next_round import NextRound
from muster_coordinator.localize.probe import Probe, in_rank_order

SETTLING_ROUNDS = 7
"""Persistent faults need at most four; the others are for what comes and goes, and for partners that are few."""


def settling(judgement: Judgement, absent: Set[str], *, seed: str, passes: int) -> list[Probe]:
    """The disjoint groups that would tell most; none when nothing more can be learned.

    Every node meets others in at least so many `passes`; `seed` draws the lots of who is whose partner.
    """
    if needed := to_compare(judgement.evidence, absent):
        return needed
    following = NextRound(judgement, frozenset(absent), passes, seed)
    following.plan()
    return in_rank_order(following.probes, judgement.evidence.sites)
