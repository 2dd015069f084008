"""`muster baseline` and what else on the command line tells what is normal."""

import asyncio
import contextlib
import json

import pytest

SPEED = {"metrics": {"tflops": 70.0}}


@pytest.fixture
async def told(coordinator, nodes, eventually, muster):
    """Runs `muster …` against a coordinator with ten nodes that have measured the same three times."""
    names = [f"n{number}" for number in range(10)]
    async with contextlib.AsyncExitStack() as stack:
        them = await stack.enter_async_context(nodes(coordinator, *names))
        for _ in range(3):
            for node in them.values():
                await node.report("gemm", **SPEED)
        await eventually(lambda: not any(node.kept for node in them.values()))

        async def run(*arguments):
            return await asyncio.to_thread(muster, *arguments, env=coordinator.env)

        yield run


async def test_baselines_are_listed_and_reset(told):
    """A line for each, with what is normal; a reset answers with the line as it is then."""
    listed = await told("baseline", "list")
    assert listed.returncode == 0, listed.stderr
    header, line = listed.stdout.splitlines()
    assert header.split()[:5] == ["BASELINE", "CHECK", "METRIC", "NORMAL", "NOW"]
    name, *cells = line.split()
    assert cells == ["gemm", "tflops", "70", "+-", "0", "TFLOP/s", "70", "TFLOP/s", "10", "10", "0", "-"]
    (item,) = json.loads((await told("baseline", "list", "--json")).stdout)["items"]
    assert item["id"] == name
    reset = await told("baseline", "reset", name)
    assert reset.stdout.splitlines() == [header, line]
    refused = await told("baseline", "reset", "nothing")
    assert (refused.returncode, refused.stdout) == (64, "")
    assert "no baseline 'nothing'" in refused.stderr


async def test_history_is_a_line_for_each_run(told, coordinator):
    """The latest first, or as the API answers."""
    shown = await told("node", "history", "n3", "--check", "gemm", "--metric", "tflops", "--limit", "2")
    assert shown.returncode == 0, shown.stderr
    header, *lines = shown.stdout.splitlines()
    assert header.split() == ["TIME", "CHECK", "VERDICTS", "VALUES", "(TFLOP/s)"]
    assert [line.split()[1:] for line in lines] == [["gemm", "PASS", "70"]] * 2
    refused = await told("node", "history", "n3", "--metric", "tflop")
    assert (refused.returncode, refused.stdout) == (64, "")
    assert refused.stderr == "muster: unknown metric 'tflop'; did you mean 'tflops'? (valid: tflops)\n"
    answered = await told("node", "history", "n3", "--metric", "tflops", "--device", "0", "--json")
    assert json.loads(answered.stdout) == coordinator.get("/api/v1/nodes/n3/history?metric=tflops&device=0")
