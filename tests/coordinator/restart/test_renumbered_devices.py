"""A reboot without a broken GPU gives its index to a healthy one: nobody may pull the wrong card."""

from tests.coordinator.restart.lives import CHECK

from muster.model import Device, Finding, Inventory, Severity, Verdict
from muster.wire.messages import InventoryReport
from muster_coordinator.model.events import InventorySeen
from muster_coordinator.views.node_health import health_report


def inventory(uuid):
    """The GPU with the index 0 has this UUID."""
    made = Inventory(devices=(Device(index=0, uuid=uuid, model="H100"),))
    return InventorySeen(InventoryReport(id="m", sent_at=1.0, node="n1", inventory=made, checks=(CHECK,)))


def named(lives):
    """The UUIDs of the GPU that the node's case and its conditions name."""
    view = lives.fleet.node("n1", lives.now)
    (cause,) = lives.fleet.case("n1").causes
    (shown,) = health_report(view, lives.now).findings
    return cause.uuid, shown.uuid


async def test_a_finding_names_the_gpu_that_it_was_about(lives):
    """Before and after a restart of the coordinator, until a later run finds something about the GPU that is there."""
    await lives.feed(inventory("GPU-broken"))
    gone = Finding(code="nvml.device_lost", summary="gone", severity=Severity.ERROR, device=0)
    failed = lives.run("n1", Verdict.FAIL)
    (run,) = failed.message.runs
    report = failed.message.model_copy(update={"runs": (run.model_copy(update={"findings": (gone,)}),)})
    await lives.feed(type(failed)(report))
    await lives.feed(inventory("GPU-healthy"))
    assert named(lives) == ("GPU-broken", "GPU-broken")
    await lives.feed(lives.run("n1"))
    assert named(lives) == ("GPU-broken", "GPU-broken")
    await lives.begin()
    assert named(lives) == ("GPU-broken", "GPU-broken")
