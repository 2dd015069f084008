"""Nodes that are bad for no known reason in one sweep after the other.

The idea: one sweep cannot tell a fault that comes and goes from chance; several can. The suspicions of earlier sweeps
and of this one make the track record of a node. It is convicted if chance hardly ever makes such a record
(`likelihood/track_record.py`).

Example: of 64 nodes, a4 was slow with c1, with b2 and with a1 in three sweeps, and passed three times in between. In
this sweep it is slow with a3. Four of seven runs were bad: a4 is convicted.

Takes time in proportion to the suspects, times their runs in the remembered sweeps.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from muster_coordinator.localize.evidence.prior import THIS_SWEEP, PastSweep, SweepPrior
from muster_coordinator.localize.likelihood.likelihood_ratio import bound
from muster_coordinator.localize.likelihood.track_record import TrackRecord
from muster_coordinator.localize.likelihood.track_records import TrackRecords
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.rules.evidence_against import draws
from muster_coordinator.localize.rules.suspicion import OpenSuspicions
from muster_coordinator.localize.significance import FALSE_NODES, liars_may_explain
from muster_coordinator.model.sweep_records import Suspicion


@dataclass(frozen=True)
class RecurringFaults:
    """The nodes that this and earlier sweeps convict together, after all rules for one sweep left these suspicions."""

    open: OpenSuspicions
    prior: SweepPrior

    @cached_property
    def convicted(self) -> Mapping[str, Culprit]:
        """Rule: a node is convicted if it was bad in this and in an earlier sweep, too often for chance and for liars.

        The strongest suspect goes first, because it explains its runs with others. Prevents: a4 is bad with a1, b2, c1
        and a3. Each of these has a bad run, too, which says nothing about it once a4 is convicted.
        """
        found: dict[str, Culprit] = {}
        candidates = filter(self._is_at_fault, self.records.strongest) if self.prior.sweeps else ()
        for candidate in candidates:
            record = self.records.of(candidate.node, found.keys())
            if record is not None and self._is_at_fault(record):
                found[record.node] = self._culprit(record)
        return found

    @cached_property
    def suspicions(self) -> tuple[Suspicion, ...]:
        """The suspicions that remain."""
        convicted = self.convicted.keys()
        return tuple(
            suspicion.model_copy(update={"bad": tuple(filter(convicted.isdisjoint, suspicion.bad))})
            for node, suspicion in self.open.by_node.items()
            if node not in convicted
        )

    @property
    def still_suspected(self) -> list[TrackRecord]:
        """The track records with an open suspicion of the nodes that earlier sweeps suspected and none convicts."""
        suspects = self.records.suspects
        return [track for track in suspects if track.bad_earlier and track.node not in self.convicted]

    @cached_property
    def records(self) -> TrackRecords:
        """The track records with this sweep as the latest."""
        clearance, links = self.open.clearance, self.open.links
        this = PastSweep(
            id=THIS_SWEEP,
            ended_at=self.prior.now,
            passes=1,
            cleared=clearance.cleared,
            convicted=clearance.nodes.convicted.keys() | links.convicted.keys(),
            suspicions=self.open.by_node,
        )
        return TrackRecords((this, *self.prior.sweeps), self.prior.now, clearance.nodes.evidence.fabric)

    def _is_at_fault(self, record: TrackRecord) -> bool:
        """Whether neither chance nor liars nor a common switch explain the bad runs.

        Rule: at least one is of this sweep, and one of an earlier one. Prevents: a4 was repaired last week, without a
        note. Its old runs alone would convict it once more.
        """
        if not record.is_bad_now or not record.bad_earlier or self.records.have_common_cause:
            return False
        nodes = len(self.open.clearance.nodes.evidence.sites)
        return record.ratio > math.exp(bound(nodes)) and (record.was_bad_alone or not self._may_be_liars(record))

    def _may_be_liars(self, record: TrackRecord) -> bool:
        """Whether the partners in its bad runs may all be liars, by one of the ways to choose bad runs from all."""
        evidence = self.open.clearance.nodes.evidence
        drawn = [*draws(evidence, record.node, record.bad)]
        accepted, peers = FALSE_NODES / math.comb(record.runs, len(drawn)), len(evidence.hardware.peers(record.node))
        return liars_may_explain(len(evidence.sites), drawn, accepted, peers=peers)

    def _culprit(self, record: TrackRecord) -> Culprit:
        """The node or its link, with its bad runs in this sweep and the track record."""
        runs = [run for run in self.open.unexplained(record.node) if run.others(record.node) in record.bad]
        part = Part.NODE_LINK if record.is_link else Part.NODE
        culprit = self.open.clearance.nodes.culprit(part, (record.node,), runs, intermittent=True)
        return replace(culprit, track=record)
