import asyncio
import contextlib
import http.client
import json
import signal
import socket
import sqlite3
import urllib.request
from pathlib import Path

import pytest

from muster.config import Config, Settings
from muster.plugins import Plugins
from muster_coordinator import daemon
from muster_coordinator.runtime.link import CoordinatorLink

SWEEP = {"check": "collective", "strategy": "pairs"}


async def test_a_run_reaches_the_api_and_is_acknowledged(coordinator, nodes, eventually):
    """From the node's report to the list of runs, and back as an ack."""
    async with nodes(coordinator, "n1") as them:
        await them["n1"].report("gemm")
        await eventually(lambda: not them["n1"].kept)
        (run,) = coordinator.get("/api/v1/runs?node=n1")["items"]
    assert {"id", "node", "check", "verdict", "findings", "metrics", "started_at", "duration_s", "seq"} <= set(run)
    assert (run["id"], run["seq"], run["verdict"]) == ("n1-1", 1, "PASS")


async def test_what_was_sent_twice_is_stored_once(coordinator, nodes, eventually):
    """A node that did not hear the ack sends again, and is acknowledged again; nothing is doubled."""
    async with nodes(coordinator, "n1") as them:
        await them["n1"].report("gemm")
        (sent,) = them["n1"].kept
        for _ in range(3):
            await eventually(lambda: not them["n1"].kept)
            them["n1"].kept = [sent]
            await them["n1"].send_report()
        await eventually(lambda: not them["n1"].kept)
    assert [run["id"] for run in coordinator.get("/api/v1/runs")["items"]] == [sent.id]


async def test_a_check_runs_on_request(coordinator, nodes, eventually):
    """The run that the node reports has the id that the API gave out."""
    async with nodes(coordinator, "n1"):
        status, answer = coordinator.ask("POST", "/api/v1/nodes/n1/runs", {"check": "gemm", "params": {"size": 4}})
        assert status == 202
        (run,) = await eventually(lambda: coordinator.get("/api/v1/runs?check=gemm")["items"])
        assert run["id"] == answer["id"]


async def test_a_sweep_names_the_bad_node(coordinator, nodes, eventually):
    """Over the real wire: pairs, then partners that passed, then a verdict."""
    async with nodes(coordinator, "n1", "n2", "n3", "n4") as them:
        them["n3"].verdict = "FAIL"
        status, sweep = coordinator.ask("POST", "/api/v1/sweeps", SWEEP)
        assert status == 201
        path = f"/api/v1/sweeps/{sweep['id']}"
        ended = await eventually(lambda: (it := coordinator.get(path))["ended_at"] and it)
    assert ended["state"] == "finished"
    assert [failed["node"] for failed in ended["failed_nodes"]] == ["n3"]
    assert ended["cleared_nodes"] == ["n1", "n2", "n4"]
    assert len(ended["rounds"]) <= 4  # the bad node meets each of the three others


async def test_everything_is_there_after_kill_and_an_interrupted_sweep_can_be_aborted(coordinator, nodes, eventually):
    """After kill -9 nodes, runs and stories are known; the sweep that ran is ended with what it had, if so set."""
    async with nodes(coordinator, "n1", "n2", finishes=False) as them:
        await them["n1"].report("gemm", "FAIL")
        await eventually(lambda: not them["n1"].kept)
        _, sweep = coordinator.ask("POST", "/api/v1/sweeps", SWEEP)
        path = f"/api/v1/sweeps/{sweep['id']}"
        await eventually(lambda: coordinator.get(path)["rounds"])
        story = coordinator.get("/api/v1/nodes/n1/story")["items"]
        coordinator.end(signal.SIGKILL)
    coordinator.settings["MUSTER_SWEEPS__AFTER_RESTART"] = "abort"
    coordinator.start()
    aborted = await eventually(lambda: (it := coordinator.get(path))["ended_at"] and it)
    assert aborted["state"] == "aborted"
    assert aborted["verdict"] == "UNKNOWN"
    assert aborted["rounds"]
    assert [node["name"] for node in coordinator.get("/api/v1/nodes")["items"]] == ["n1", "n2"]
    assert len(coordinator.get("/api/v1/runs")["items"]) == 1
    assert [it["id"] for it in coordinator.get("/api/v1/nodes/n1/story")["items"]][-len(story) :] == [
        it["id"] for it in story
    ]


async def test_an_interrupted_sweep_goes_on_after_kill(coordinator, nodes, eventually):
    """Once its nodes are heard of again, in groups of the new coordinator."""
    async with nodes(coordinator, "n1", "n2", finishes=False):
        _, sweep = coordinator.ask("POST", "/api/v1/sweeps", SWEEP)
        path = f"/api/v1/sweeps/{sweep['id']}"
        await eventually(lambda: coordinator.get(path)["rounds"][0]["groups"][0]["state"] == "READY")
    coordinator.end(signal.SIGKILL)
    coordinator.start()
    async with nodes(coordinator, "n1", "n2"):
        ended = await eventually(lambda: (it := coordinator.get(path))["ended_at"] and it)
    assert (ended["state"], ended["inconclusive"]) == ("finished", ["n1", "n2"])  # two are too few to compare
    first, second = [stage["groups"][0] for stage in ended["rounds"]]
    assert (first["ending"], second["ending"]) == ("INTERRUPTED", "FINISHED")
    assert first["id"] != second["id"]


async def test_runs_that_were_not_acknowledged_come_again_after_a_restart(coordinator, nodes, eventually):
    """What the node still keeps is stored exactly once in the end, whatever was stored before."""
    async with nodes(coordinator, "n1") as them:
        await them["n1"].report("gemm")
        (sent,) = them["n1"].kept
        await eventually(lambda: not them["n1"].kept)
    coordinator.end(signal.SIGKILL)
    coordinator.start()
    async with nodes(coordinator, "n1") as them:
        them["n1"].kept, them["n1"].seq = [sent], sent.seq
        for _ in range(3):
            await them["n1"].report("gemm")
        await eventually(lambda: not them["n1"].kept)
    assert [run["seq"] for run in coordinator.get("/api/v1/runs")["items"]] == [4, 3, 2, 1]


async def test_the_stream_tells_what_happens_and_catches_up(coordinator, nodes, eventually):
    """A listener hears of a run at once; with the id of an event it gets those that came after it."""

    def listen(last_id=None):
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        return urllib.request.urlopen(
            urllib.request.Request(f"{coordinator.url}/api/v1/events", headers=headers), timeout=20
        )

    def read_run(stream):
        event = {}
        while True:
            key, _, value = stream.readline().decode().rstrip("\n").partition(": ")
            if key:
                event[key] = value
            elif event.get("event") == "run":
                return event
            else:
                event = {}

    with listen() as stream:
        async with nodes(coordinator, "n1") as them:
            await them["n1"].report("gemm")
            event = await asyncio.to_thread(read_run, stream)
            assert json.loads(event["data"])["id"] == "n1-1"
            await them["n1"].report("gemm")
            await eventually(lambda: not them["n1"].kept)
    with listen(event["id"]) as stream:
        assert json.loads((await asyncio.to_thread(read_run, stream))["data"])["id"] == "n1-2"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly_and_quickly(coordinator, nodes, number):
    """Exit code 0 within five seconds, with nodes and a listener connected, and nothing in the log but news."""
    with urllib.request.urlopen(f"{coordinator.url}/api/v1/events", timeout=20):
        async with nodes(coordinator, "n1"):
            code, took_s = await asyncio.to_thread(coordinator.end, number)
    assert code == 0
    assert took_s < 5
    assert [line for line in coordinator.log if line.get("level") not in ("info", "debug")] == []


async def test_a_cancellation_that_is_forgotten_does_not_keep_it_from_ending(monkeypatch, tmp_path):
    """A part that goes on after it was told to end is told again."""
    told: list[str] = []

    async def forgetful(_link):
        while len(told) < 2:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                told.append("to end")

    monkeypatch.setattr(CoordinatorLink, "run", forgetful)
    free = {"listen": "127.0.0.1:0"}
    settings = Settings.model_validate({"data_dir": tmp_path, "http": free, "broker": free})
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.2, stop.set)
    await asyncio.wait_for(daemon.serve(settings, Plugins(Config(settings)), stop), 20)
    assert len(told) == 2


def test_a_database_that_fails_ends_it_with_a_sentence(coordinator):
    """As when the disk is full: not as a refusal to start, so that whoever supervises it starts it again."""
    with contextlib.closing(sqlite3.connect(Path(coordinator.settings["MUSTER_DATA_DIR"]) / "muster.db")) as connection:
        connection.execute("DROP TABLE operator_references")
    row = {"check": "gemm", "metric": "tflops_bf16", "fail_below": 1.0, "source": "the tests"}
    with contextlib.suppress(OSError, http.client.HTTPException):  # nobody is left to answer
        coordinator.ask("PUT", "/api/v1/references", row)
    assert coordinator.process.wait(30) == 74
    told = "".join(line.get("text", "") for line in coordinator.log)
    assert told.startswith("muster: the database cannot be written: ")
    assert "Traceback" not in told


def test_a_second_coordinator_on_the_same_data_is_refused(coordinator, muster):
    """It says which file is taken, and exits as unavailable."""
    second = muster("coordinator", env={**coordinator.settings, "MUSTER_HTTP__LISTEN": "127.0.0.1:0"})
    assert second.returncode == 69
    assert "another coordinator uses" in second.stderr
    assert "Traceback" not in second.stderr


@pytest.mark.parametrize("setting", ["MUSTER_HTTP__LISTEN", "MUSTER_BROKER__LISTEN"])
def test_a_taken_port_is_named(setting, muster, tmp_path):
    """The setting to change is in the message."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        env = {
            "MUSTER_DATA_DIR": str(tmp_path),
            "MUSTER_HTTP__LISTEN": "127.0.0.1:0",
            "MUSTER_BROKER__LISTEN": "127.0.0.1:0",
            setting: f"127.0.0.1:{taken.getsockname()[1]}",
        }
        refused = muster("coordinator", env=env)
    assert refused.returncode == 69
    assert setting.removeprefix("MUSTER_").replace("__", ".").lower() in refused.stderr
    assert "Traceback" not in refused.stderr


def test_an_open_address_needs_a_token(muster, tmp_path):
    """Without a token the API stays on loopback."""
    refused = muster("coordinator", env={"MUSTER_DATA_DIR": str(tmp_path), "MUSTER_HTTP__LISTEN": "0.0.0.0:0"})
    assert refused.returncode == 64
    assert "http.token_file" in refused.stderr


async def test_with_mosquitto_instead_of_the_embedded_broker(coordinator, mosquitto, nodes, eventually):
    """broker.url is all that it takes; when the broker comes back, so does the coordinator."""
    coordinator.end()
    coordinator.settings["MUSTER_BROKER__URL"] = mosquitto.url
    del coordinator.settings["MUSTER_BROKER__LISTEN"]
    coordinator.start()
    async with nodes(coordinator, "n1") as them:
        await them["n1"].report("gemm")
        await eventually(lambda: not them["n1"].kept)
    mosquitto.stop()
    await eventually(lambda: coordinator.ask("GET", "/readyz")[0] == 503)
    mosquitto.start()
    await eventually(lambda: coordinator.ask("GET", "/readyz")[0] == 200)
