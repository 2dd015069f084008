"""What nodes and runs have reached: the best value of each node, and the values of runs without repeated ones."""

from collections.abc import Collection, Iterable, Sequence

from muster_coordinator.model.probes import GroupRun, RunOutcome

NEAR = 0.75
"""If a node is healthy, its other runs reach this share of its best run.

It lies between what bad parts deliver (up to 70 % in the benchmark) and the 85 % below which a run is slow at least.
Measured by simulation, in 960 round robins where half of the nodes reach 0.5: at 0.375, 0.5 becomes typical and all
4,320 slow nodes are cleared. At 0.75 and at 1, none is; at 0.9, 16 are.
"""


ALIKE = 1.1
"""Runs that the same part limits, or nodes of one kind alone, differ by less: five standard deviations of the noise of
a usual fabric.
"""


VARYING = 1.25
"""Noise and another group beside it change what a run across a bad part reaches by less."""


def amount_reached(run: GroupRun) -> float:
    """What a run reached; 0 if it broke, whatever its members claim then."""
    return (run.objective if run.outcome is RunOutcome.GOOD else None) or 0.0


def are_alike(levels: Sequence[float]) -> bool:
    """Whether one part may have limited runs that reached these."""
    return max(levels) <= ALIKE * min(levels)


def varies(levels: Collection[float]) -> bool:
    """Whether these differ more than runs across one bad part do, whatever runs beside them."""
    return max(levels, default=0.0) > VARYING * min(levels, default=0.0)


def number_near_highest(levels: Collection[float]) -> int:
    """How many of these differ from the highest by no more than runs across one bad part do, whatever runs beside."""
    highest = max(levels, default=0.0)
    return sum(VARYING * level >= highest for level in levels)


def best_of_nodes(runs: Iterable[GroupRun]) -> dict[str, float]:
    """The highest value that each node has reached in these runs; 0 if none has a value."""
    best: dict[str, float] = {}
    for run in runs:
        for node in run.members:
            best[node] = max(run.objective or 0.0, best.get(node, 0.0))
    return best


def without_repeated(runs: Sequence[tuple[float, GroupRun]]) -> list[float]:
    """What the runs of one kind reached, without repeated runs of slow nodes; a large group counts as its pairs.

    Slow nodes run more often than others. Prevents: of eight nodes, slow node a runs three times with each other node,
    21 runs at 0.3 against three at 1.5. Without this rule 0.3 would be typical, and no run would be slow.
    """
    best: dict[str, tuple[float, GroupRun]] = {}
    for reached, run in runs:
        for node in run.members:
            if reached > best.get(node, (0.0, run))[0]:
                best[node] = reached, run
    return [
        reached
        for reached, run in runs
        for _ in range(max(len(run.members) // 2, 1))
        if any(best[node][1] is run for node in run.members)
        or all(reached > NEAR * best[node][0] for node in run.members)
    ]
