"""The typical values of a sweep, and its slow runs: for nodes alone and together, and lower on shared hosts.

Runs of one node, inside a leaf and across leaves are compared only among themselves. Nodes may lie, so a liar must not
make healthy nodes slow by a value that no node can reach. Each bound below says how it prevents that.

The cached properties take O(n log n) for n runs, once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.threshold import (
    LEAST_SHORTFALL,
    SPREAD_ON_ONE_HOST,
    Spread,
    Threshold,
    spread_of,
    threshold_of,
)
from muster_coordinator.localize.significance import controls_needed, liars_among_peers
from muster_coordinator.model.probes import GroupRun, RunOutcome

NEAR = 0.75
"""If a node is healthy, its other runs reach this share of its best run.

It lies between what bad parts deliver (up to 70 % in the benchmark) and the 85 % below which a run is slow at least.
Measured by simulation, in 960 round robins where half of the nodes reach 0.5: at 0.375, 0.5 becomes typical and all
4,320 slow nodes are cleared. At 0.75 and at 1, none is; at 0.9, 16 are.
"""


class RunKind(StrEnum):
    """What runs of a kind have in common: the parts that they cross. Only runs of one kind are compared.

    A run is ACROSS if its members stand at several leaves, or if a leaf is unknown.
    """

    ALONE = "alone"
    INSIDE = "inside a leaf"
    ACROSS = "across leaves"


CLEARING = 0.6
"""A run that shares its links with others may be slow without a fault, but then it hides one. It clears its members if
it reached this share of what the best runs of several nodes do.

Example: links between leaves are 2:1 oversubscribed, so pairs across leaves reach 200 of 400 GB/s while all run at
once. A node that delivers 50 % is not slower than that. Inside a leaf it is.
"""

MOST_HIDDEN, NOISE_ABOVE = 1 / 3, 1.0
"""Where runs differ much, only a great loss is slow. A run clears its members only if it reached so much that they have
hardly lost more than this share, even if noise of this many standard deviations helped them.

Example: runs differ by 8 %, and less than half is slow. A pair that reached 0.7 is not cleared: its nodes may deliver
65 %. They run again, and if they never reach 0.72, they are inconclusive.
"""

MANY_ALONE = 3
"""With more nodes alone for each one that may lie, those who ran alone are not suspects only."""

FEWEST_ACROSS = 4
"""Runs across leaves have a level of their own if this many of them have no member at the leaf that is part of most.

Prevents: four nodes of leaf a are slow with nodes of other leaves, and nobody else has run across leaves. The level of
the bad leaf would be typical. Until there are enough, all runs of several nodes are compared with each other.
"""


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of a sweep over a number of `nodes`, for its `runs` on hardware that a number of `peers` has.

    Prevents: the links between the leaves of a `fabric` carry 75 % of what a NIC can do, or are oversubscribed. As soon
    as most runs are inside leaves, they are typical, and every path between leaves is slow: without the two kinds, all
    sweeps of such a fabric convict healthy paths.
    """

    nodes: int
    peers: int
    runs: tuple[GroupRun, ...]
    fabric: KnownFabric = field(default_factory=lambda: KnownFabric({}))

    def kind_of(self, run: GroupRun) -> RunKind:
        """The kind of a run."""
        if len(run.members) == 1:
            return RunKind.ALONE
        return RunKind.INSIDE if self.fabric.is_inside(run.members) else RunKind.ACROSS

    @cached_property
    def are_kinds_apart(self) -> bool:
        """Whether runs across leaves have a level of their own."""
        across = [run for _, run in self._completed[RunKind.ACROSS]]
        leaves = [self.fabric.leaves_of(run.members) for run in across]
        (_, most), *_ = Counter(leaf for each in leaves for leaf in each).most_common(1) or [("", 0)]
        return len(across) - most >= FEWEST_ACROSS

    @cached_property
    def together(self) -> Threshold | None:
        """For runs of several nodes, across leaves if they are known."""
        return self._together(RunKind.ACROSS, self._spread[RunKind.ACROSS])

    @cached_property
    def within(self) -> Threshold | None:
        """For runs inside a leaf: at least that for runs across leaves, which cross the same parts and more.

        Prevents: leaf a has a bad switch, and all runs inside a leaf were among its nodes. They would be typical.
        """
        return self._within(self._spread[RunKind.INSIDE], self.together)

    @cached_property
    def alone(self) -> Threshold | None:
        """For runs of one node."""
        return self._alone(self._spread[RunKind.ALONE])

    def of(self, run: GroupRun) -> Threshold | None:
        """The threshold for runs like this one. It is lower for nodes that share a host."""
        match self.kind_of(run):
            case RunKind.ALONE:
                return self.alone if self._on_shared_hosts.isdisjoint(run.members) else self._alone_on_one_host
            case RunKind.INSIDE:
                return self._within_one_host if run.on_one_host else self.within
            case RunKind.ACROSS:
                return self._together_on_one_host if run.on_one_host else self.together

    def noise_of(self, run: GroupRun) -> float:
        """The relative standard deviation of runs like this one if nothing is wrong."""
        share = self._spread[self.kind_of(run)].share
        return max(share, SPREAD_ON_ONE_HOST) if run.on_one_host else share

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

    def clears(self, run: GroupRun) -> bool:
        """Whether a good run of several nodes also shows that its members are healthy."""
        return run.objective is None or run.objective >= self._clears_from(run)

    def _clears_from(self, run: GroupRun) -> float:
        """The value from which a run like this one clears its members.

        On shared hosts noise is expected, and a reference knows better than noise.
        """
        least, threshold = CLEARING * self.best, self.of(run)
        if threshold is None or run.on_one_host or run.is_judged:
            return least
        noise = NOISE_ABOVE * self._spread[self.kind_of(run)].share
        return max(least, (1 - MOST_HIDDEN) * (1 + noise) * threshold.typical)

    def smallest_loss(self, run: GroupRun) -> float | None:
        """The smallest loss that a run like this one would have shown, as a share of what healthy nodes reach.

        Where links between leaves are slower than NICs, a run across leaves shows only what exceeds the difference.
        """
        if (threshold := self.of(run)) is None:
            return None
        hidden_from, levels = threshold.visible_below, [threshold]
        if len(run.members) > 1:
            hidden_from = max(hidden_from, self._clears_from(run))
            levels += [level for level in (self.together, self.within) if level is not None]
        return max(1 - hidden_from / max(level.typical for level in levels), LEAST_SHORTFALL)

    @cached_property
    def best(self) -> float:
        """What more nodes than may lie have reached together with others, so at least one honest node has.

        Prevents: eleven liars of 232 nodes declare a leaf of their own and claim 1e30 GB/s in all their pairs there. No
        other run would clear anybody.
        """
        runs = sorted((*self._completed[RunKind.ACROSS], *self._completed[RunKind.INSIDE]), key=lambda it: -it[0])
        seen: set[str] = set()
        for reached, run in runs:
            seen.update(run.members)
            if len(seen) > self.liars:
                return reached
        return runs[-1][0] if runs else 0.0

    @cached_property
    def only_alone(self) -> bool:
        """Whether every run was of one node, so that a good run alone is the best evidence that any node can have."""
        return all(len(run.members) == 1 for run in self.runs)

    @property
    def liars(self) -> int:
        """How many of the nodes may lie."""
        return liars_among_peers(self.nodes, self.peers)

    @property
    def controls_missing(self) -> int:
        """How many more nodes must run alone as controls before `_most_alone` is known."""
        return max(controls_needed(self.nodes, self.peers) - len(self._controls), 0)

    @cached_property
    def _spread(self) -> Mapping[RunKind, Spread]:
        """The spread of healthy runs; of runs of several nodes if there are any, since there are many."""
        spread = {kind: spread_of(values) for kind, values in self._reached.items()}
        return spread if self.only_alone else {**spread, RunKind.ALONE: spread[RunKind.ACROSS]}

    @cached_property
    def _together_on_one_host(self) -> Threshold | None:
        return self._together(RunKind.ACROSS, _of_one_host(self._spread[RunKind.ACROSS]))

    @cached_property
    def _within_one_host(self) -> Threshold | None:
        return self._within(_of_one_host(self._spread[RunKind.INSIDE]), self._together_on_one_host)

    @cached_property
    def _alone_on_one_host(self) -> Threshold | None:
        return self._alone(_of_one_host(self._spread[RunKind.ALONE]))

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
    def _reached(self) -> Mapping[RunKind, list[float]]:
        """The values that runs of each kind are compared with; of each node alone the best one.

        Suspects run alone again and again. Prevents: 20 slow nodes run alone three times, and their 20 partners once.
        """
        alone = [*best_of_nodes(run for _, run in self._completed[RunKind.ALONE]).values()]
        if self.are_kinds_apart:
            kinds = (RunKind.INSIDE, RunKind.ACROSS)
            return {RunKind.ALONE: alone, **{kind: _without_repeated(self._completed[kind]) for kind in kinds}}
        together = _without_repeated([*self._completed[RunKind.ACROSS], *self._completed[RunKind.INSIDE]])
        return {RunKind.ALONE: alone, RunKind.INSIDE: together, RunKind.ACROSS: together}

    @cached_property
    def _completed(self) -> Mapping[RunKind, list[tuple[float, GroupRun]]]:
        """The runs of each kind that measured something, each with its objective."""
        runs: dict[RunKind, list[tuple[float, GroupRun]]] = {kind: [] for kind in RunKind}
        for run in self.runs:
            if run.outcome is RunOutcome.GOOD and run.objective:
                runs[self.kind_of(run)].append((run.objective, run))
        return runs

    def _within(self, spread: Spread, together: Threshold | None) -> Threshold | None:
        own = self._together(RunKind.INSIDE, spread)
        found = [threshold for threshold in (own, together) if threshold is not None]
        return max(found, key=lambda threshold: threshold.slow_below, default=None)

    def _together(self, kind: RunKind, spread: Spread) -> Threshold | None:
        """The threshold for several nodes, after every value above `best`, which may be a lie, is cut to it.

        Prevents: among 64 nodes, liars n0 and n1 claim 1e300 GB/s, again and again. Three nodes may lie, so no value
        counts for more than what four nodes have reached.
        """
        return threshold_of([min(value, self.best) for value in self._reached[kind]], spread)

    def _alone(self, spread: Spread) -> Threshold | None:
        """The threshold for one node, after every value above `_most_alone`, which may be a lie, is cut to it."""
        if (most := self._most_alone) is None:
            return None
        return threshold_of([min(value, most) for value in self._reached[RunKind.ALONE]], spread)

    @cached_property
    def _most_alone(self) -> float | None:
        """The highest value that an honest node is known to reach alone; None if too few nodes have shown it.

        No other node measures a run alone. Prevents: n0 and n1 are suspects and run alone, liar n1 claims 1e300 GB/s,
        and healthy n0 is convicted because 1.5 GB/s is slow in comparison.

        The bound is a value that more nodes have reached than may lie: one of them is honest. Unless all or many nodes
        run alone, those who do are mostly suspects and may all be slow or lie; then the bound is the lowest value of
        the controls, nodes that the coordinator drew at random.
        """
        best = best_of_nodes(run for run in self.runs if len(run.members) == 1)
        liars = self.liars
        are_many = self.only_alone or len(best) > MANY_ALONE * liars
        bounds = sorted(best.values(), reverse=True)[liars:][:1] if are_many else []
        if not self.only_alone and not self.controls_missing:
            bounds.append(min(self._controls.values()))
        return max(bounds, default=None)

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


def best_of_nodes(runs: Iterable[GroupRun]) -> dict[str, float]:
    """The highest value that each node has reached in these runs; 0 if none has a value."""
    best: dict[str, float] = {}
    for run in runs:
        for node in run.members:
            best[node] = max(run.objective or 0.0, best.get(node, 0.0))
    return best


def _of_one_host(spread: Spread) -> Spread:
    return replace(spread, share=max(spread.share, SPREAD_ON_ONE_HOST))


def _without_repeated(runs: Sequence[tuple[float, GroupRun]]) -> list[float]:
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
