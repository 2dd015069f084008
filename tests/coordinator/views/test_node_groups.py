"""Groups of nodes as text."""

import pytest

from muster_coordinator.views.node_groups import group_list, listed_group
from muster_coordinator.views.node_list import MOST_FINE


def group(value, nodes=4, lost=0, cordoned=0, **health):
    service = {"IN_SERVICE": nodes - cordoned, "CORDONED": cordoned}
    known = {"HEALTHY": nodes - sum(health.values()), **health}
    return {"value": value, "nodes": nodes, "health": known, "service": service, "lost": lost}


GROUPS = [group(None), group("r1"), group("r2", lost=1), group("r3", FAILED=1, cordoned=2), group("r4", FAILED=2)]


def test_the_groups_with_faults_come_first():
    """With a column for each state that some node has."""
    assert [line.split() for line in group_list(GROUPS, "rack", shows_all=True).splitlines()] == [
        ["RACK", "NODES", "FAILED", "HEALTHY", "CORDONED", "IN_SERVICE", "LOST"],
        ["r4", "4", "2", "2", "0", "4", "0"],
        ["r3", "4", "1", "3", "2", "2", "0"],
        ["r2", "4", "0", "4", "0", "4", "1"],
        ["-", "4", "0", "4", "0", "4", "0"],
        ["r1", "4", "0", "4", "0", "4", "0"],
    ]


def test_many_fine_groups_are_counted():
    """In a terminal, unless all are wanted."""
    groups = [group(f"r{number}") for number in range(MOST_FINE + 1)]
    note = "21 groups with 84 nodes are HEALTHY and IN_SERVICE; --all lists them"
    assert group_list(groups, "rack", shows_all=False) == note
    assert group_list([*groups, group("bad", FAILED=1)], "rack", shows_all=False).splitlines()[1:] == [
        "bad   4      1       3        4",
        note,
    ]
    assert len(group_list(groups, "rack", shows_all=True).splitlines()) == MOST_FINE + 2


@pytest.mark.parametrize("answer", [None, [], {}, {"value": "r1"}])
def test_another_answer_is_no_group(answer):
    """As of a server that is no coordinator."""
    with pytest.raises(ValueError, match="not a group"):
        listed_group(answer)
