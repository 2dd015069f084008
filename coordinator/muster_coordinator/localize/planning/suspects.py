"""The first groups of a sweep after others: suspects of earlier sweeps run beside partners that were good before.

The idea: a suspect that meets another suspect teaches nothing new. Beside a partner that has passed in an earlier sweep
and that nobody doubts, its run counts. The cost is the same, because every node runs once anyway.

Example: a4 is suspected since Monday. It meets a2, which passed on Monday, instead of a node drawn from all.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from muster_coordinator.localize.evidence.hardware import KnownHardware
from muster_coordinator.localize.evidence.prior import SweepPrior
from muster_coordinator.localize.likelihood.track_record import TrackRecord
from muster_coordinator.localize.planning.partners import pools_by_kind
from muster_coordinator.model.probes import Probe, Site

SUSPECT_RUNS = 4
"""In how many runs with others a suspect takes part, as long as the suspicion is open."""

SUSPECTED = "{} is suspected since sweep {} and runs with {}, which was good before"


def with_suspects(
    records: Sequence[TrackRecord], here: Collection[str], hardware: KnownHardware, prior: SweepPrior, seed: str
) -> Iterator[Probe]:
    """A pair of each suspect with a partner that is `here`. Suspects without one are left to other groups."""
    good = {node for sweep in prior.sweeps for node in sweep.cleared} - {record.node for record in records}
    pools = pools_by_kind(filter(good.__contains__, here), hardware, seed, good, prior.doubted)
    for record in records:
        pool, met = pools[hardware.kind_of(record.node)], partners_met(record, hardware.sites)
        if (partner := pool.take_near(record.node, met, set())) is not None:
            yield Probe((record.node, partner), SUSPECTED.format(record.node, record.since.id, partner))


def partners_met(record: TrackRecord, sites: Mapping[str, Site]) -> set[str]:
    """The nodes at these `sites` with which the node was bad. Other nodes may have gone since."""
    return {node for partners in record.bad for node in partners if node in sites}
