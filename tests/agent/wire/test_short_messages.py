"""What the agent sends to a coordinator that accepts compressed messages, repeats, and reports as heartbeats."""

import asyncio

from tests.agent.wire.test_link import TOPICS, Coordinator, Linked, coordinating, linked

from muster.model import Run, Verdict
from muster.wire import codec
from muster.wire.deflate import DEFLATED, deflated
from muster.wire.messages import DEFLATE, REPEATS, REPORTS_AS_HEARTBEATS, Ack, CoordinatorPresence, Report
from muster.wire.topics import NodeTopic
from muster_agent.decide import inventory_timing
from muster_agent.decide.events import CoordinatorSeen
from muster_agent.wire.outbox import Outbox


def due(number: int) -> Run:
    """A scheduled run."""
    return Run(
        id=f"r{number}",
        node="n",
        check="light",
        verdict=Verdict.PASS,
        metrics={"a": [float(number), None]},
        started_at=number / 8,
        duration_s=0.25,
        cause="schedule",
    )


def append(node: Linked, number: int) -> None:
    kept = node.outbox.append(due(number))
    assert kept is not None
    node.link.appended(kept)


async def lead(coordinator: Coordinator, node: Linked, *accepts: str, epoch: int = 1) -> None:
    """Lets the agent hear who leads."""
    async with asyncio.timeout(20):
        while not node.link.connected:
            await asyncio.sleep(0.01)
    presence = CoordinatorPresence(sent_at=1.0, online=True, epoch=epoch, accepts=accepts)
    await coordinator.say(TOPICS.coordinator, presence)
    while not isinstance(await node.next(), CoordinatorSeen):
        pass


async def reported(coordinator: Coordinator, count: int) -> list[Report]:
    """All reports, as soon as there are `count`."""
    return await coordinator.until(NodeTopic.REPORT, lambda seen: len(seen) >= count)


def forms(coordinator: Coordinator) -> list[str]:
    """W for each whole run that was received, and for each repeat the number that it is like."""
    seen = coordinator.heard[NodeTopic.REPORT]
    return ["W" if isinstance(one, Run) else str(one.like) for report in seen for one in report.in_order]


async def test_runs_travel_as_repeats_until_there_is_a_gap(mosquitto, tmp_path):
    """Then whole, from the oldest that is kept, and as repeats again when these are stored."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        first = await first_stored(coordinator, node)
        append(node, 2)
        await reported(coordinator, 2)
        await coordinator.ack(first, 1, gap=True)
        third = (await reported(coordinator, 3))[-1]
        await acked(coordinator, node, third, 2)
        append(node, 3)
        await reported(coordinator, 4)
        assert forms(coordinator) == ["W", "1", "W", "2"]


async def first_stored(coordinator: Coordinator, node: Linked) -> Report:
    """The report of the first run, which a coordinator that takes repeats has stored."""
    await lead(coordinator, node, DEFLATE, REPEATS)
    append(node, 1)
    (first,) = await reported(coordinator, 1)
    await acked(coordinator, node, first, 1)
    return first


async def acked(coordinator: Coordinator, node: Linked, report, through: int, hold_s: float = 0.0) -> None:
    """Acknowledges in the compressed form, and returns when the agent has deleted the runs."""
    ack = Ack(sent_at=1.0, stream=report.stream, stored_through=through, hold_s=hold_s)
    await coordinator.say(TOPICS.node("n", NodeTopic.ACK), deflated(codec.encode_short(ack)))
    async with asyncio.timeout(20):
        while len(node.outbox):
            await asyncio.sleep(0.01)


async def test_another_leader_gets_everything_whole_and_an_older_one_gets_json(mosquitto, tmp_path):
    """It has no run that others are like; one that does not say what it accepts is sent what 0.1 was sent."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        await first_stored(coordinator, node)
        await lead(coordinator, node, DEFLATE, REPEATS, epoch=2)
        append(node, 2)
        second = (await reported(coordinator, 2))[-1]
        await acked(coordinator, node, second, 2)
        await lead(coordinator, node, epoch=3)
        append(node, 3)
        await reported(coordinator, 3)
        assert forms(coordinator) == ["W", "W", "W"]
        payloads = [payload for topic, payload in coordinator.payloads if topic is NodeTopic.REPORT]
        assert [payload.startswith(DEFLATED) for payload in payloads] == [True, True, False]


async def test_a_run_that_waited_over_a_restart_of_the_agent_is_whole(mosquitto, tmp_path):
    """The agent has forgotten which runs were acknowledged; the run keeps its id."""
    async with coordinating(mosquitto) as coordinator:
        async with linked(mosquitto, tmp_path) as node:
            await lead(coordinator, node, DEFLATE, REPEATS)
            append(node, 1)
            (first,) = await reported(coordinator, 1)
            await acked(coordinator, node, first, 1)
            append(node, 2)
            await reported(coordinator, 2)
        async with linked(mosquitto, tmp_path) as node:
            await lead(coordinator, node, DEFLATE, REPEATS)
            seen = (await reported(coordinator, 3))[-1]
            assert [one.seq for one in seen.runs] == [2]
            assert seen.runs[0].id == f"{first.runs[0].id.partition('.')[0]}.2"


async def test_while_reports_come_there_are_few_heartbeats(mosquitto, tmp_path):
    """And those that the broker does not keep are compressed."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path, heartbeat_s=1.0) as node:
        await coordinator.until(NodeTopic.PRESENCE, lambda seen: seen)
        await lead(coordinator, node, DEFLATE, REPEATS, REPORTS_AS_HEARTBEATS)
        for number in range(1, 11):
            append(node, number)
            report = (await reported(coordinator, number))[-1]
            await acked(coordinator, node, report, number)
            await asyncio.sleep(0.2)  # two heartbeats' time in all
        assert len(coordinator.heard[NodeTopic.PRESENCE]) == 1
        await coordinator.until(NodeTopic.PRESENCE, lambda seen: len(seen) == 2)
        payloads = [payload for topic, payload in coordinator.payloads if topic is NodeTopic.PRESENCE]
        assert [payload.startswith(DEFLATED) for payload in payloads] == [False, True]


async def test_a_heartbeat_waits_for_the_report_of_runs_that_wait(mosquitto, tmp_path):
    """The report makes it needless: none comes between two reports that are further apart than heartbeats."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path, heartbeat_s=1.0) as node:
        await lead(coordinator, node, DEFLATE, REPEATS, REPORTS_AS_HEARTBEATS)
        for number in range(1, 4):
            append(node, number)
            report = (await reported(coordinator, number))[-1]
            await acked(coordinator, node, report, number, hold_s=1.3)
        append(node, 4)
        await reported(coordinator, 4)
        assert len(coordinator.heard[NodeTopic.PRESENCE]) == 1


def test_the_id_of_a_scheduled_run_follows_from_its_number(tmp_path):
    """Other runs keep theirs."""
    outbox = Outbox(tmp_path / "outbox.db", 100, "boot")
    kept = [outbox.append(due(1)), outbox.append(due(2).model_copy(update={"cause": "r-1"}))]
    ids = [run.id for run in kept if run is not None]
    assert ids[0].endswith(".1")
    assert ids[1] == "r2"
    outbox.close()


async def test_an_inventory_waits_for_the_word_of_the_coordinator(mosquitto, tmp_path, monkeypatch):
    """It comes compressed to one that takes that, and again in full to one that does not."""
    monkeypatch.setattr(inventory_timing, "WAITS_S", 3600.0)
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        for epoch, accepts in enumerate(((DEFLATE,), (DEFLATE, REPEATS), ()), start=1):
            await lead(coordinator, node, *accepts, epoch=epoch)
        await coordinator.until(NodeTopic.INVENTORY, lambda seen: len(seen) == 2)
        payloads = [payload for topic, payload in coordinator.payloads if topic is NodeTopic.INVENTORY]
        assert [payload.startswith(DEFLATED) for payload in payloads] == [True, False]


async def test_an_inventory_does_not_wait_for_a_coordinator_that_is_away(mosquitto, tmp_path, monkeypatch):
    """The broker keeps it in full: the next coordinator may be any."""
    monkeypatch.setattr(inventory_timing, "WAITS_S", 0.05)
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path):
        await coordinator.until(NodeTopic.INVENTORY, lambda seen: seen)
        (payload,) = (payload for topic, payload in coordinator.payloads if topic is NodeTopic.INVENTORY)
        assert not payload.startswith(DEFLATED)
