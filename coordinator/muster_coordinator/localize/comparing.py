"""The groups without which there would be nothing to compare.

Nothing is slow but in comparison. What is part of all runs there are, sets what is typical, however bad it is.
"""

from collections.abc import Set
from itertools import combinations

from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.planned import still_to_run
from muster_coordinator.localize.probe import Probe

FEW = 3
"""Of so few nodes, one that is slow may be in all runs that there are."""

EVERY_TWO = "of three nodes every two have to meet, or there is nothing to compare"
INSIDE = "all runs have crossed the path between leaves {} and {}, and one within a leaf tells whether it is slow"


def to_compare(evidence: Evidence, absent: Set[str]) -> list[Probe]:
    """What is still to be run before anything can be judged; none in nearly all sweeps."""
    if len(evidence.sites) == FEW:
        every_two = ([Probe(pair, EVERY_TWO)] for pair in combinations(evidence.sites, 2))
        return still_to_run(every_two, evidence.trials, absent)
    paths = {evidence.path(*ends) for trial in evidence.trials for ends in combinations(trial.members, 2)}
    ends = {leaf for path in paths if path.of_leaves for leaf in path.ends}
    if len(paths) != 1 or len(ends) != 2:
        return []
    there = [[node for node in evidence.leaves[leaf] if node not in absent] for leaf in sorted(ends)]
    return [Probe((nodes[0], nodes[1]), INSIDE.format(*sorted(ends))) for nodes in there if len(nodes) > 1]
