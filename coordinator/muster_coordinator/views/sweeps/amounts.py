"""The metric that the groups of a sweep are compared by, and the typical amounts of healthy groups of each kind."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.model import Metric, Topology
from muster_coordinator.localize.evidence.fabric import KnownFabric
from muster_coordinator.localize.evidence.hardware import KnownHardware
from muster_coordinator.localize.evidence.run_kinds import RunKind
from muster_coordinator.localize.evidence.sweep_thresholds import SweepThresholds
from muster_coordinator.localize.wording.hardware_words import with_hardware
from muster_coordinator.localize.wording.sentences import amount
from muster_coordinator.model.probes import Site
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord
from muster_coordinator.sweeps.group_run import beside_of, group_run_of

KINDS = {
    RunKind.ALONE: "of one node alone",
    RunKind.INSIDE: "inside a leaf",
    RunKind.ACROSS: "across leaves",
}


@dataclass(frozen=True, slots=True)
class Amounts:
    """The metric, and the thresholds by which the groups of each kind were judged."""

    metric: str | None
    thresholds: SweepThresholds

    def words(self, value: float | None) -> str:
        """A value with its unit."""
        return amount(value, self.metric)

    def typical(self, group: GroupRecord) -> float | None:
        """The typical amount of groups like this one; None if there are too few."""
        threshold = self.thresholds.of(group_run_of(group))
        return None if threshold is None else threshold.typical

    def kind(self, group: GroupRecord) -> str:
        """The groups that this one is compared with, in words; of several nodes, while few have crossed leaves."""
        run = group_run_of(group)
        kind = self.thresholds.kind_of(run)
        several = kind is not RunKind.ALONE and not self.thresholds.like(run).are_kinds_apart
        groups = "of several nodes" if several else KINDS[kind]
        return groups + with_hardware(self.thresholds.hardware, group.members)


def amounts_of(record: SweepRecord, places: Mapping[str, Topology]) -> Amounts:
    """The amounts of a complete record: typical values have the same runs and bounds as in the sweep's judgement.

    `places` are the known positions of nodes; where they have moved since, the amounts may differ from those of then.

    Prevents: 40 nodes, of which two may lie, and two of three controls have run alone. The sweep compares no node alone
    yet; a bound for a smaller fleet would show a typical amount that the sweep has never used.
    """
    rounds = [[group for group in stage.groups if group.is_evidence] for stage in record.rounds]
    kind_of = {node: kind for kind, nodes in record.hardware.items() for node in nodes}
    sites = {node: Site(node, leaf=places.get(node, Topology()).leaf) for node in record.nodes}
    runs = tuple(
        group_run_of(group, beside=beside)
        for groups in rounds
        for group, beside in zip(groups, beside_of(groups), strict=True)
    )
    return Amounts(record.metric, SweepThresholds(runs, KnownFabric(sites), KnownHardware(sites, kind_of)))


def numbers(metric: Metric) -> list[float]:
    """The known numbers of a metric: one, or one for each device."""
    return [number for number in (metric if isinstance(metric, list) else [metric]) if number is not None]
