"""`muster audit`: what was changed, for people and for other systems."""

import asyncio
import json

import pytest

from muster.commands.decision_options import author


@pytest.fixture
async def told(coordinator, nodes, muster):
    """Runs `muster …` against a coordinator with a node that was held twice, and released. Its groups never finish."""
    async with nodes(coordinator, "n1", finishes=False):

        async def run(*arguments):
            return await asyncio.to_thread(muster, *arguments, env=coordinator.env)

        for action, reason in (("hold", "a fan"), ("release", "replaced"), ("hold", "noise")):
            done = await run("quarantine", action, "n1", "--reason", reason, "--by", "ann")
            assert done.returncode == 0, done.stderr
        yield run


async def test_changes_are_listed(told, coordinator):
    """The latest first; the first of all is that the coordinator leads. `--json` is the answer of the API."""
    header, *lines = (await told("audit", "list")).stdout.splitlines()
    assert header.split() == ["TIME", "CHANGE", "OF", "BY", "FROM", "REASON"]
    cells = [line.split()[1:] for line in lines]
    assert cells == [
        ["hold_node", "n1", "ann", "127.0.0.1", "noise"],
        ["release_node", "n1", "ann", "127.0.0.1", "replaced"],
        ["hold_node", "n1", "ann", "127.0.0.1", "a", "fan"],
        ["lead", coordinator.url, "-", "-", "-"],
    ]
    assert len((await told("audit", "list", "n1")).stdout.splitlines()) == 4
    assert len((await told("audit", "list", "n2")).stdout.splitlines()) == 1
    assert json.loads((await told("audit", "list", "--limit", "2", "--json")).stdout) == coordinator.get(
        "/api/v1/audit?limit=2"
    )


async def test_every_command_says_who_changes_something(told):
    """By the name that is given, or else by the user of the terminal; also where no reason is asked for."""
    row = ("gemm", "tflops", "--when", "device_model=X")
    started = await told("sweep", "start", "--check", "collective", "--strategy", "single", "--json")
    assert started.returncode == 0, started.stderr
    for arguments in (
        ("sweep", "abort", json.loads(started.stdout)["id"], "--by", "eve"),
        ("reference", "set", *row, "--fail-below", "1", "--source", "a test"),
        ("reference", "remove", *row, "--by", "eve"),
    ):
        done = await told(*arguments)
        assert done.returncode == 0, done.stderr
    entries = json.loads((await told("audit", "list", "--limit", "4", "--json")).stdout)["items"]
    me = author(None)
    assert {entry["action"]: entry["by"] for entry in entries} == {
        "start_sweep": me,
        "abort_sweep": "eve",
        "set_reference": me,
        "remove_reference": "eve",
    }


async def test_changes_are_exported(told):
    """The earliest first, a line for each; with the id of the last one, only what has come since."""
    exported = [json.loads(line) for line in (await told("audit", "export")).stdout.splitlines()]
    assert [entry["action"] for entry in exported] == ["lead", "hold_node", "release_node", "hold_node"]
    assert exported[0]["details"]["quarantine"] == {"mode": "observe"}
    later = (await told("audit", "export", "--after", exported[1]["id"])).stdout.splitlines()
    assert [json.loads(line) for line in later] == exported[2:]
    assert (await told("audit", "export", "--after", exported[-1]["id"])).stdout == ""
    refused = await told("audit", "export", "--after", "nothing")
    assert (refused.returncode, refused.stdout) == (64, "")
    assert "no entry 'nothing'" in refused.stderr
