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

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.threshold import LEAST_SHORTFALL, Spread, Threshold, threshold_of
from muster_coordinator.localize.significance import FEWEST_CONTROL_PAIRS
from muster_coordinator.model.probes import GroupRun, RunOutcome


class ControlPair(NamedTuple):
    """What two healthy nodes of different leaves have reached beside a number of other groups."""

    beside: int
    reached: float


@dataclass(frozen=True, slots=True)
class Controls:
    """What each control has reached `alone`, run by run, and the control `pairs`.

    `doubtful` ones were bad with others later.
    """

    alone: Mapping[str, Sequence[float]]
    pairs: tuple[ControlPair, ...]
    doubtful: Set[str]

    def lowest_alone(self, enough: int) -> float:
        """The lowest value of a control alone, by its best run; if there are `enough` others, without doubtful ones.

        Prevents: links between leaves carry 60 %. A node that delivers as much passes across them, runs alone, and is
        slow inside its leaf again and again. What it reaches alone would be normal.
        """
        steady = [max(reached) for node, reached in self.alone.items() if node not in self.doubtful]
        return min(steady if len(steady) >= enough else map(max, self.alone.values()))

    @property
    def stragglers(self) -> Iterable[str]:
        """Rule: a control runs again if its only run alone fell short of another by as much as makes a run slow.

        Prevents: n7 delivers 40 %, and of the three controls beside it, one takes three times as long by chance. A
        third would be normal for a run alone, and the link of n7 would be convicted because n7 passes alone.
        """
        usual = max(map(max, self.alone.values()), default=0.0)
        least = (1 - LEAST_SHORTFALL) * usual
        return [node for node, reached in self.alone.items() if len(reached) == 1 and reached[0] < least]

    def pairs_missing(self, beside: int) -> int:
        """How many more control pairs must run before runs beside this number of groups can be compared with them."""
        return max(FEWEST_CONTROL_PAIRS - len(self._reached(beside)), 0)

    def threshold(self, beside: int, spread: Spread) -> Threshold | None:
        """The threshold for runs across leaves beside this number of groups; None if control pairs are missing.

        Values above the level, which may be lies, are cut to it.
        """
        if self.pairs_missing(beside):
            return None
        reached = self._reached(beside)
        return threshold_of([min(value, reached[FEWEST_CONTROL_PAIRS - 1]) for value in reached], spread)

    def _reached(self, beside: int) -> list[float]:
        return sorted((pair.reached for pair in self.pairs if pair.beside >= beside), reverse=True)


def controls_of(
    runs: Iterable[GroupRun],
    fabric: KnownFabric,
    clears: Callable[[GroupRun], bool],
    is_bad: Callable[[GroupRun], bool],
) -> Controls:
    """The controls in these runs: nodes that a run with others had cleared, and that had no bad one.

    More than one bad run afterwards makes them doubtful. A single one may be the fault of its partner.
    """
    alone: dict[str, list[float]] = {}
    pairs: list[ControlPair] = []
    cleared: set[str] = set()
    bad: Counter[str] = Counter()
    for run in runs:
        together, reached = len(run.members) > 1, run.objective if run.outcome is RunOutcome.GOOD else None
        is_healthy = cleared.issuperset(run.members) and not any(bad[node] for node in run.members)
        if reached and not together and (is_healthy or run.members[0] in alone):
            alone.setdefault(run.members[0], []).append(reached)
        is_across = together and not fabric.is_inside(run.members)
        if reached and is_healthy and is_across and run.beside <= fabric.few_beside:
            pairs.append(ControlPair(run.beside, reached))
        if together and is_bad(run):
            bad.update(run.members)
        elif together and clears(run):
            cleared.update(run.members)
    return Controls(alone, tuple(pairs), frozenset(node for node in alone if bad[node] > 1))
