import asyncio
import json
import os
import re
import signal
import subprocess
import sys

import pytest

START = ("start", "--check", "collective")


@pytest.fixture
def sweep(coordinator, muster):
    """Runs `muster sweep …` against the coordinator."""

    async def run(*arguments):
        return await asyncio.to_thread(muster, "sweep", *arguments, env=coordinator.env)

    return run


async def test_waiting_shows_the_rounds_and_ends_with_the_result(sweep, coordinator, nodes):
    """Progress on stderr, then who failed and why, and exit code 2."""
    async with nodes(coordinator, "n1", "n2", "n3", "n4") as them:
        them["n2"].verdict = "FAIL"
        done = await sweep(*START, "--wait")
    assert done.returncode == 2, done.stderr
    assert "round 1: 2 groups: 1 passed, 1 failed\n" in done.stderr
    assert "round 2: " in done.stderr
    assert "failed node n2 (confidence 0." in done.stdout
    assert "cleared: 3 of 4 nodes" in done.stdout
    assert "Traceback" not in done.stderr


async def test_a_fleet_without_fault_passes(sweep, coordinator, nodes):
    """Exit code 0, and JSON of the ended sweep on stdout. Two nodes could not be compared with anything."""
    async with nodes(coordinator, "n1", "n2", "n3"):
        done = await sweep(*START, "--wait", "--json", "--param", "size=3")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["state"], record["verdict"], record["params"]) == ("finished", "PASS", {"size": 3})
    assert record == coordinator.get(f"/api/v1/sweeps/{record['id']}")


async def test_only_the_named_nodes_take_part(sweep, coordinator, nodes):
    """--nodes and --strategy are passed on."""
    async with nodes(coordinator, "n1", "n2", "n3"):
        done = await sweep(*START, "--wait", "--json", "--nodes", "n1, n3", "--strategy", "whole")
    record = json.loads(done.stdout)
    assert (record["nodes"], record["strategy"]) == (["n1", "n3"], "whole")


async def test_a_dry_run_tells_the_plan_and_starts_nothing(sweep, coordinator, nodes):
    """With its groups, waves and cost, as text and as JSON; what could not be started is refused in the same words."""
    async with nodes(coordinator, "n1", "n2", "n3", "n4"):
        told = await sweep(*START, "--max-parallel", "50%", "--dry-run")
        plan = json.loads((await sweep(*START, "--max-parallel", "2", "--dry-run", "--json")).stdout)
        refused = await sweep(*START, "--max-parallel", "1", "--dry-run")
    assert "would sweep 4 nodes with collective, strategy adaptive" in told.stdout
    assert "round 1: 2 groups in 2 waves" in told.stdout
    assert ([group["wave"] for group in plan["groups"]], plan["first"]["rounds"]) == ([1, 2], 1)
    assert (refused.returncode, "adaptive needs 2 nodes" in refused.stderr) == (64, True)
    assert coordinator.get("/api/v1/sweeps")["items"] == []


async def test_starting_without_waiting_lists_and_aborts(sweep, coordinator, nodes):
    """A sweep that goes on is listed, shown and ended by its id."""
    async with nodes(coordinator, "n1", "n2", finishes=False):
        started = await sweep(*START)
        assert started.returncode == 0, started.stderr
        sweep_id = started.stdout.splitlines()[0]
        assert re.fullmatch("[a-z2-7]{8}", sweep_id)
        listed = await sweep("list")
        assert any(line.startswith(f"{sweep_id}  20") and "running" in line for line in listed.stdout.splitlines())
        assert json.loads((await sweep("list", "--json")).stdout)["items"][0]["id"] == sweep_id
        shown = await sweep("show", sweep_id[:4])
        assert "n1 + n2: " in shown.stdout or "n2 + n1: " in shown.stdout
        nameless = await sweep("show", "")
        assert (nameless.returncode, nameless.stderr) == (
            64,
            "muster: a name or an id is missing: one argument is empty\n",
        )
        unknown = await sweep("show", "none")
        assert (unknown.returncode, unknown.stderr) == (64, "muster: no sweep 'none'; run `muster sweep list`\n")
        aborted = await sweep("abort", sweep_id)
        assert "aborted: UNKNOWN" in aborted.stdout
        assert json.loads((await sweep("show", sweep_id, "--json")).stdout)["state"] == "aborted"


async def test_a_beginning_of_several_ids_is_refused(sweep, coordinator, nodes):
    """With the ids to choose from, wherever a sweep is named."""
    async with nodes(coordinator, "n1", "n2", finishes=False):
        ids: list[str] = []
        while len({one[0] for one in ids}) == len(ids):  # there are 32 characters to begin with
            ids.append(coordinator.ask("POST", "/api/v1/sweeps", {"check": "collective"})[1]["id"])
        first = ids[-1][0]
        fitting = ", ".join(sorted(one for one in ids if one[0] == first))
        for command in (("show",), ("abort",), ("export", "--format", "csv"), ("show", "--why", "n1")):
            refused = await sweep(*command, first)
            assert refused.returncode == 64
            assert refused.stderr == f"muster: several sweeps begin with {first!r}: {fitting}; type more characters\n"


async def test_the_exit_code_follows_fail_on(sweep, coordinator, nodes):
    """A conviction is a failure either way: no sweep ends with WARN. Another word is refused."""
    async with nodes(coordinator, "n1", "n2", "n3", "n4") as them:
        assert (await sweep(*START, "--wait", "--fail-on", "fail")).returncode == 0
        them["n2"].verdict = "FAIL"
        assert (await sweep(*START, "--wait", "--fail-on", "fail")).returncode == 2
        assert (await sweep(*START, "--wait", "--fail-on", "warn")).returncode == 2
        assert (await sweep(*START, "--wait", "--fail-on", "never")).returncode == 64


async def test_an_aborted_sweep_says_nothing_about_the_fleet(sweep, coordinator, nodes, eventually):
    """Who waits for a sweep that somebody ends gets exit code 3."""
    async with nodes(coordinator, "n1", "n2", finishes=False):
        waiting = asyncio.create_task(sweep(*START, "--wait"))
        (record,) = await eventually(lambda: coordinator.get("/api/v1/sweeps")["items"])
        await sweep("abort", record["id"])
        assert (await waiting).returncode == 3


async def test_interrupting_the_wait_leaves_the_sweep_alone(coordinator, nodes, eventually):
    """Ctrl-C ends the command and says how to end the sweep."""
    async with nodes(coordinator, "n1", "n2", finishes=False):
        process = subprocess.Popen(
            [sys.executable, "-m", "muster", "sweep", *START, "--wait"],
            env={**os.environ, **coordinator.env},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        first = await asyncio.to_thread(process.stderr.readline)
        process.send_signal(signal.SIGINT)
        _, rest = await asyncio.to_thread(process.communicate)
        (record,) = coordinator.get("/api/v1/sweeps")["items"]
        assert process.returncode == 130
        assert record["id"] in first
        assert f"muster sweep abort {record['id']}" in rest
        assert record["state"] == "running"


WRONG = {
    ("start",): "--check",
    ("start", "--check", "colective"): "did you mean 'collective'?",
    (*START, "--strategy", "pair"): "did you mean 'pairs'?",
    (*START, "--nodes", "n1,n9"): "n9",
    (*START, "--nodes", ""): "nodes",
    (*START, "--param", "size"): "KEY=VALUE",
    (*START, "--param", "siz=3"): "siz",
    (*START, "--param", "size=big"): "size",
    ("show", "none"): "no sweep 'none'",
    ("abort", "none"): "no sweep 'none'",
}


async def test_wrong_usage_is_one_line_and_64(sweep, coordinator, nodes):
    """The API's sentence, without a traceback."""
    async with nodes(coordinator, "n1", "n2"):
        for arguments, message in WRONG.items():
            refused = await sweep(*arguments)
            assert (refused.returncode, refused.stdout) == (64, ""), arguments
            assert message in refused.stderr
            assert len(refused.stderr.splitlines()) == 1, refused.stderr


def test_without_a_coordinator(muster):
    """Exit code 69."""
    assert muster("sweep", *START, "--wait", "--url", "http://127.0.0.1:1").returncode == 69


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize("option", [("--fail-on", "fail"), ("--format", "csv")])
def test_some_options_need_the_end_of_the_sweep(muster, option, more):
    """Without --wait there is none, and the option would do nothing."""
    refused = muster("sweep", "start", "--check", "gemm", *option, *more)
    assert (refused.returncode, refused.stdout) == (64, "")
    assert refused.stderr.startswith(f"muster: {option[0]} needs --wait: ")


async def test_a_format_takes_the_place_of_the_report(sweep, coordinator, nodes):
    """The same text that `sweep export` writes; the exit code is still the verdict."""
    async with nodes(coordinator, "n1", "n2", "n3", "n4") as them:
        them["n2"].verdict = "FAIL"
        done = await sweep(*START, "--wait", "--format", "csv")
        (started,) = {line.split(",")[0] for line in done.stdout.splitlines()[1:]}
        exported = await sweep("export", started, "--format", "csv")
    assert (done.returncode, done.stdout) == (2, exported.stdout)
