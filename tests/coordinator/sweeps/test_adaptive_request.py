"""How an adaptive sweep that somebody asks for is planned."""

from typing import Any

import pytest

from muster.check import CheckInfo, Needs, Scope
from muster.errors import Refused
from muster.model import Device, Inventory, Topology
from muster.wire.messages import InventoryReport, Presence
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, PresenceSeen, SweepRequested
from muster_coordinator.model.probes import CheckAbilities, Site
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps.planning import plan_sweep

COLLECTIVE = CheckInfo(
    name="collective",
    summary="all-reduce",
    scope=Scope.GROUP,
    needs=Needs.IDLE_NODE,
    cadence_s=None,
    timeout_s=20.0,
    objective="busbw_gbps",
    params={"type": "object", "properties": {}, "additionalProperties": False},
)
REQUEST = SweepRequested("s", SweepRequest(check="collective"))


def fleet(*, count: int, devices: int) -> Fleet:
    """Nodes with so many devices each, four to a leaf."""
    made = Fleet(name="f", epoch=1)
    for number in range(count):
        head: dict[str, Any] = {"id": f"m{number}", "sent_at": 1.0, "node": f"n{number:02}"}
        inventory = Inventory(
            topology=Topology(rack=f"r{number // 2}", leaf=f"l{number // 4}"),
            devices=tuple(Device(index=n, uuid=f"u{number}-{n}", model="H100") for n in range(devices)),
        )
        made.handle(InventorySeen(InventoryReport(**head, inventory=inventory, checks=(COLLECTIVE,))), 1.0)
        made.handle(PresenceSeen(Presence(**head, online=True)), 1.0)
    return made


@pytest.mark.parametrize(("devices", "alone"), [(0, False), (1, False), (8, True)])
def test_the_plan_knows_where_nodes_stand_and_what_a_run_alone_tells(devices: int, alone: bool) -> None:
    """A node alone has something to exchange only among several devices of its own."""
    plan = plan_sweep(REQUEST, fleet(count=8, devices=devices)._registry.nodes, {})
    assert plan.sites[5] == Site("n05", "r2", "l1", "H100" if devices else None, devices, places_itself=True)
    assert plan.abilities == CheckAbilities(alone=alone, by_rail=False)


def test_the_first_groups_cross_leaves() -> None:
    """Every node is invited into a pair with one from another leaf."""
    busy = fleet(count=16, devices=8)
    busy.handle(REQUEST, 2.0)
    (record,) = busy.sweeps()
    pairs = [group.members for group in record.rounds[0].groups]
    assert sorted(node for pair in pairs for node in pair) == [f"n{number:02}" for number in range(16)]
    assert all(int(one[1:]) // 4 != int(other[1:]) // 4 for one, other in pairs)


def test_one_node_is_refused() -> None:
    """There is nobody to compare it with."""
    with pytest.raises(Refused, match="at least 2 nodes"):
        fleet(count=1, devices=8).handle(REQUEST, 2.0)
