"""Groups of healthy nodes that meet once more, because more passes are wanted.

Example: two passes were requested. In the first round each node has met one other; next they meet others, across other
paths, while the suspects run.

Takes time in proportion to the free nodes.
"""

from collections.abc import Iterator, Set

from muster_coordinator.localize.evidence.evidence import FEWEST_BARELY_SLOW, GroupEvidence
from muster_coordinator.localize.planning.control_groups import Pools
from muster_coordinator.localize.planning.tournament import across_leaves
from muster_coordinator.model.probes import Probe

SMALL_FLEET = 16
"""Fewer nodes have too few runs to show how much healthy runs differ. Of 300 noisy sweeps of 8 to 12 nodes, 3 name a
healthy node if these do not run again, and 1 if they do."""

ONCE_MORE = "one more pass over healthy nodes, across other paths"


def further_passes(evidence: GroupEvidence, pools: Pools, passes: int, busy: Set[str], seed: str) -> Iterator[Probe]:
    """All healthy and free nodes run once more for another pass, or in a small fleet if a run was barely slow.

    Rule: nodes of the `busy` leaves wait. Prevents: leaf c has two uplinks, and c1-a1 tells whether the path a-c is
    bad. c2-b1 would cross the same uplinks, and both reach half.
    """
    barely_slow = filter(evidence.is_barely_slow, evidence.runs)
    unsure = frozenset().union(*(evidence.hardware.kinds_of(run.members) for run in barely_slow))
    for kind, pool in pools.items():
        free = [node for node in pool.rest() if evidence.sites[node].leaf not in busy]
        done = {node: len(evidence.histories[node].good_together) for node in free}
        again = FEWEST_BARELY_SLOW if kind in unsure and len(evidence.hardware.kinds[kind]) < SMALL_FLEET else 0
        lacking = [node for node, times in done.items() if times < max(passes, again)]
        if len(lacking) > 1:
            most = max(done[node] for node in lacking)
            for group in across_leaves([evidence.sites[node] for node in lacking], seed, most):
                yield Probe(group, ONCE_MORE)
