"""The thresholds of a whole sweep: one set for each kind of hardware, and for each mixture of kinds in a group.

The idea: a4 nodes are compared with a4 nodes. A group of a3 and a4 nodes is as fast as its slowest member. So it is
compared with groups of the slower kind, and shows that a member is healthy only if it is as fast as groups of its kind.

Example: pairs of a4 reach 400, pairs of a3 reach 200, and so do pairs of both. Such a pair is not slow, and clears the
a3 node. It does not clear the a4 node, which may have lost half. A pair of both that reaches 160 is slow.

Takes what `slow_runs` takes, for the runs of each mixture.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.hardware import ComparedKind, KnownHardware
from muster_coordinator.localize.evidence.run_kinds import RunKind
from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.localize.evidence.threshold import Threshold
from muster_coordinator.model.probes import GroupRun


@dataclass(frozen=True)
class SweepThresholds:
    """The thresholds of a sweep from its `runs` so far."""

    runs: tuple[GroupRun, ...]
    fabric: KnownFabric
    hardware: KnownHardware

    def like(self, run: GroupRun) -> Thresholds:
        """Those for the runs that this one is compared with."""
        if self._for_all is not None:
            return self._for_all
        if (found := self._by_members.get(run.members)) is None:
            kinds = self.hardware.kinds_of(run.members)
            found = self._by_members[run.members] = self._alike.get(kinds) or self._of(kinds, ())
        return found

    def among(self, kind: ComparedKind) -> Thresholds:
        """Those for runs whose members are all of this kind."""
        return self._by_kinds.get(frozenset({kind})) or self._of({kind}, ())

    @cached_property
    def only_alone(self) -> bool:
        """Whether every run was of one node, so that a good run alone is the best evidence that any node can have."""
        return all(len(run.members) == 1 for run in self.runs)

    def of(self, run: GroupRun) -> Threshold | None:
        """The threshold for runs like this one."""
        return self.like(run).of(run)

    def kind_of(self, run: GroupRun) -> RunKind:
        """What the run crosses."""
        return self.like(run).kind_of(run)

    def noise_of(self, run: GroupRun) -> float:
        """The relative standard deviation of runs like this one if nothing is wrong."""
        return self.like(run).noise_of(run)

    def normal(self, run: GroupRun) -> float:
        """What the best healthy runs like this one reach, alone or with others; 0 if unknown.

        One level for all runs of several nodes: a bad link lets through the same inside a leaf and across.
        """
        found = self.like(run)
        levels = (found.alone,) if len(run.members) == 1 else (found.together, found.within)
        return max((level.typical for level in levels if level is not None), default=0.0)

    def is_slow(self, run: GroupRun) -> bool:
        """Whether the run completed but fell short of the typical value."""
        return self.like(run).is_slow(run)

    def is_bad(self, run: GroupRun) -> bool:
        return self.like(run).is_bad(run)

    @cached_property
    def are_links_shared(self) -> bool:
        """Whether runs of some kind reach so much less beside many other groups that contention must be the cause."""
        return any(self.among(kind).are_links_shared for kind in self.hardware.kinds)

    def is_contended(self, run: GroupRun) -> bool:
        """Whether many groups beside a run across leaves may be what made it slow."""
        return self.like(run).is_contended(run)

    def is_bad_in_any_crowd(self, run: GroupRun) -> bool:
        """Whether a run is bad, and slower than runs beside many other groups, too, if it is slow."""
        return self.like(run).is_bad_in_any_crowd(run)

    @cached_property
    def bad(self) -> tuple[bool, ...]:
        """For each run, whether it was bad."""
        return tuple(map(self.is_bad, self.runs))

    @cached_property
    def bad_runs(self) -> tuple[GroupRun, ...]:
        """The runs that were bad."""
        return tuple(compress(self.runs, self.bad))

    @cached_property
    def _good(self) -> tuple[bool, ...]:
        """For each run, whether it was good."""
        return tuple(run.is_pass and not bad for run, bad in zip(self.runs, self.bad, strict=True))

    @cached_property
    def good_runs(self) -> tuple[GroupRun, ...]:
        """The runs that were good."""
        return tuple(compress(self.runs, self._good))

    @cached_property
    def shown_healthy(self) -> tuple[frozenset[str], ...]:
        """For each run, the members that it has shown to be healthy: none unless it is good."""
        runs = zip(self.runs, self._good, strict=True)
        return tuple(self._shown_by(run) if good else frozenset() for run, good in runs)

    def _shown_by(self, run: GroupRun) -> frozenset[str]:
        """Of a good run. A run alone is enough if no node ran with others."""
        if len(run.members) > 1:
            return self._cleared_by(run)
        return frozenset(run.members if self.only_alone else ())

    def _cleared_by(self, run: GroupRun) -> frozenset[str]:
        """The members that a good run of several nodes shows to be healthy, each for its kind of hardware."""
        if not self.like(run).clears(run):
            return frozenset()
        kinds = self.hardware.kinds_of(run.members)
        if len(kinds) == 1:
            return frozenset(run.members)
        clear = {kind for kind in kinds if self.among(kind).clears(run)}
        return frozenset(node for node in run.members if self.hardware.kind_of(node) in clear)

    @cached_property
    def passed(self) -> frozenset[str]:
        """The nodes that a good run with others has shown to be healthy."""
        runs = zip(self.runs, self.shown_healthy, strict=True)
        return frozenset().union(*(shown for run, shown in runs if len(run.members) > 1))

    def smallest_loss(self, run: GroupRun) -> float | None:
        """The smallest loss that a run like this one would have shown in each member, as a share."""
        found = self.like(run).smallest_loss(run)
        if found is None or not (fastest := max((t.best for t in self._of_members(run)), default=0.0)):
            return found
        return 1 - (1 - found) * min(self.like(run).best / fastest, 1.0)

    def _of_members(self, run: GroupRun) -> Iterable[Thresholds]:
        """The thresholds for each kind of the members of a group of several kinds."""
        kinds = self.hardware.kinds_of(run.members)
        return map(self.among, kinds) if len(kinds) > 1 else ()

    @cached_property
    def _for_all(self) -> Thresholds | None:
        """Those of every run if all nodes are of one kind, as in most fleets."""
        kinds = frozenset(self.hardware.kinds)
        return None if len(kinds) > 1 else self._alike.get(kinds) or self._of(kinds, ())

    @cached_property
    def _by_members(self) -> dict[tuple[str, ...], Thresholds]:
        """What `like` has answered: rules ask for each run several times."""
        return {}

    @cached_property
    def _alike(self) -> Mapping[frozenset[ComparedKind], Thresholds]:
        """By the kinds of a group, those that it is compared with."""
        return {kinds: self._slowest(kinds, own) for kinds, own in self._by_kinds.items()}

    def _slowest(self, kinds: Iterable[ComparedKind], own: Thresholds) -> Thresholds:
        """Those of the slowest of several kinds, or their `own` if no group of all kinds is as fast as the slowest.

        Prevents: a3 nodes exchange with a4 nodes in another way than with each other, and reach half. All paths between
        them would be bad.
        """
        levels = {thresholds.together: thresholds for thresholds in map(self.among, kinds)}
        known = [level for level in levels if level is not None]
        if len(known) < len(levels) or not known:
            return own
        slowest = min(known, key=lambda level: level.typical)
        is_slower = own.together is not None and own.together.typical < slowest.slow_below
        return own if is_slower else levels[slowest]

    @cached_property
    def _by_kinds(self) -> Mapping[frozenset[ComparedKind], Thresholds]:
        runs: dict[frozenset[ComparedKind], list[GroupRun]] = {}
        for run in self.runs:
            runs.setdefault(self.hardware.kinds_of(run.members), []).append(run)
        return {kinds: self._of(kinds, those) for kinds, those in runs.items()}

    def _of(self, kinds: Iterable[ComparedKind], runs: Iterable[GroupRun]) -> Thresholds:
        peers = sum(len(self.hardware.kinds[kind]) for kind in kinds)
        return Thresholds(len(self.hardware.sites), peers, tuple(runs), self.fabric)
