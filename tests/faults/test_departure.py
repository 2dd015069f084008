"""A node whose cloud gave notice goes silent: it has left, and nobody is alarmed."""

import pytest
from tests.faults.fleet import TIGHT, Fleet

GOES = "n1"
WHY = "AWS ends its spot machine"


@pytest.fixture
def fleet(tmp_path, new_mosquitto, mischief):
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path, broker, mischief, nodes=(GOES, TIGHT))
        fleet.set_right()
        yield fleet
        fleet.end()


def leaving(fleet):
    case = fleet.api.get("nodes", GOES, "case")
    return case["departure"], case["left"]


def told(fleet):
    return [entry["text"] for entry in fleet.api.pages("nodes", GOES, "story")["items"]]


def test_a_node_that_leaves_as_announced_is_not_lost(fleet, tmp_path, eventually):
    """A notice that is withdrawn is over. The next machine of this name is a node like any other."""
    notice = tmp_path / GOES / "notice"
    notice.write_text(WHY)
    eventually(lambda: leaving(fleet) == (WHY, False), "the notice to arrive")
    notice.unlink()
    eventually(lambda: leaving(fleet) == (None, False), "the notice to be over")
    notice.write_text(WHY)
    eventually(lambda: leaving(fleet) == (WHY, False), "the notice to arrive again")
    fleet.agents[GOES].kill()
    eventually(lambda: leaving(fleet) == (WHY, True), "the node to have left")
    assert fleet.counter("muster_nodes_lost") == 0
    eventually(lambda: f"Silent, as announced: {WHY}" in told(fleet), "the story to be stored")  # the case is in memory
    notice.unlink()
    fleet.agents[GOES].start()
    eventually(lambda: leaving(fleet) == (None, False), "the next machine to be there")
