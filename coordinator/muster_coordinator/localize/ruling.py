"""What the evidence of a sweep comes to, as the sweep's record tells it."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster_coordinator.localize.culprit import Part
from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.telling import Telling
from muster_coordinator.localize.unsettled import unsettled
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Who is at fault, cleared and suspected, what would settle each of the others, and what else was seen.

    `why_slow` says by group why it counts as slow.
    """

    failed_nodes: tuple[FailedNode, ...]
    failed_links: tuple[FailedLink, ...]
    failed_fabric: tuple[FailedFabric, ...]
    cleared: frozenset[str]
    suspects: tuple[str, ...]
    unsettled: Mapping[str, str]
    why_slow: Mapping[str, str]
    seen: tuple[str, ...]

    @property
    def open(self) -> tuple[str, ...]:
        """The nodes that are neither at fault nor cleared, in topology order."""
        return tuple(self.unsettled)

    @property
    def anything_failed(self) -> bool:
        return bool(self.failed_nodes or self.failed_links or self.failed_fabric)


def ruling_of(judgement: Judgement, check: str, metric: str | None) -> Ruling:
    """What was judged about runs of `check`, whose objectives are values of `metric`."""
    told = Telling(judgement, check, metric)
    evidence = judgement.evidence
    fabric = (*judgement.leaves.values(), *judgement.paths.values())
    return Ruling(
        failed_nodes=tuple(map(told.node, (*judgement.nodes.values(), *judgement.links.values()))),
        failed_links=tuple(told.link(culprit) for culprit in fabric if culprit.part is Part.LINK),
        failed_fabric=tuple(told.fabric(culprit) for culprit in fabric if culprit.part is not Part.LINK),
        cleared=judgement.cleared - judgement.failed,
        suspects=tuple(filter(judgement.is_suspect, judgement.open)),
        unsettled=unsettled(judgement),
        why_slow={trial.group: told.why_slow(trial) for trial in evidence.trials if evidence.is_slow(trial)},
        seen=tuple(told.seen()),
    )
