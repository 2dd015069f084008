"""The plugin `kubernetes` as a coordinator calls it."""

from typing import Any

import pytest

from muster import ActionOutcome, NodeHealthReport, SchedulerNode, Survey, Transition
from muster.config import Config, Settings
from muster_plugins.schedulers.kubernetes import plugin
from muster_plugins.schedulers.kubernetes.node import KubernetesNode
from muster_plugins.schedulers.kubernetes.settings import KubernetesActorSettings

AT = 1_800_000_000.0
"""2027-01-15T08:00:00Z"""


def make_transition(after: str = "CORDONED", **more: Any) -> Transition:
    """A transition of node n1; its id is that of its state unless it is given."""
    reason = {"before": "IN_SERVICE", "reason": "GPU 3 has fallen off the bus", "codes": ("nvml.device_lost",)}
    return Transition.model_validate({"id": f"to-{after}", "node": "n1", "after": after, "at": AT, **reason, **more})


class Coordinator:
    """Calls the plugin's hooks, with these settings of the table `[plugins.kubernetes]`."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.config = Config(Settings.model_validate({"plugins": {"kubernetes": table}}))

    async def tell(self, after: str = "CORDONED", **more: Any) -> ActionOutcome:
        outcome = await plugin.muster_transition(self.config, make_transition(after, **more))
        assert outcome is not None
        return outcome

    async def survey(self) -> Survey:
        survey = await plugin.muster_survey(self.config)
        assert survey is not None
        return survey

    async def see(self, name: str = "n1") -> SchedulerNode:
        """The node in a survey."""
        (found,) = (node for node in (await self.survey()).nodes if node.node == name)
        return found

    async def show(self, *reports: NodeHealthReport) -> None:
        await plugin.muster_node_health(self.config, reports)

    async def close(self) -> None:
        await plugin.muster_close(self.config)


@pytest.fixture
def transition():
    """Makes transitions; see `make_transition`."""
    return make_transition


@pytest.fixture
def as_node():
    """Makes the actor's view of a node: `as_node(spec={...}, labels={...}, annotations={...}, ...)`."""

    def make(**more: Any) -> KubernetesNode:
        spec, status = more.pop("spec", {}), more.pop("status", {})
        metadata = {"name": "n1", "uid": "u1", "resourceVersion": "7", **more}
        return KubernetesNode.model_validate({"metadata": metadata, "spec": spec, "status": status})

    return make


@pytest.fixture
def settings():
    """The actor's settings: `settings(taint="")`."""
    return KubernetesActorSettings


@pytest.fixture
async def new_coordinator():
    """Makes coordinators, and closes them at the end: `new_coordinator(actor={...})`."""
    made = []

    def make(actor: dict[str, Any], **table: Any) -> Coordinator:
        made.append(Coordinator({"actor": {"enabled": True, **actor}, **table}))
        return made[-1]

    yield make
    for coordinator in made:
        await coordinator.close()


@pytest.fixture
def coordinator(standin, new_coordinator):
    """A coordinator that is the administrator of a cluster with the node n1."""
    standin.add_node("n1")
    return new_coordinator({"kubeconfig": str(standin.kubeconfig())})
