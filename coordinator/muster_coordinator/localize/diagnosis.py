"""The diagnosis of a sweep: who is convicted, cleared or inconclusive, by all rules together.

The rules build on each other in this order: nodes that are convicted by themselves; nodes that are cleared; paths;
leaves; links and rails of nodes; what recurs from sweep to sweep. Every node is then convicted, cleared, behind a
convicted leaf, or inconclusive.

Example: a-b is slow, c-d passes. a and b are inconclusive. After b-c passes, b is cleared. After a is slow with c and e
too, a is convicted, and no node is inconclusive.
"""

from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.evidence.prior import NO_PRIOR, SweepPrior
from muster_coordinator.localize.evidence.sensitivity import Sensitivity
from muster_coordinator.localize.likelihood.track_records import TrackRecords
from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.culprit import Culprit
from muster_coordinator.localize.rules.leaf import LeafFaults
from muster_coordinator.localize.rules.link import LinkFaults
from muster_coordinator.localize.rules.node import NodeFaults
from muster_coordinator.localize.rules.path import PathFaults
from muster_coordinator.localize.rules.recurring import RecurringFaults
from muster_coordinator.localize.rules.suspicion import OpenSuspicions
from muster_coordinator.model.probes import CheckAbilities, GroupRun


@dataclass(frozen=True)
class Diagnosis:
    """The conclusions from `evidence` of a check with these `abilities`, after the sweeps of `prior`.

    With `compares`, nodes that were compared with nothing are inconclusive. A sweep of one group asks only whether its
    nodes work together.
    """

    evidence: GroupEvidence
    abilities: CheckAbilities
    prior: SweepPrior = NO_PRIOR
    compares: bool = True

    @cached_property
    def nodes(self) -> NodeFaults:
        return NodeFaults(self.evidence, self.abilities)

    @cached_property
    def clearance(self) -> Clearance:
        return Clearance(self.nodes)

    @cached_property
    def paths(self) -> PathFaults:
        return PathFaults(self.clearance)

    @cached_property
    def leaves(self) -> LeafFaults:
        return LeafFaults(self.clearance)

    @cached_property
    def links(self) -> LinkFaults:
        return LinkFaults(self.clearance, self.paths, self.leaves, self._before)

    @cached_property
    def _before(self) -> TrackRecords:
        return TrackRecords(self.prior.sweeps, self.prior.now, self.evidence.fabric)

    @cached_property
    def recurring(self) -> RecurringFaults:
        watched = {node for sweep in self.prior.sweeps for node in sweep.suspicions}
        open_ones = OpenSuspicions(self.clearance, self.paths, self.leaves, self.links, watched)
        return RecurringFaults(open_ones, self.prior)

    @cached_property
    def culprits(self) -> tuple[Culprit, ...]:
        """All convicted parts."""
        rules = (self.nodes, self.leaves, self.links, self.paths, self.recurring)
        return tuple(culprit for rule in rules for culprit in rule.convicted.values())

    @cached_property
    def convicted(self) -> frozenset[str]:
        """The nodes that are convicted themselves, or whose link or rails are."""
        return frozenset((*self.nodes.convicted, *self.links.convicted, *self.recurring.convicted))

    @property
    def cleared(self) -> frozenset[str]:
        """The nodes that have passed; a convicted node may be among them if it had good runs too.

        Rule: not those that are slow alike. Prevents: half of the fleet has lost half by a power limit, and passes.
        """
        return self.clearance.cleared - self.evidence.hardware.slow_alike.keys()

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """What the good runs could have shown."""
        return Sensitivity(self.evidence)

    @cached_property
    def uncompared(self) -> frozenset[str]:
        """The nodes that have passed, but were compared with nothing although they should be."""
        return (self.cleared & self.sensitivity.uncompared) - self.convicted if self.compares else frozenset()

    @cached_property
    def inconclusive(self) -> tuple[str, ...]:
        """The nodes that are neither cleared nor convicted nor behind a convicted leaf."""
        settled = self.cleared | self.convicted | self.leaves.behind
        return tuple(node for node in self.evidence.sites if node not in settled)

    @cached_property
    def inconclusive_paths(self) -> tuple[Path, ...]:
        """The paths that were bad in all their runs, too often to call it chance, and that nobody is convicted for.

        Prevents: the path a-c hangs, and its pairs collide with others until the sweep has had its rounds. All nodes
        have passed elsewhere, so the sweep would pass.
        """
        return tuple(
            path
            for path, runs in self.paths.never_good.items()
            if path not in self.paths.convicted
            and self.nodes.ratios.are_worth_a_run(runs)
            and any(self.convicted.isdisjoint(run.members) for run in runs)
        )

    @cached_property
    def partners(self) -> tuple[str, ...]:
        """The nodes that can help to judge others, in topology order."""
        return tuple(filter(self.is_partner, self.evidence.sites))

    def is_partner(self, node: str) -> bool:
        """Rule: a node can help to judge others if it is healthy and has no bad runs with healthy nodes.

        Bad runs across a path that was never good do not count against it. Prevents: of two leaves the only path
        between them is bad. Each node was bad across it, and no partner would be left to try it again. Nor do those
        beside many groups count where runs share links, nor those of nodes that have also passed together.
        """
        if node not in self.clearance.healthy or node in self.convicted:
            return False
        if node not in self.nodes.suspects:
            return True
        return all(self._is_excused(run) for run in self.clearance.runs_with_healthy(node))

    def _is_excused(self, run: GroupRun) -> bool:
        """Whether a bad run of healthy nodes says nothing about either."""
        is_contended = self.evidence.thresholds.is_contended(run)
        return is_contended or run.group in self._across_bad_paths or frozenset(run.members) in self._passed_together

    @cached_property
    def _passed_together(self) -> frozenset[frozenset[str]]:
        return frozenset(frozenset(run.members) for run in self.evidence.thresholds.good_runs)

    @cached_property
    def _across_bad_paths(self) -> frozenset[str]:
        return frozenset(run.group for runs in self.paths.never_good.values() for run in runs)
