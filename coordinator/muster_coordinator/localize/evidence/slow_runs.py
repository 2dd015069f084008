"""The typical values of a sweep, and its slow runs: for nodes alone and together, and lower on shared hosts.

Runs of one node and runs of several nodes are compared only among themselves. Nodes may lie, so a liar must not make
healthy nodes slow by a value that no node can reach. Each bound below says how it prevents that.

The cached properties take O(n log n) for n runs, once.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from muster_coordinator.localize.evidence.threshold import (
    SPREAD_ON_ONE_HOST,
    Spread,
    Threshold,
    spread_of,
    threshold_of,
)
from muster_coordinator.localize.significance import controls_needed
from muster_coordinator.model.probes import GroupRun, RunOutcome
from muster_coordinator.normal.normality import liars_among

NEAR = 0.75
"""If a node is healthy, its other runs reach this share of its best run.

It lies between what bad parts deliver (up to 70 % in the benchmark) and the 85 % below which a run is slow at least.
Measured by simulation, in 960 round robins where half of the nodes reach 0.5: at 0.375, 0.5 becomes typical and all
4,320 slow nodes are cleared. At 0.75 and at 1, none is; at 0.9, 16 are.
"""


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a sweep over a number of `nodes`, from its `runs` so far."""

    nodes: int
    runs: tuple[GroupRun, ...]

    @cached_property
    def together(self) -> Threshold | None:
        """For runs of several nodes."""
        return self._together(self._spread)

    @cached_property
    def alone(self) -> Threshold | None:
        """For runs of one node."""
        return self._alone(self._spread)

    def of(self, run: GroupRun) -> Threshold | None:
        """The threshold for runs like this one. It is lower for nodes that share a host."""
        together = len(run.members) > 1
        if run.on_one_host or (not together and not self._on_shared_hosts.isdisjoint(run.members)):
            return self._together_on_one_host if together else self._alone_on_one_host
        return self.together if together else self.alone

    def is_slow(self, run: GroupRun) -> bool:
        """Whether the run completed but fell short of the typical value."""
        if run.outcome is not RunOutcome.GOOD or not run.objective:
            return False
        threshold = self.of(run)
        return threshold is not None and run.objective < threshold.slow_below

    def is_bad(self, run: GroupRun) -> bool:
        return run.outcome is RunOutcome.BAD or self.is_slow(run)

    def is_good(self, run: GroupRun) -> bool:
        return run.is_pass and not self.is_bad(run)

    @cached_property
    def only_alone(self) -> bool:
        """Whether every run was of one node, so that a good run alone is the best evidence that any node can have."""
        return all(len(run.members) == 1 for run in self.runs)

    @property
    def controls_missing(self) -> int:
        """How many more nodes must run alone as controls before `_most_alone` is known."""
        return max(controls_needed(self.nodes) - len(self._controls), 0)

    @cached_property
    def _spread(self) -> Spread:
        """The spread of healthy runs; of runs of several nodes if there are any, since there are many."""
        return spread_of(self._reached_alone if self.only_alone else self._reached_together)

    @cached_property
    def _spread_on_one_host(self) -> Spread:
        return replace(self._spread, share=max(self._spread.share, SPREAD_ON_ONE_HOST))

    @cached_property
    def _together_on_one_host(self) -> Threshold | None:
        return self._together(self._spread_on_one_host)

    @cached_property
    def _alone_on_one_host(self) -> Threshold | None:
        return self._alone(self._spread_on_one_host)

    @cached_property
    def _on_shared_hosts(self) -> frozenset[str]:
        """The nodes that share their host in most of their runs with others.

        Members report their addresses themselves. Prevents: liar n1 reports the address of its partner n0, and from
        then on n0 may be a third slower than others although it has its host for itself. n0 shares a host in one of
        three runs only, so it still counts as a node with its own host.
        """
        on_one_host = Counter(node for run in self.runs if run.on_one_host for node in run.members)
        together = Counter(node for run in self.runs if len(run.members) > 1 for node in run.members)
        return frozenset(node for node, times in on_one_host.items() if 2 * times > together[node])

    @cached_property
    def _reached_together(self) -> list[float]:
        return self._objectives(together=True)

    @cached_property
    def _reached_alone(self) -> list[float]:
        return self._objectives(together=False)

    def _objectives(self, *, together: bool) -> list[float]:
        """The objectives of the runs, without repeated runs of slow nodes; a large group counts as its number of pairs.

        Slow nodes run more often than others. Prevents: of eight nodes, slow node a runs three times with each other
        node, 21 runs at 0.3 against three at 1.5. Without this rule 0.3 would be typical, and no run would be slow.
        """
        runs = [
            (run.objective, run)
            for run in self.runs
            if run.outcome is RunOutcome.GOOD and run.objective and (len(run.members) > 1) is together
        ]
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

    def _together(self, spread: Spread) -> Threshold | None:
        """The threshold for several nodes, after the highest values, which may be lies, are cut.

        The lowest measurement of a group counts, so only two liars together can claim too much: l liars can fake l / 2
        pairs. Prevents: among 64 nodes, liars n0 and n1 claim 1e300 GB/s. Three nodes may lie, so the highest value
        counts as the second highest.
        """
        reached = sorted(self._reached_together)
        fakes = min(liars_among(self.nodes) // 2, max(len(reached) - 1, 0))
        return threshold_of([min(value, reached[-1 - fakes]) for value in reached], spread)

    def _alone(self, spread: Spread) -> Threshold | None:
        """The threshold for one node, after every value above `_most_alone`, which may be a lie, is cut to it."""
        if (most := self._most_alone) is None:
            return None
        return threshold_of([min(value, most) for value in self._reached_alone], spread)

    @cached_property
    def _most_alone(self) -> float | None:
        """The highest value that an honest node is known to reach alone; None if too few nodes have shown it.

        No other node measures a run alone. Prevents: n0 and n1 are suspects and run alone, liar n1 claims 1e300 GB/s,
        and healthy n0 is convicted because 1.5 GB/s is slow in comparison.

        If all nodes run alone only, the bound is a value that more nodes have reached than may lie. Otherwise mostly
        suspects run alone, and most of them may lie; then the bound is the lowest value of the controls, nodes that the
        coordinator drew at random.
        """
        if self.only_alone:
            best: dict[str, float] = {}
            for run in self.runs:
                (node,) = run.members
                best[node] = max(run.objective or 0.0, best.get(node, 0.0))
            return max(sorted(best.values(), reverse=True)[liars_among(self.nodes) :], default=None)
        return None if self.controls_missing else min(self._controls.values())

    @cached_property
    def _controls(self) -> Mapping[str, float]:
        """The value that each control reached alone: a node that had passed with others and had no bad run so far."""
        reached: dict[str, float] = {}
        passed: set[str] = set()
        bad: set[str] = set()
        for run in self.runs:
            node = run.members[0]
            if len(run.members) > 1:
                (bad if self.is_bad(run) else passed if run.is_pass else set()).update(run.members)
            elif run.outcome is RunOutcome.GOOD and run.objective and node in passed and node not in bad:
                reached.setdefault(node, run.objective)
        return reached
