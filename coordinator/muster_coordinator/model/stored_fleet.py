"""What the store holds of a fleet when the coordinator starts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from muster.model import Run
from muster_coordinator.model.baselines import BaselineRecord, FingerprintRecord, LevelsRecord, ResultsRecord
from muster_coordinator.model.evidence_record import EvidenceRecord
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.quarantine import FleetState, QuarantineRecord
from muster_coordinator.model.quiet_runs import RunBase
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.model.transitions import TransitionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFleet:
    """What the store holds of a fleet, for `Fleet.restore`.

    `evidence` is what is known about nodes. For nodes without it, `runs` are the last few of every check that said
    anything (not SKIPPED), oldest first. `streams` maps (node, stream) to the sequence number that is stored through;
    `sweeps` are those that have not ended; `references` are all, by number. `baselines` and `fingerprints` are all
    comparisons, and `levels` and `results` the devices of each by its id, which are read only when they are iterated
    over. `quarantine` are its records, and `transitions` the latest of each node. `bases` are the whole runs that new
    runs may be like, of each check the latest last. `tested` is when a sweep cleared or convicted each node last.
    `swept` are the last ended sweeps of several nodes, the oldest first, without their groups.
    """

    nodes: tuple[NodeRecord, ...] = ()
    evidence: tuple[EvidenceRecord, ...] = ()
    runs: tuple[Run, ...] = ()
    streams: Mapping[tuple[str, str], int] = field(default_factory=dict)
    sweeps: tuple[SweepRecord, ...] = ()
    references: tuple[ReferenceRecord, ...] = ()
    baselines: tuple[BaselineRecord, ...] = ()
    levels: Mapping[str, Iterable[LevelsRecord]] = field(default_factory=dict)
    fingerprints: tuple[FingerprintRecord, ...] = ()
    results: Mapping[str, Iterable[ResultsRecord]] = field(default_factory=dict)
    quarantine: tuple[QuarantineRecord, ...] = ()
    transitions: tuple[TransitionRecord, ...] = ()
    bases: tuple[RunBase, ...] = ()
    swept: tuple[SweepRecord, ...] = ()
    tested: Mapping[str, float] = field(default_factory=dict)
    fleet_state: FleetState = FleetState()  # noqa: RUF009 (it is frozen)
