"""The order of nodes in a list, and what groups of nodes have."""

import pytest
from tests.cases import cases

from muster.errors import Refused
from muster.model import Health, ServiceState, Topology
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.node_order import grouped, sort_key


def node(name, health=Health.HEALTHY, service=ServiceState.IN_SERVICE, rack=None, *, lost=False, **labels):
    return Candidate(name, Topology(rack=rack), labels, health=health, service=service, lost=lost)


NODES = [
    node("a", rack="r2", pool="x"),
    node("b", Health.FAILED, ServiceState.CORDONED, rack="r1"),
    node("c", Health.FAILED, rack="r2", pool=""),
    node("d", Health.UNKNOWN, lost=True),
    node("e", Health.DEGRADED, rack="r1", pool="x"),
    node("f", service=ServiceState.PROBATION),
    node("g", Health.UNKNOWN),
    Candidate("h", health=Health.FAILED, service=ServiceState.IN_SERVICE, lost=True, left=True),
]


@cases(
    "sort, expected",
    [
        ("name", "abcdefgh"),
        ("urgency", "bcedgfah"),
        ("rack", "beacdfgh"),
        ("label:pool", "aebcdfgh"),
        ("health", "ebchafdg"),
    ],
)
def test_nodes_are_sorted(sort, expected):
    """By urgency as the list of `muster node list`; by a key those without it come last; then by name."""
    assert "".join(key[-1] for key in sorted(map(sort_key(sort), NODES))) == expected


@cases(
    "by, expected",
    [
        ("rack", [(None, 4, 2), ("r1", 2, 0), ("r2", 2, 0)]),
        ("label:pool", [(None, 6, 2), ("x", 2, 0)]),
        ("service", [("CORDONED", 1, 0), ("IN_SERVICE", 6, 2), ("PROBATION", 1, 0)]),
    ],
)
def test_nodes_are_grouped(by, expected):
    """By value, with the number of nodes and of lost ones."""
    assert [(group.value, group.nodes, group.lost) for group in grouped(NODES, by)] == expected


def test_a_group_says_what_its_nodes_are():
    """By health and by service state."""
    (_, first, _) = grouped(NODES, "rack")
    assert first.health == {Health.FAILED: 1, Health.DEGRADED: 1}
    assert first.service == {ServiceState.CORDONED: 1, ServiceState.IN_SERVICE: 1}


@cases("key", ["rak", "", "label:", "label"])
def test_an_unknown_key_is_refused(key):
    """With what would be right."""
    for use in (sort_key, lambda by: grouped(NODES, by)):
        with pytest.raises(Refused, match=r"unknown key .*rack"):
            use(key)
