"""Controls: healthy nodes that the coordinator draws at random to show what a run should reach.

The idea: suspects run alone, or in rounds with few groups. What they reach there is compared with what controls reach
in runs of the same kind, because it differs from what the first round shows.

- A control alone shows what a node should reach alone. Most that run alone are suspects.
- A control pair shows what two nodes of different leaves should reach while few groups run. Where links between leaves
  are oversubscribed, or connections collide on one way to a spine, all runs of the first round are slow. A node with a
  bad link is as fast as everybody then, and stands out only while few groups run. A run is compared with the pairs that
  ran beside as many other groups, or more: beside fewer, they would only have been faster.

Example: 64 nodes, 2:1 oversubscribed. In the first round, pairs across leaves reach 200 GB/s, and so does n7, whose
link lets through 240 GB/s. In the fourth round n7 runs beside two control pairs, which reach 400.

All functions take time in proportion to the number of runs.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.threshold import Spread, Threshold, threshold_of
from muster_coordinator.model.probes import GroupRun, RunOutcome

FEW_BESIDE = 7
"""With at most this number of other groups of several nodes beside it, a run hardly shares links.

Chosen by simulation: of 300 nodes, links and rails that deliver 40 to 70 %, where links are 2:1 oversubscribed or ECMP
has four ways, 288 are found. At 3, 251 are, because three suspects and two control pairs are too many for one round. At
15, it is the same as at 7.
"""

FEWEST_PAIRS = 2
"""The level is what this many control pairs have reached. A pair exceeds what is possible only if both of its nodes
lie. If one node in twenty lies, all nodes of two pairs do so once in 160,000 draws."""


class ControlPair(NamedTuple):
    """What two healthy nodes of different leaves have reached beside a number of other groups."""

    beside: int
    reached: float


@dataclass(frozen=True, slots=True)
class Controls:
    """What each control has reached `alone`, and the control `pairs`."""

    alone: Mapping[str, float]
    pairs: tuple[ControlPair, ...]

    def pairs_missing(self, beside: int) -> int:
        """How many more control pairs must run before runs beside this number of groups can be compared with them."""
        return max(FEWEST_PAIRS - len(self._reached(beside)), 0)

    def threshold(self, beside: int, spread: Spread) -> Threshold | None:
        """The threshold for runs across leaves beside this number of groups; None if control pairs are missing.

        Values above the level, which may be lies, are cut to it.
        """
        if self.pairs_missing(beside):
            return None
        reached = self._reached(beside)
        return threshold_of([min(value, reached[FEWEST_PAIRS - 1]) for value in reached], spread)

    def _reached(self, beside: int) -> list[float]:
        return sorted((pair.reached for pair in self.pairs if pair.beside >= beside), reverse=True)


def is_beside_few(run: GroupRun) -> bool:
    """Whether a run hardly shared links with other groups."""
    return run.beside <= FEW_BESIDE


def controls_of(
    runs: Iterable[GroupRun],
    fabric: KnownFabric,
    clears: Callable[[GroupRun], bool],
    is_bad: Callable[[GroupRun], bool],
) -> Controls:
    """The controls in these runs: nodes that a run with others had cleared, and that had no bad one."""
    alone: dict[str, float] = {}
    pairs: list[ControlPair] = []
    cleared: set[str] = set()
    bad: set[str] = set()
    for run in runs:
        together, reached = len(run.members) > 1, run.objective if run.outcome is RunOutcome.GOOD else None
        if reached and cleared.issuperset(run.members) and bad.isdisjoint(run.members):
            if not together:
                alone.setdefault(run.members[0], reached)
            elif is_beside_few(run) and not fabric.is_inside(run.members):
                pairs.append(ControlPair(run.beside, reached))
        if together:
            (bad if is_bad(run) else cleared if clears(run) else set()).update(run.members)
    return Controls(alone, tuple(pairs))
