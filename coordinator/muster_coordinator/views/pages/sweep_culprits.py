"""What sweeps convict, by name, as pages show it."""

from collections.abc import Iterator
from dataclasses import dataclass

from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode, SweepRecord
from muster_coordinator.views.sweeps.naming import fabric, failed_part


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepCulprit:
    """A convicted node, link, leaf or path: `nodes` have pages of their own, and `part` says the rest of its name."""

    kind: str
    nodes: tuple[str, ...] = ()
    part: str = ""
    code: str
    confidence: float
    reasons: tuple[str, ...]


def sweep_culprits(sweep: SweepRecord) -> Iterator[SweepCulprit]:
    """Everything that the sweep convicts: nodes first, then links, then parts of the fabric."""
    for node in sweep.failed_nodes:
        yield _culprit(node, "node", (node.node,), failed_part(node))
    for link in sweep.failed_links:
        yield _culprit(link, "link", link.between)
    for part in sweep.failed_fabric:
        kind, _, name = fabric(part).partition(" ")
        yield _culprit(part, kind, part=name)


def _culprit(
    found: FailedNode | FailedLink | FailedFabric, kind: str, nodes: tuple[str, ...] = (), part: str = ""
) -> SweepCulprit:
    return SweepCulprit(
        kind=kind, nodes=nodes, part=part, code=found.code, confidence=found.confidence, reasons=found.reasons
    )
