"""Findings about how a node is set up: its machine type is unknown although references wait for it, or is in dispute.

They say what a person has to set. They are no evidence about the node, so they change neither its health nor its
service state, and no policy sees them.
"""

from functools import lru_cache

from muster.machine_type import SET_IT, disagreement
from muster.model import Instant, Inventory, MachineType, Severity
from muster_coordinator.model.nodes import NodeFinding

SETUP = "node"
"""The `check` of such a finding. No check of this name exists."""

TYPE_UNKNOWN = "node.machine_type_unknown"
TYPE_DISPUTED = "node.machine_type_disputed"


def setup_findings(
    inventory: Inventory, machine_types: tuple[MachineType, ...], since: Instant
) -> tuple[NodeFinding, ...]:
    """The findings about a node with this inventory, about which several sources say these `machine_types`."""
    found = []
    if waiting := inventory.waiting_references:
        text = f"the agent does not know the machine type, and references wait for it: {'; '.join(waiting)}; {SET_IT}"
        found.append(_finding(TYPE_UNKNOWN, text, waiting))
    if said := disagreement(machine_types):
        text = f"sources disagree about the machine type, the first one counts: {said}; to decide, {SET_IT}"
        found.append(_finding(TYPE_DISPUTED, text, tuple(each.name for each in machine_types)))
    return tuple(finding.model_copy(update={"since": since, "seen": since}) for finding in found)


@lru_cache(maxsize=64)  # many nodes have the same one, and each list of nodes needs it again
def _finding(code: str, text: str, evidence: tuple[str, ...]) -> NodeFinding:
    return NodeFinding(
        code=code,
        summary=text,
        severity=Severity.UNKNOWN,
        evidence={"machine_type": [*evidence]},
        check=SETUP,
        run="",
        since=0.0,
    )
