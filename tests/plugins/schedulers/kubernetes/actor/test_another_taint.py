"""The setting `taint` may be changed while nodes are out: the old taint goes, wherever we are interrupted."""

import pytest

from muster import Effect, Mark
from muster_plugins.schedulers.kubernetes.api_error import ApiError
from muster_plugins.schedulers.kubernetes.client import KubernetesClient

PATCHES = ("no old taint", "the mark with the new one", "the new taint")


@pytest.fixture
def interrupted_after(monkeypatch):
    """Has nothing be patched any more after so many patches, until the function that this gives is called."""
    patch = KubernetesClient.patch

    def order(patches):
        left = [*range(patches)]

        async def some(client, node, wanted):
            if not left:
                raise ApiError("interrupted")
            left.pop()
            return await patch(client, node, wanted)

        monkeypatch.setattr(KubernetesClient, "patch", some)
        return lambda: monkeypatch.setattr(KubernetesClient, "patch", patch)

    return order


def taints(standin):
    """All but the one that Kubernetes itself adds to whatever is cordoned."""
    keys = {taint["key"] for taint in standin.node("n1")["spec"].get("taints", [])}
    return keys - {"node.kubernetes.io/unschedulable"}


@pytest.fixture
async def other(standin, coordinator, new_coordinator):
    """A coordinator that finds the node taken out by one with another taint."""
    await coordinator.tell("CORDONED")
    return new_coordinator({"kubeconfig": str(standin.kubeconfig()), "taint": "example.com/bad:NoSchedule"})


@pytest.mark.parametrize("after", ["PROBATION", "IN_SERVICE"])
@pytest.mark.parametrize("patches", range(len(PATCHES)))
async def test_the_old_taint_goes(standin, other, interrupted_after, patches, after):
    """When the node goes on to its next state, be it out or back."""
    go_on = interrupted_after(patches)
    outcome = await other.tell("PROBATION")
    assert (outcome.effect, outcome.detail.endswith("interrupted")) == (Effect.FAILED, True)
    assert standin.node("n1")["spec"]["unschedulable"]
    go_on()
    assert (await other.tell(after)).effect is Effect.DONE
    assert taints(standin) == ({"example.com/bad"} if after == "PROBATION" else set())
    assert (await other.see()).mark is (Mark.OURS if after == "PROBATION" else Mark.NONE)


@pytest.mark.parametrize("patches", [1, 2])
async def test_a_node_without_its_taint_is_told_of(standin, other, interrupted_after, patches):
    """So that the coordinator that comes next tells again what was interrupted."""
    go_on = interrupted_after(patches)
    await other.tell("PROBATION")
    assert ((await other.see()).incomplete, taints(standin)) == (True, set())
    go_on()
    await other.tell("PROBATION")
    assert not (await other.see()).incomplete
