"""The rounds that follow the first groups of any strategy, until no node or path is inconclusive.

The idea: a strategy decides how a sweep begins. The work that remains after that does not depend on the strategy, so
all strategies that run groups share this follow-up. `next_round` chooses the groups.

Example: 16 nodes ran in pairs, and a-b was slow. The follow-up pairs a with c and b with d, which have passed. b-d
passes, a-c is slow. Next, a runs alone beside two controls, then with further partners, until it is convicted.
"""

from collections.abc import Set
from itertools import combinations

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.planning.next_round import NextRound
from muster_coordinator.localize.planning.probes import in_rank_order, still_to_run
from muster_coordinator.model.probes import Probe

FOLLOW_UP_ROUNDS = 10
"""Most permanent faults need four; the others are for intermittent faults, for fleets with few partners, and where much
is disturbed at once. Chosen by simulation: of 432 faults under six hard conditions, 5 more are found than with 7, and
sweeps take 1.82 runs for each node instead of 1.81."""

TOO_FEW_TO_COMPARE = 3
"""With three nodes, two runs may both have the slow one, and there is no other run to compare them with."""

EVERY_TWO = "of three nodes each pair must run, or there is nothing to compare"
WITHOUT = "all runs so far had {}; only a run without shows what is normal"


def follow_up(diagnosis: Diagnosis, absent: Set[str], *, seed: str, passes: int) -> list[Probe]:
    """The disjoint groups that would tell most; none if nothing more can be learned.

    Every node runs with others in at least `passes` runs. `seed` draws the partners.
    """
    if needed := comparisons(diagnosis.evidence, absent) or _without_uncompared(diagnosis, absent):
        return needed
    following = NextRound(diagnosis, frozenset(absent), passes, seed)
    following.plan()
    return in_rank_order(following.probes, diagnosis.evidence.sites)


def comparisons(evidence: GroupEvidence, absent: Set[str]) -> list[Probe]:
    """The groups that must run before any run can be compared with another; empty in nearly all sweeps.

    A run is slow only in comparison. A part that is in all runs determines the typical value, however slow it is.
    Prevents: of three nodes, slow node a runs with b and with c. Both runs reach 0.3, and 0.3 is typical. Only b-c
    shows that it is not.
    """
    if len(evidence.sites) != TOO_FEW_TO_COMPARE:
        return []
    every_two = [[Probe(pair, EVERY_TWO)] for pair in combinations(evidence.sites, 2)]
    turns = 2 if any(map(evidence.is_barely_slow, evidence.runs)) else 1
    return still_to_run(every_two * turns, evidence.runs, absent)


def _without_uncompared(diagnosis: Diagnosis, absent: Set[str]) -> list[Probe]:
    """A pair of other nodes of its kind if some node was in every run of its kind; none if there are no two others.

    Prevents: of four nodes, d is broken. a-b and b-c pass, and nobody knows whether b slows both down.
    """
    hardware, found = diagnosis.evidence.hardware, []
    for nodes in hardware.by_kind(sorted(diagnosis.uncompared)):
        peers = {*hardware.peers(nodes[0])} - absent - diagnosis.uncompared
        others = list(filter(peers.__contains__, diagnosis.partners))
        if len(others) > 1:
            found.append(Probe((others[0], others[1]), WITHOUT.format(" and ".join(nodes))))
    return found
