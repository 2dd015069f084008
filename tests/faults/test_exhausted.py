"""A process may open no more files, or gets no more memory, while everything runs. Nothing stored is lost by it."""

import time
from contextlib import contextmanager

import psutil
import pytest
from tests.faults.fleet import BACKGROUND, Fleet
from tests.faults.test_disks import all_is_stored_once

NODES = ("n1", "n2", "n4")
EXHAUSTED_S = 3.0
SPARE_BYTES = 1 << 20


@pytest.fixture(scope="module")
def the_small_fleet(tmp_path_factory, new_mosquitto, mischief):
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path_factory.mktemp("exhausted"), broker, mischief, nodes=NODES, background_s=0.5)
        yield fleet
        fleet.end()


@pytest.fixture
def fleet(the_small_fleet):
    """A fleet in which everything runs."""
    the_small_fleet.set_right()
    return the_small_fleet


@contextmanager
def at_most(part, kind, most):
    """The limit of a running process while the context lasts; it may end meanwhile."""
    process = psutil.Process(part.pid)
    soft, hard = process.rlimit(kind)
    process.rlimit(kind, (most, hard))
    try:
        yield
    finally:
        if part.runs:
            process.rlimit(kind, (soft, hard))


def lost_count(fleet):
    stories = [fleet.api.pages("nodes", node, "story")["items"] for node in NODES]
    return sum(entry["kind"] == "lost" for story in stories for entry in story)


def test_a_coordinator_that_may_open_no_more_files_goes_on(fleet, eventually):
    """Nobody new gets in meanwhile, and nobody is lost."""
    before = lost_count(fleet)
    with at_most(fleet.coordinator, psutil.RLIMIT_NOFILE, psutil.Process(fleet.coordinator.pid).num_fds()):
        time.sleep(EXHAUSTED_S)
    assert fleet.coordinator.runs
    eventually(lambda: fleet.ask("GET", "/readyz")[0] == 200, "the coordinator to answer")
    all_is_stored_once(fleet, eventually)
    assert lost_count(fleet) == before


def test_an_agent_that_may_open_no_more_files_goes_on(fleet, eventually):
    """Runs that cannot be started are no verdict about the hardware. Then they succeed again."""
    agent = fleet.agents["n1"]
    with at_most(agent, psutil.RLIMIT_NOFILE, psutil.Process(agent.pid).num_fds()):
        time.sleep(EXHAUSTED_S)
    assert agent.runs, agent.text()
    run = fleet.run("n1", BACKGROUND)
    assert run["verdict"] == "PASS"
    verdicts = {item["verdict"] for item in fleet.runs("n1")}
    assert verdicts <= {"PASS", "UNKNOWN", "SKIPPED"}, verdicts
    all_is_stored_once(fleet, eventually)


@pytest.mark.parametrize("who", ["coordinator", "n1"])
def test_a_process_without_memory_loses_nothing_that_is_stored(fleet, eventually, who):
    """It may end; its supervisor starts it again. It says nothing wrong about the hardware."""
    part = fleet.coordinator if who == "coordinator" else fleet.agents[who]
    has = psutil.Process(part.pid).memory_info().data
    with at_most(part, psutil.RLIMIT_DATA, has + SPARE_BYTES):
        time.sleep(EXHAUSTED_S)
    if not part.runs:
        assert part.exit_code != 0
    fleet.set_right()
    all_is_stored_once(fleet, eventually)
    assert {item["verdict"] for node in NODES for item in fleet.runs(node)} <= {"PASS", "UNKNOWN", "SKIPPED"}
