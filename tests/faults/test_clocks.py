"""The clock of a host is set by an hour while everything runs. No silence and no deadline follows it."""

import time

import pytest
from tests.faults.fleet import Fleet
from tests.faults.test_killed_in_a_group import blamed
from tests.host_clock import HostClock
from tests.preloaded import built

HOUR_S = 3600
NODES = ("n1", "n2", "n3", "n4")
MEMBERS = ("n1", "n2", "n3")


@pytest.fixture(scope="module")
def clocks(tmp_path_factory):
    """A clock for the coordinator, and one for the node n1."""
    library = built("clock", tmp_path_factory.mktemp("library"))
    return {who: HostClock(library, tmp_path_factory.mktemp(who)) for who in ("coordinator", "n1")}


@pytest.fixture(scope="module")
def the_shifted_fleet(tmp_path_factory, new_mosquitto, mischief, clocks):
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path_factory.mktemp("shifted"), broker, mischief, nodes=NODES, background_s=1.0)
        fleet.coordinator.env |= clocks["coordinator"].env
        fleet.agents["n1"].env |= clocks["n1"].env
        yield fleet
        fleet.end()


@pytest.fixture
def shifted(the_shifted_fleet, clocks):
    """A fleet in which everything runs by the true time, whatever the test before did to it."""
    for part in (the_shifted_fleet.coordinator, the_shifted_fleet.agents["n1"]):
        if part.runs:
            part.kill()
    for clock in clocks.values():
        clock.set_to(0)
    the_shifted_fleet.set_right()
    return the_shifted_fleet


def lost_count(fleet):
    """How often a story says that a node was lost."""
    stories = [fleet.api.pages("nodes", node, "story")["items"] for node in NODES]
    return sum(entry["kind"] == "lost" for story in stories for entry in story)


def newest(fleet, node):
    return fleet.api.get("runs", node=node, limit=1)["items"][0]["seq"]


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
def test_the_coordinators_clock_is_set(shifted, clocks, book, eventually, step_s):
    """A sweep that runs meanwhile ends well, nobody is lost, and runs are stored; an agent that dies is lost soon."""
    before = lost_count(shifted)
    sweep = shifted.start_meeting(book, *MEMBERS, hosts=MEMBERS)
    clocks["coordinator"].set_to(step_s)
    time.sleep(3)
    book.write("over")
    (group,) = shifted.ended_sweep(sweep)["rounds"][0]["groups"]
    assert (group["verdict"], blamed(group)) == ("PASS", []), group
    seen = {node: newest(shifted, node) for node in NODES}
    eventually(lambda: all(newest(shifted, node) > seen[node] for node in NODES), "new runs of every node")
    assert lost_count(shifted) == before
    assert len(shifted.coordinator.log("clock_was_set")) == 1
    shifted.agents["n2"].kill()
    killed = time.monotonic()
    eventually(lambda: shifted.api.get("nodes", "n2")["lost"], "n2 to be lost")
    assert time.monotonic() - killed < 30


@pytest.mark.parametrize("step_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
def test_the_clock_of_a_node_is_set(shifted, clocks, book, eventually, step_s):
    """Its group ends well, its runs are stored, and it reconnects to a broker as soon as others."""
    sweep = shifted.start_meeting(book, *MEMBERS, hosts=MEMBERS)
    clocks["n1"].set_to(step_s)
    time.sleep(3)
    book.write("over")
    (group,) = shifted.ended_sweep(sweep)["rounds"][0]["groups"]
    assert (group["verdict"], blamed(group)) == ("PASS", []), group

    def is_noticed():
        return any("the coordinator's" in entry["text"] for entry in shifted.api.pages("nodes", "n1", "story")["items"])

    eventually(is_noticed, "the story to say that the clock is wrong")
    shifted.broker.stop()
    shifted.broker.start()
    began = time.monotonic()
    seen = newest(shifted, "n1")
    eventually(lambda: newest(shifted, "n1") > seen + 2, "new runs")
    assert time.monotonic() - began < 60
    assert not shifted.api.get("nodes", "n1")["lost"]
