"""One coordinator of two leads: what the other one does when the leader ends, stands still, or loses the database."""

import asyncio
import signal

import pytest
from benchmarks.scale_database import opened
from tests.coordinator.takeover.conftest import reporting

from muster.client import Client

REFERENCE = {"check": "gemm", "metric": "tflops_bf16", "fail_below": 1.0, "source": "the tests"}


async def stored_epoch(fleet):
    """The epoch of the last leader, by the database."""
    async with opened(fleet.directory, fleet.database) as database:
        return int(await database.scalar("SELECT value FROM meta WHERE key = 'epoch'"))


async def all_is_stored_once(fleet, nodes, eventually):
    """Ends the nodes' work, and asks the database for each run that they have made."""
    for node in nodes.values():
        node.most = node.seq
    await eventually(lambda: not any(node.kept for node in nodes.values()), 60)
    made = sum(node.seq for node in nodes.values())
    leader = await fleet.leader()
    runs = [run["id"] for run in Client(leader.url).pages("runs")["items"]]
    assert (len(runs), len(set(runs))) == (made, made)


async def takes_over(fleet, leader):
    """Returns the new leader when it has answered, and how long that took."""
    began = asyncio.get_running_loop().time()
    other = await fleet.leader(but=leader)
    async with asyncio.timeout(60):
        while other.asks("/api/v1/fleet") is None:
            await asyncio.sleep(0.02)
    return other, asyncio.get_running_loop().time() - began


async def ends_and_is_followed(fleet, leader, number):
    """Sends the leader this signal; returns the one that leads within ten seconds, with an epoch of its own."""
    epoch = await stored_epoch(fleet)
    leader.process.send_signal(number)
    other, took_s = await takes_over(fleet, leader)
    assert took_s < 10
    assert await stored_epoch(fleet) > epoch
    return other


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_another_one_leads_when_the_leader_ends(fleet, eventually, number):
    """Within ten seconds; nodes notice nothing, and each run is stored once."""
    leader = await fleet.leader()
    async with reporting(leader, "n1", "n2") as nodes:
        await eventually(lambda: all(node.seq > 3 for node in nodes.values()))
        other = await ends_and_is_followed(fleet, leader, number)
        assert leader.process.wait(20) == (0 if number is signal.SIGTERM else -signal.SIGKILL)
        await all_is_stored_once(fleet, nodes, eventually)
        seen = other.get("/api/v1/fleet")
    assert (seen["nodes"], seen["lost"]) == (2, [])


async def test_a_leader_that_was_paused_does_no_harm(fleet, eventually):
    """Another one leads meanwhile. When it goes on, it stores and sends nothing, and stands by."""
    leader = await fleet.leader()
    async with reporting(leader, "n1", "n2") as nodes:
        await eventually(lambda: all(node.seq > 3 for node in nodes.values()))
        leader.process.send_signal(signal.SIGSTOP)
        other, _ = await takes_over(fleet, leader)
        epoch = await stored_epoch(fleet)
        leader.process.send_signal(signal.SIGCONT)
        await eventually(lambda: leader.stands_by, 60)
        await asyncio.sleep(2)
        assert other.leads
        assert await stored_epoch(fleet) == epoch
        await all_is_stored_once(fleet, nodes, eventually)
    assert leader.process.poll() is None


async def test_the_database_goes_and_comes_back(fleet, eventually):
    """No coordinator ends. One of them leads again, and each run is stored once."""
    leader = await fleet.leader()
    async with reporting(leader, "n1", "n2") as nodes:
        for mode in ("immediate", "fast"):
            await eventually(lambda: all(node.kept for node in nodes.values()))
            before = sum(rival.times("leadership_lost") for rival in fleet.rivals)
            fleet.postgres.stop(mode)
            await eventually(lambda before=before: sum(r.times("leadership_lost") for r in fleet.rivals) > before)
            assert all(rival.process.poll() is None for rival in fleet.rivals)
            asked = [rival.ask("GET", "/api/v1/fleet")[0] for rival in fleet.rivals]
            assert asked == [503, 503]
            fleet.postgres.start()
            await fleet.leader()
        await all_is_stored_once(fleet, nodes, eventually)
    told = [line for rival in fleet.rivals for line in rival.log if "Traceback" in line.get("text", "")]
    assert told == []


async def test_a_standby_answers_as_the_leader_does(fleet):
    """It passes on what people read, what they change, and refusals."""
    leader = await fleet.leader()
    standby = fleet.other(leader)
    assert standby.ask("PUT", "/api/v1/references", REFERENCE)[0] in (200, 201)
    assert leader.get("/api/v1/references") == standby.get("/api/v1/references")
    assert standby.ask("GET", "/api/v1/nodes/nobody")[0] == 404
    assert standby.get("/readyz") == {"status": "standby", "leader": leader.url}
