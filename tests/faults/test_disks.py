"""A disk is full, read-only or broken while everything runs. Nothing that is stored is lost."""

import errno
import os

import pytest
from tests.faults.fleet import BACKGROUND, Fleet
from tests.host_disk import HostDisk

NODES = ("n1", "n2", "n4")
ERRORS = [errno.ENOSPC, errno.EROFS, errno.EIO]

CANNOT_WRITE = 74
"""The exit code of a coordinator that cannot store."""


@pytest.fixture(scope="module")
def disks(tmp_path_factory):
    """The directory of the fleet, and the disks of the coordinator and of the node n1 in it."""
    directory = tmp_path_factory.mktemp("disks")
    files = {"coordinator": directory / "coordinator", "n1": directory / "n1"}
    return directory, {who: HostDisk(tmp_path_factory.mktemp(who), path) for who, path in files.items()}


@pytest.fixture(scope="module")
def the_fleet_with_disks(new_mosquitto, mischief, disks):
    directory, of = disks
    with new_mosquitto() as broker:
        fleet = Fleet(directory, broker, mischief, nodes=NODES, background_s=0.5)
        fleet.coordinator.env |= of["coordinator"].env
        fleet.agents["n1"].env |= of["n1"].env
        fleet.agents["n1"].settings["agent"]["heartbeat_s"] = 1.0
        yield fleet
        fleet.end()


@pytest.fixture
def fleet(the_fleet_with_disks, disks):
    """A fleet in which everything runs on disks that work."""
    for disk in disks[1].values():
        disk.fails_with(0)
    the_fleet_with_disks.set_right()
    return the_fleet_with_disks


def stored(fleet, node):
    return [run["id"] for run in fleet.runs(node)]


def kept(fleet, node):
    """The runs that the agent has put into its outbox, without those that its log may not show yet."""
    return fleet.agents[node].kept_runs()


def all_is_stored_once(fleet, eventually):
    """Whatever an agent has kept is in the database, and nothing twice."""
    for node in NODES:
        made = kept(fleet, node)
        eventually(lambda node=node, made=made: made <= set(stored(fleet, node)), f"the runs of {node}")
        found = stored(fleet, node)
        assert len(found) == len(set(found))


@pytest.mark.parametrize("error", ERRORS, ids=os.strerror)
def test_a_coordinator_that_cannot_store_ends(fleet, disks, eventually, error):
    """It says why in one line. The agents keep what they measure, and all is stored once when the disk works again."""
    disks[1]["coordinator"].fails_with(error)
    eventually(lambda: not fleet.coordinator.runs, "the coordinator to end")
    assert fleet.coordinator.exit_code == CANNOT_WRITE
    text = fleet.coordinator.text()
    assert "Traceback" not in text
    assert "the database cannot be written" in text
    before = {node: len(kept(fleet, node)) for node in NODES}
    eventually(lambda: all(len(kept(fleet, node)) > before[node] + 2 for node in NODES), "the agents to go on")
    disks[1]["coordinator"].fails_with(0)
    fleet.start_coordinator()
    all_is_stored_once(fleet, eventually)


@pytest.mark.parametrize("error", ERRORS, ids=os.strerror)
def test_an_agent_that_cannot_keep_its_runs_goes_on(fleet, disks, eventually, error):
    """It counts what it has to drop, and the coordinator shows that. The node is not lost, and goes on as before."""
    agent = fleet.agents["n1"]
    before = fleet.api.get("nodes", "n1")["dropped"].get(BACKGROUND, 0)
    not_kept = len(agent.log("outbox_not_written"))
    disks[1]["n1"].fails_with(error)
    eventually(lambda: len(agent.log("outbox_not_written")) > not_kept + 2, "runs that cannot be kept")
    assert not fleet.api.get("nodes", "n1")["lost"]
    disks[1]["n1"].fails_with(0)
    seen = len(stored(fleet, "n1"))
    eventually(lambda: len(stored(fleet, "n1")) > seen + 2, "new runs")
    eventually(lambda: fleet.api.get("nodes", "n1")["dropped"].get(BACKGROUND, 0) > before, "the dropped runs to show")
    assert agent.runs
    all_is_stored_once(fleet, eventually)


@pytest.mark.parametrize("who", ["coordinator", "n1"])
def test_what_starts_on_a_disk_that_cannot_be_written_says_so(fleet, disks, eventually, who):
    """With the place; a supervisor tries again."""
    part = fleet.coordinator if who == "coordinator" else fleet.agents[who]
    part.stop()
    disks[1][who].fails_with(errno.EROFS)
    part.start()
    eventually(lambda: not part.runs, "it to end")
    text = part.text()
    assert part.exit_code in (69, CANNOT_WRITE), text
    assert "Traceback" not in text
    assert str(disks[0]) in text
