"""A node that a group holds: kept from the scheduler meanwhile, left to work that comes, and given back every time."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.faults.fleet import BACKGROUND, NOTHING_ELSE, OF_THIS_HOST

NODE = "on-lease"
MEMBERS = ("n1", NODE)
NOTHING_AT_ALL = NOTHING_ELSE | {BACKGROUND: {"enabled": False}}


@dataclass
class Held:
    """A node for groups to hold: its agent, the file that reserves it, and the one that makes it busy while there."""

    agent: Any
    reserved: Path
    busy: Path

    def is_free(self) -> bool:
        """Whether its agent holds nothing, and the scheduler may have it."""
        return self.agent.is_free() and not self.reserved.exists()

    def end_of_meeting(self) -> float | None:
        """When its agent has found nothing of the run left, in seconds since the epoch; None before."""
        return next(iter(ends_of_meetings(self.agent)), None)


@pytest.fixture
def held(fleet, tmp_path, eventually) -> Iterator[Held]:
    """A fifth node for one test, that knows work and a scheduler by files."""
    reserved, busy = tmp_path / "reserved", tmp_path / "busy"
    simulated = {"enabled": True, "devices": 1, "busy_file": str(busy)}
    plugins = {"disabled": OF_THIS_HOST, "simulated": simulated, "reservation_file": {"path": str(reserved)}}
    agent = fleet.agent(NODE, plugins=plugins, checks=NOTHING_AT_ALL)
    eventually(lambda: not fleet.is_there(NODE), "the agent of the last test to be gone")
    agent.start()
    agent.wait_until_ready()
    eventually(lambda: fleet.is_there(NODE), "the node to be there")
    yield Held(agent, reserved, busy)
    if agent.runs:
        agent.stop()


def ends_of_meetings(agent: Any) -> list[float]:
    """When an agent has found nothing left of such a run, each time, in seconds since the epoch."""
    ends = [line["timestamp"] for line in agent.log("run_ended") if line["check"] == "meeting"]
    return [datetime.fromisoformat(end).timestamp() for end in ends]


def start_meeting(fleet, book):
    return fleet.start_meeting(book, *MEMBERS, hosts=MEMBERS)


def first_group(fleet, sweep):
    return fleet.ended_sweep(sweep)["rounds"][0]["groups"][0]


def test_a_group_keeps_the_scheduler_away_for_as_long_as_it_holds_the_node(fleet, held, book, eventually):
    """The file says who and what for, and is gone when the group has ended."""
    sweep = start_meeting(fleet, book)
    said = json.loads(held.reserved.read_text())
    assert said["who"] == f"muster on node {NODE} of fleet default"
    assert said["why"].startswith("meeting in group ")
    book.write("over")
    assert fleet.ended_sweep(sweep)["verdict"] == "PASS"
    eventually(held.is_free, "the node to be free")


def test_a_node_that_somebody_else_has_reserved_declines(fleet, held, book):
    """It is named with whose it is, no rank of the group runs, and the file stays as it was."""
    held.reserved.write_text('{"who": "mia", "why": "a repair"}')
    group = first_group(fleet, fleet.start_sweep(*MEMBERS, book=str(book), hosts=[*MEMBERS]))
    assert [(blame["node"], blame["reason"]) for blame in group["blamed"]] == [(NODE, "not_idle")]
    assert "held by mia (a repair)" in group["blamed"][0]["detail"]
    assert not book.pids("met-*")
    assert held.reserved.read_text() == '{"who": "mia", "why": "a repair"}'


def test_work_that_arrives_has_the_node_within_a_second(fleet, held, book, eventually):
    """From the moment at which a probe can see it until nothing of the run is left; the scheduler has it as well."""
    sweep = start_meeting(fleet, book)
    ours = book.pids(f"met-{NODE}")
    held.busy.touch()
    ended_at = eventually(held.end_of_meeting, "the end of the run")
    assert ended_at - held.busy.stat().st_mtime < 1.0
    assert not any(map(psutil.pid_exists, ours))
    group = first_group(fleet, sweep)
    assert [(blame["node"], blame["reason"]) for blame in group["blamed"]] == [(NODE, "preempted")]
    fleet.wait_until_free("n1")
    eventually(held.is_free, "the node to be free")


def test_a_check_that_hangs_hides_no_work_that_arrives(fleet, held, book, eventually):
    """The probes do not wait for it, although it shares its process with others."""
    start_meeting(fleet, book)
    body = {"check": "resident_mischief", "params": {"do": "hang", "book": str(book)}}
    hanging = fleet.api.post("nodes", NODE, "runs", body=body)["id"]
    eventually(lambda: hanging in held.agent.health["running"], "the check to hang")
    held.busy.touch()
    ended_at = eventually(held.end_of_meeting, "the end of the run")
    assert ended_at - held.busy.stat().st_mtime < 1.0
    assert hanging in held.agent.health["running"]
    fleet.wait_until_free("n1")
    eventually(lambda: not held.reserved.exists(), "the reservation to be given back")


def test_aborting_gives_everything_back_within_three_seconds(fleet, held, book, eventually):
    """Ranks, ports, leases and the reservation; of the node that has runs of its own all the time, its rank."""
    sweep = start_meeting(fleet, book)
    assert held.reserved.exists()
    began = time.time()
    fleet.api.delete("sweeps", sweep)
    eventually(held.is_free, "the node to be free")
    assert time.time() - began < 3
    fleet.wait_until_free("n1")
    ended_at = ends_of_meetings(fleet.agents["n1"])[-1]
    assert 0 < ended_at - began < 3
    assert book.is_closed()


def test_an_agent_that_is_stopped_gives_the_node_back(fleet, held, book):
    """When its process has ended, the scheduler has the node."""
    start_meeting(fleet, book)
    assert held.reserved.exists()
    began = time.monotonic()
    assert held.agent.stop() == 0
    assert time.monotonic() - began < 5
    assert not held.reserved.exists()
    assert not any(map(psutil.pid_exists, book.pids(f"met-{NODE}")))


def test_what_a_killed_agent_has_reserved_the_next_one_gives_back(fleet, held, book, eventually):
    """At its start, before anybody asks for anything."""
    start_meeting(fleet, book)
    held.agent.kill()
    assert held.reserved.exists()
    held.agent.start()
    eventually(lambda: not held.reserved.exists(), "the reservation to be given back")
