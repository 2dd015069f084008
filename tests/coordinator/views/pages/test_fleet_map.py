"""The map: what each node looks like, where it stands, and which leaves are bad."""

import pytest
from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import facts, row

from muster.model import Health, ServiceState
from muster_coordinator.views.pages.fleet_facts import CoordinatorFacts
from muster_coordinator.views.pages.fleet_map import fleet_map
from muster_coordinator.views.pages.fleet_page import fleet_page
from muster_coordinator.views.pages.page_row import RowCondition, as_stale


@cases(
    "health, service, lost, symbol, label",
    [
        (Health.HEALTHY, ServiceState.IN_SERVICE, False, "healthy", "n1: healthy"),
        (Health.HEALTHY, ServiceState.ACCEPTING, False, "new", "n1: new, ACCEPTING"),
        (Health.HEALTHY, ServiceState.PROBATION, False, "out", "n1: out, PROBATION"),
        (Health.DEGRADED, ServiceState.IN_SERVICE, False, "degraded", "n1: degraded"),
        (Health.SUSPECT, ServiceState.HELD, False, "suspect", "n1: suspect, HELD"),
        (Health.FAILED, ServiceState.IN_SERVICE, False, "failed", "n1: failed"),
        (Health.FAILED, ServiceState.CORDONED, False, "failed-out", "n1: failed, CORDONED"),
        (Health.FAILED, ServiceState.CORDONED, True, "failed-out", "n1: failed, silent, CORDONED"),
        (Health.UNKNOWN, ServiceState.ACCEPTING, False, "unknown", "n1: unknown, ACCEPTING"),
        (Health.UNKNOWN, ServiceState.IN_SERVICE, True, "silent", "n1: silent"),
        (Health.DEGRADED, ServiceState.CORDONED, True, "silent-out", "n1: silent, CORDONED"),
    ],
)
def test_a_cell_says_by_its_form_what_its_colour_says(health, service, lost, symbol, label):
    """And in words, for those who see neither."""
    (cell,) = fleet_map([row("n1", health, service, lost=lost)], {}).blocks[0].racks[0].rows[0].cells
    assert (cell.symbol, cell.label) == (symbol, label)


def test_a_dry_run_is_marked():
    """Nobody takes the node for drained."""
    made = fleet_map([row("n1", Health.FAILED, ServiceState.CORDONED, dry_run=True)], {})
    assert made.blocks[0].racks[0].rows[0].cells[0].label == "n1: failed, CORDONED (dry run)"


def test_what_nobody_hears_is_never_shown_as_healthy():
    """While the broker is away, faults stand, and all other nodes are unknown."""
    rows = [row("n1"), row("n2", Health.FAILED), row("n3", service=ServiceState.PROBATION)]
    assert [as_stale(each).condition for each in rows] == [
        RowCondition.UNKNOWN,
        RowCondition.FAILED,
        RowCondition.UNKNOWN,
    ]
    page = fleet_page(facts(*rows, coordinator=CoordinatorFacts(is_connected=False)))
    assert dict(page.map.counts) == {RowCondition.FAILED: 1, RowCondition.UNKNOWN: 2}


def test_nodes_stand_by_block_rack_and_leaf():
    """r2 comes before r10, and nodes without a place come last."""
    places = {
        "n1": {"block": "b1", "rack": "r10", "leaf": "l1"},
        "n2": {"block": "b1", "rack": "r2", "leaf": "l2"},
        "n10": {"block": "b1", "rack": "r2", "leaf": "l1"},
        "n3": {"block": "b1", "rack": "r2", "leaf": "l1"},
        "n4": {},
    }
    made = fleet_map([row(name, place=where) for name, where in places.items()], {})
    drawn = [
        (block.name, rack.name, line.leaf, [cell.node for cell in line.cells])
        for block in made.blocks
        for rack in block.racks
        for line in rack.rows
    ]
    assert drawn == [
        ("b1", "r2", "l1", ["n3", "n10"]),
        ("b1", "r2", "l2", ["n2"]),
        ("b1", "r10", "l1", ["n1"]),
        (None, None, None, ["n4"]),
    ]
    assert [block.is_placed for block in made.blocks] == [True, False]
    assert [rack.select for rack in made.blocks[0].racks] == ["block=b1 rack=r2", "block=b1 rack=r10"]


def test_cells_do_not_overlap_and_stay_in_the_drawing():
    """Also in a rack whose leaf has more nodes than fit into a row."""
    rows = [row(f"n{number}", place={"rack": "r1", "leaf": "l1"}) for number in range(40)]
    (rack,) = fleet_map(rows, {}).blocks[0].racks
    corners = {(cell.x, line.y) for line in rack.rows for cell in line.cells}
    assert len(corners) == 40
    assert all(x + 12 <= rack.width and y + 12 <= rack.height for x, y in corners)


@pytest.mark.parametrize(
    ("bad", "nodes", "convicted", "is_striped"),
    [(0, 4, {}, False), (1, 4, {}, False), (2, 4, {}, True), (1, 1, {}, False), (0, 4, {"l1": "by a sweep"}, True)],
)
def test_a_leaf_that_is_bad_as_a_whole_is_a_stripe(bad, nodes, convicted, is_striped):
    """At least half of it, or a sweep has convicted it; one node alone is no leaf."""
    where = {"block": "b1", "rack": "r1", "leaf": "l1"}
    rows = [row(f"n{n}", Health.FAILED if n < bad else Health.HEALTHY, place=where) for n in range(nodes)]
    made = fleet_map(rows, convicted)
    assert made.blocks[0].racks[0].rows[0].is_striped is is_striped
    assert [(leaf.name, leaf.bad, leaf.nodes) for leaf in made.bad_leaves] == [("l1", bad, nodes)] * is_striped


def test_a_node_that_has_left_is_not_on_the_map():
    """It is no longer part of the fleet."""
    assert fleet_map([row("n1", lost=True, left=True)], {}).blocks == ()


def test_in_a_large_fleet_only_what_is_not_healthy_is_a_tab_stop():
    """Nobody presses the key 10,000 times; the table of the rack has the others."""
    rows = [row(f"n{number}", Health.FAILED if number == 7 else Health.HEALTHY) for number in range(300)]
    (rack,) = fleet_map(rows, {}).blocks[0].racks
    assert [cell.node for line in rack.rows for cell in line.cells if cell.is_tab_stop] == ["n7"]
