"""What `muster node list` shows of each node, in a fifteenth of the bytes of the whole node.

A node with eight GPUs and eight ports has 3.8 KB as `NodeView`, most of it the list of its plugins, and 0.25 KB as
`NodeSummary`. Ten thousand nodes have 38 MB and 2.5 MB.
"""

from collections import Counter

from muster_coordinator.model.findings import NUMBERS
from muster_coordinator.model.nodes import DeviceCount, FindingSummary, NodeFinding, NodeState, NodeSummary, NodeView


def node_summary(view: NodeView) -> NodeSummary:
    """The summary of a node; its device models and findings are in the order of the view."""
    models = Counter((device.model, device.simulated) for device in view.devices)
    return NodeSummary(
        **{name: getattr(view, name) for name in NodeState.model_fields},
        devices=tuple(
            DeviceCount(model=model, simulated=simulated, count=count) for (model, simulated), count in models.items()
        ),
        findings=tuple(map(_finding, view.findings)),
    )


def _finding(finding: NodeFinding) -> FindingSummary:
    numbers = {name: number for name in NUMBERS if isinstance(number := finding.evidence.get(name), int)}
    return FindingSummary(code=finding.code, severity=finding.severity, device=finding.device, evidence=numbers)
