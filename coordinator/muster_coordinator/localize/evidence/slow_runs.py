"""The typical values of a sweep, and its slow runs: for nodes alone and together, and lower on shared hosts.

Runs of one node, inside a leaf and across leaves are compared only among themselves. Nodes may lie, so a liar must not
make healthy nodes slow by a value that no node can reach. Each bound below says how it prevents that.

The cached properties take O(n log n) for n runs, once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from muster_coordinator.localize.evidence.controls import Controls, controls_of
from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.reached import NEAR, best_of_nodes, without_repeated
from muster_coordinator.localize.evidence.run_kinds import FEWEST_ACROSS, RunKind, RunsByKind
from muster_coordinator.localize.evidence.threshold import (
    LEAST_SHORTFALL,
    SPREAD_ON_ONE_HOST,
    Spread,
    Threshold,
    on_one_host,
    spread_of,
    threshold_of,
    usual_of,
)
from muster_coordinator.localize.significance import controls_needed, liars_among_peers
from muster_coordinator.model.probes import GroupRun, RunOutcome

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

NOISE_BELOW = 2.0
"""Where links between leaves carry less than NICs do, a node that has lost as much hardly shows there. So a run across
leaves clears its members only if it is no lower than typical by more than noise of this many standard deviations.

Example: links carry 75 %, and runs differ by 2 %. A pair that reached 70 % runs again, inside leaves.
"""

MANY_ALONE = 3
"""With more nodes alone for each one that may lie, or all of them, those who ran alone are not suspects only."""


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

    @cached_property
    def _kinds(self) -> RunsByKind:
        return RunsByKind(self.runs, self.fabric)

    def kind_of(self, run: GroupRun) -> RunKind:
        """The kind of a run."""
        return self._kinds.kind_of(run)

    @property
    def are_kinds_apart(self) -> bool:
        """Whether runs across leaves have a level of their own."""
        return self._kinds.are_apart

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

    def alone_for(self, normal: float) -> Threshold | None:
        """For runs of one node if healthy ones reach `normal`, even if most that have run alone are slow.

        Prevents: 60 % of 4,096 nodes reach half, and 5 % are broken in every degree. Most of those that run alone reach
        half, and below there is no gap. With these values the threshold would be at half of normal, amid the 60 %.
        """
        near = [min(value, normal) for value in self._kinds.compared[RunKind.ALONE] if value > NEAR * normal]
        return threshold_of(near, self._spread[RunKind.ALONE])

    def of(self, run: GroupRun) -> Threshold | None:
        """The threshold for runs like this one. It is lower for nodes that share a host."""
        match self.kind_of(run):
            case RunKind.ALONE:
                return self.alone if self._on_shared_hosts.isdisjoint(run.members) else self._alone_on_one_host
            case RunKind.INSIDE:
                return self._within_one_host if run.on_one_host else self.within
            case RunKind.ACROSS:
                return self._together_on_one_host if run.on_one_host else self._across(run)

    def noise_of(self, run: GroupRun) -> float:
        """The relative standard deviation of runs like this one if nothing is wrong."""
        kind = self.kind_of(run)
        is_free = kind is RunKind.ACROSS and self.are_links_shared and run.beside <= self.fabric.few_beside
        share = self._spread[RunKind.INSIDE if is_free else kind].share
        return max(share, SPREAD_ON_ONE_HOST) if run.on_one_host else share

    def is_slow(self, run: GroupRun) -> bool:
        """Whether the run completed but fell short of the typical value."""
        if run.outcome is not RunOutcome.GOOD or not run.objective:
            return False
        threshold = self.of(run)
        return threshold is not None and run.objective < threshold.slow_below

    def is_bad(self, run: GroupRun) -> bool:
        return run.outcome is RunOutcome.BAD or self.is_slow(run)

    def is_bad_in_any_crowd(self, run: GroupRun) -> bool:
        """Whether a run is bad, and slower than runs beside many other groups, too, if it is slow."""
        beside_many = self.kind_of(run) is RunKind.ACROSS and not run.on_one_host
        usual = self.together if beside_many else self.of(run)
        is_slow = usual is not None and 0 < (run.objective or 0.0) < usual.slow_below
        return run.outcome is RunOutcome.BAD or (run.outcome is RunOutcome.GOOD and is_slow)

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
        noise = self._spread[self.kind_of(run)].share
        least = max(least, (1 - MOST_HIDDEN) * (1 + NOISE_ABOVE * noise) * threshold.typical)
        is_limited = threshold.typical < (1 - LEAST_SHORTFALL) * self.best
        return max(least, (1 - NOISE_BELOW * noise) * threshold.typical) if is_limited else least

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
        runs = sorted(
            (*self._kinds.completed[RunKind.ACROSS], *self._kinds.completed[RunKind.INSIDE]), key=lambda it: -it[0]
        )
        seen: set[str] = set()
        for reached, run in runs:
            seen.update(run.members)
            if len(seen) > self.liars:
                return reached
        return runs[-1][0] if runs else 0.0

    @cached_property
    def are_links_shared(self) -> bool:
        """Whether runs beside many other groups reach so much less than the best that contention must be the cause."""
        if len(self._kinds.crowded) < FEWEST_ACROSS:
            return False
        return usual_of(without_repeated(self._kinds.crowded)) < (1 - LEAST_SHORTFALL) * self.best

    def is_contended(self, run: GroupRun) -> bool:
        """Whether many groups beside a run across leaves may be what made it slow."""
        is_among_many = self.are_links_shared and run.beside > self.fabric.few_beside
        return is_among_many and self.kind_of(run) is RunKind.ACROSS

    def control_pairs_missing(self, beside: int) -> int:
        """How many more control pairs must run before runs beside this number of groups can be compared with them."""
        is_few = beside <= self.fabric.few_beside
        return self._controls.pairs_missing(beside) if self.are_links_shared and is_few else 0

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
        return max(self._controls_needed - len(self._controls.alone), 0)

    @property
    def straggling_controls(self) -> Iterable[str]:
        """The controls that run alone again, because chance may have slowed their only run."""
        return self._controls.stragglers

    @cached_property
    def _controls_needed(self) -> int:
        return controls_needed(self.nodes, self.peers)

    def _across(self, run: GroupRun) -> Threshold | None:
        """Of a run across leaves: the higher of the usual threshold and that of control pairs beside as many groups."""
        if not self.are_links_shared or run.beside > self.fabric.few_beside:
            return self.together
        if run.beside not in self._from_controls:
            self._from_controls[run.beside] = self._controls.threshold(run.beside, self._spread[RunKind.INSIDE])
        return _higher(self._from_controls[run.beside], self.together)

    @cached_property
    def _from_controls(self) -> dict[int, Threshold | None]:
        """The thresholds from control pairs, by the number of other groups beside them."""
        return {}

    @cached_property
    def _controls(self) -> Controls:
        least = CLEARING * self.best
        return controls_of(
            self.runs,
            self.fabric,
            clears=lambda run: run.is_pass and (run.objective is None or run.objective >= least),
            is_bad=self.is_bad_in_any_crowd,
        )

    @cached_property
    def _spread(self) -> Mapping[RunKind, Spread]:
        """The spread of healthy runs; of runs of several nodes if there are any, since there are many.

        Where links between leaves may limit runs, contention may slow some, however few these are.
        """
        spread = {kind: spread_of(values) for kind, values in self._kinds.compared.items()}
        if self._may_links_limit:
            spread[RunKind.ACROSS] = replace(spread[RunKind.ACROSS], few_below=0.0)
        together = RunKind.INSIDE if self.are_links_shared else RunKind.ACROSS
        return spread if self.only_alone else {**spread, RunKind.ALONE: spread[together]}

    @property
    def _may_links_limit(self) -> bool:
        """Whether links between leaves slow runs, or may do so because somebody's leaf is unknown.

        Prevents: connections collide on one of four ways, and all who met across the fullest ones run again.
        """
        return self.are_kinds_apart or self.are_links_shared or not self.fabric.all_leaves_known

    @cached_property
    def _together_on_one_host(self) -> Threshold | None:
        return self._together(RunKind.ACROSS, on_one_host(self._spread[RunKind.ACROSS]))

    @cached_property
    def _within_one_host(self) -> Threshold | None:
        return self._within(on_one_host(self._spread[RunKind.INSIDE]), self._together_on_one_host)

    @cached_property
    def _alone_on_one_host(self) -> Threshold | None:
        return self._alone(on_one_host(self._spread[RunKind.ALONE]))

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

    def _within(self, spread: Spread, together: Threshold | None) -> Threshold | None:
        return _higher(self._together(RunKind.INSIDE, spread), together)

    def _together(self, kind: RunKind, spread: Spread) -> Threshold | None:
        """The threshold for several nodes, after every value above `best`, which may be a lie, is cut to it.

        Prevents: among 64 nodes, liars n0 and n1 claim 1e300 GB/s, again and again. Three nodes may lie, so no value
        counts for more than what four nodes have reached.
        """
        return threshold_of([min(value, self.best) for value in self._kinds.compared[kind]], spread)

    def _alone(self, spread: Spread) -> Threshold | None:
        """The threshold for one node, after every value above `_most_alone`, which may be a lie, is cut to it."""
        if (most := self._most_alone) is None:
            return None
        return threshold_of([min(value, most) for value in self._kinds.compared[RunKind.ALONE]], spread)

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
        are_many = self.only_alone or len(best) > min(MANY_ALONE * liars, self.peers - 1)
        bounds = sorted(best.values(), reverse=True)[liars:][:1] if are_many else []
        if not self.only_alone and not self.controls_missing:
            bounds.append(self._controls.lowest_alone(self._controls_needed))
        return max(bounds, default=None)


def _higher(*thresholds: Threshold | None) -> Threshold | None:
    found = [threshold for threshold in thresholds if threshold is not None]
    return max(found, key=lambda threshold: threshold.slow_below, default=None)
