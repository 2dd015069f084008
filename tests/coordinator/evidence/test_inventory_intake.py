"""Which inventories of a node are taken, and which are known."""

from dataclasses import replace

from tests.coordinator.fleets import inventory, presence

from muster_coordinator.fleet import Fleet


def test_an_inventory_that_waits_hides_the_one_before_it():
    """A node that goes back to its former inventory before the newer one is taken must get its former one."""
    made = Fleet(name="test", epoch=7, bytes_a_day=3_000.0)
    made.handle(presence("a"), 0.0)
    former, newer = (replace(inventory("a", rack=rack), digest=rack) for rack in ("r1", "r2"))
    made.handle(former, 0.0)
    assert made.inventories.is_known("a", "r1")
    made.handle(newer, 1.0)  # beyond its quota
    assert not made.inventories.is_known("a", "r1")
    made.handle(former, 2.0)
    made.handle(presence("a"), 86_400.0)
    node = made.node("a", 86_400.0)
    assert node is not None
    assert (node.topology.rack, made.inventories.is_known("a", "r1")) == ("r1", True)
