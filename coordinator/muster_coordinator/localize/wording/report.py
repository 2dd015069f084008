"""The part of a sweep's record that comes from the diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.fabric import Path
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.wording.missing_evidence import missing_evidence
from muster_coordinator.localize.wording.sentences import Sentences
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode, Suspicion


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisReport:
    """The convicted parts, the cleared nodes and the suspects of a sweep, and the suspicions that it leaves open.

    `missing_evidence` says for each inconclusive node, and for each node behind a convicted leaf, which evidence it
    lacks. `inconclusive_paths` were bad in all their runs, and not often enough to convict them. `hardware` has the
    nodes of each kind of hardware that were compared only with each other; it is empty if all were. `why_slow` says by
    group why it counts as slow. `observations` are sentences about everything else. A node that loses a smaller share
    than `smallest_loss` would not have been found.
    """

    failed_nodes: tuple[FailedNode, ...]
    failed_links: tuple[FailedLink, ...]
    failed_fabric: tuple[FailedFabric, ...]
    cleared: frozenset[str]
    suspects: tuple[str, ...]
    suspicions: tuple[Suspicion, ...]
    missing_evidence: Mapping[str, str]
    inconclusive_paths: tuple[Path, ...]
    hardware: Mapping[str, tuple[str, ...]]
    why_slow: Mapping[str, str]
    observations: tuple[str, ...]
    smallest_loss: float | None

    @property
    def inconclusive(self) -> tuple[str, ...]:
        """The nodes that are neither convicted nor cleared, in topology order."""
        return tuple(self.missing_evidence)

    @property
    def anything_failed(self) -> bool:
        return bool(self.failed_nodes or self.failed_links or self.failed_fabric)


def report_of(diagnosis: Diagnosis, check: str, metric: str | None) -> DiagnosisReport:
    """The report on runs of `check`, whose objectives are values of `metric`."""
    sentences = Sentences(diagnosis, check, metric)
    runs, thresholds = diagnosis.evidence.runs, diagnosis.evidence.thresholds
    of_nodes = (
        *diagnosis.nodes.convicted.values(),
        *diagnosis.links.convicted.values(),
        *diagnosis.recurring.convicted.values(),
    )
    fabric = (*diagnosis.leaves.convicted.values(), *diagnosis.paths.convicted.values())
    return DiagnosisReport(
        failed_nodes=tuple(map(sentences.node, of_nodes)),
        failed_links=tuple(sentences.link(culprit) for culprit in fabric if culprit.part is Part.LINK),
        failed_fabric=tuple(sentences.fabric(culprit) for culprit in fabric if culprit.part is not Part.LINK),
        cleared=diagnosis.cleared - diagnosis.convicted - diagnosis.uncompared,
        suspects=tuple(filter(diagnosis.nodes.is_suspect, diagnosis.inconclusive)),
        suspicions=diagnosis.recurring.suspicions,
        missing_evidence=missing_evidence(diagnosis),
        inconclusive_paths=diagnosis.inconclusive_paths,
        hardware=sentences.hardware.compared,
        why_slow={run.group: sentences.why_slow(run) for run in runs if thresholds.is_slow(run)},
        observations=tuple(sentences.observations()),
        smallest_loss=diagnosis.sensitivity.smallest_loss,
    )
