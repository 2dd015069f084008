"""What nodes and runs have reached: the best value of each node, and the values of runs without repeated ones."""

from collections.abc import Iterable, Sequence

from muster_coordinator.model.probes import GroupRun

NEAR = 0.75
"""If a node is healthy, its other runs reach this share of its best run.

It lies between what bad parts deliver (up to 70 % in the benchmark) and the 85 % below which a run is slow at least.
Measured by simulation, in 960 round robins where half of the nodes reach 0.5: at 0.375, 0.5 becomes typical and all
4,320 slow nodes are cleared. At 0.75 and at 1, none is; at 0.9, 16 are.
"""


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
