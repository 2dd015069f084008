import asyncio
import contextlib
import json
import socket
import time
from typing import Any

import aiomqtt
import pytest
import structlog

from muster.config import Settings
from muster.model import Inventory, Run, Verdict
from muster.mqtt import connection_options
from muster.references import Reference
from muster.wire.codec import ACK, COORDINATOR, MAX_MESSAGE_BYTES, REFERENCES, decode, encode
from muster.wire.deflate import DEFLATED, deflated
from muster.wire.messages import KEPT_NOTHING, Ack, Finished, InventoryReport, Presence, References, Report, Start
from muster.wire.report_head import ReportHead
from muster.wire.topics import FROM_NODE, NodeTopic, Topics
from muster_coordinator.evidence.node_events import event_of
from muster_coordinator.model.events import (
    AgentMisbehaved,
    FleetEvent,
    GroupReplySeen,
    InventorySeen,
    LinkCaughtUp,
    LinkLost,
    LinkRestored,
    PresenceSeen,
    PublishReferences,
    ReportRepeated,
    ReportSeen,
    SendAck,
    SendCommand,
)
from muster_coordinator.model.load import LoadSeen
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.runtime import link as link_module
from muster_coordinator.runtime.broker import embedded_broker
from muster_coordinator.runtime.inventory_digest import inventory_digest
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.load_meter import LoadMeter
from muster_coordinator.runtime.muting import FLOOD_MESSAGES
from muster_coordinator.runtime.rate_limits import LIMITS

TOPICS = Topics("default")
NODES = ("n1", "n2", "n3")
KNOWN = ("n1", ReportHead("s", 0, 9))
"""A report that was taken already."""

TAKEN = encode(InventoryReport(sent_at=1000.0, node="n1", inventory=Inventory(), checks=()))
"""An inventory that was taken already."""


def client(url: str, **options) -> aiomqtt.Client:
    """A client. Its timeout allows for hundreds of messages that wait for the broker on a busy machine."""
    return aiomqtt.Client(**{"timeout": 60, **connection_options(Settings().broker, url), **options})


async def eventually(condition, deadline_s=20.0):
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def linked(url: str):
    """A link that has connected, and the list that its events go to, without those that each connection has."""
    events: list[FleetEvent] = []

    async def deliver(batch):
        events.extend(event for event in batch if not isinstance(event, LinkLost | LinkCaughtUp | LoadSeen))

    async with linked_to(deliver, url) as link:
        yield link, events


@contextlib.asynccontextmanager
async def linked_to(deliver, url: str):
    """A link that has connected, and whose events are delivered there."""
    async with running(deliver, url) as link:
        await eventually(lambda: link.connected)
        yield link


@contextlib.asynccontextmanager
async def running(deliver, url: str):
    """A link that connects as soon as it may."""
    link = CoordinatorLink(
        Settings(),
        broker_url=url,
        api_url="http://127.0.0.1:1",
        epoch=7,
        deliver=deliver,
        known=lambda: NODES,
        is_known=lambda node, head: (node, head) == KNOWN,
        has_inventory=lambda node, digest: (node, digest) == ("n1", inventory_digest(TAKEN)),
        clock=time.time,
    )
    task = asyncio.create_task(link.run())
    try:
        yield link
    finally:
        while not task.done():  # before Python 3.12, a wait inside aiomqtt forgets what comes together with its answer
            task.cancel()
            await asyncio.wait([task], timeout=1)


@pytest.fixture(params=["embedded", "mosquitto"])
async def url(request):
    if request.param == "mosquitto":
        yield request.getfixturevalue("mosquitto").url
    else:
        async with embedded_broker("127.0.0.1:0") as url:
            yield url


def presence(node="n1") -> Presence:
    return Presence(sent_at=1000.0, node=node, online=True)


def report(node="n1", first=1, count=1) -> Report:
    runs = tuple(
        Run(id=f"{node}-{n}", node=node, check="gemm", verdict=Verdict.PASS, started_at=1.0, duration_s=1.0, seq=n)
        for n in range(first, first + count)
    )
    return Report(sent_at=1000.0, node=node, stream="s", after=0, runs=runs)


async def test_every_kind_of_message_becomes_its_event(url):
    """Presence, inventory, report and group reply arrive as events with the message inside."""
    heartbeat, runs = presence(), report()
    inventory = InventoryReport(sent_at=1000.0, node="n1", inventory=Inventory(), checks=())
    reply = Finished(sent_at=1000.0, node="n1", group="g", ranks=())
    messages = {
        NodeTopic.PRESENCE: (heartbeat, PresenceSeen(heartbeat)),
        NodeTopic.INVENTORY: (inventory, InventorySeen(inventory, digest=inventory_digest(encode(inventory)))),
        NodeTopic.REPORT: (runs, ReportSeen(runs, len(encode(runs)))),
        NodeTopic.GROUP: (reply, GroupReplySeen(reply)),
    }
    async with linked(url) as (link, events), client(url) as node:
        for topic, (message, _) in messages.items():
            await node.publish(TOPICS.node("n1", topic), encode(message), qos=1)
        await eventually(lambda: len(events) == len(messages))
        assert sorted(events, key=repr) == sorted((event for _, event in messages.values()), key=repr)
        assert link.of_nodes.received == len(messages)


async def test_a_report_that_was_taken_already_is_not_decoded(url):
    """Its runs could be anything: only its first fields are read. One that was not is decoded."""
    known = encode(report(first=9).model_copy(update={"through": 9}))
    new = report(first=10).model_copy(update={"through": 10})
    async with linked(url) as (link, events), client(url) as node:
        topic = TOPICS.node("n1", NodeTopic.REPORT)
        await node.publish(topic, known[: known.index(b'"runs"')] + b"garbage", qos=1)
        await node.publish(topic, encode(new), qos=1)
        await eventually(lambda: len(events) == 2)
        assert events == [ReportRepeated("n1", "s"), ReportSeen(new, len(encode(new)))]
        assert not link.of_nodes.refused


async def test_an_inventory_that_was_taken_already_is_dropped(url):
    """It is not decoded. The same bytes from another node are somebody else's inventory, which is refused."""
    new = InventoryReport(sent_at=2000.0, node="n1", inventory=Inventory(), checks=())
    async with linked(url) as (link, events), client(url) as node:
        for name, payload in (("n1", TAKEN), ("n1", encode(new)), ("n2", TAKEN)):
            await node.publish(TOPICS.node(name, NodeTopic.INVENTORY), payload, qos=1)
        await eventually(lambda: len(events) == 2)
        assert events[0] == InventorySeen(new, digest=inventory_digest(encode(new)))
        assert (link.of_nodes.received, dict(link.of_nodes.refused)) == (3, {"wrong_node": 1})


async def test_a_node_that_compresses_its_reports_gets_compressed_acknowledgements(mosquitto):
    """As long as it does: after a downgrade its agent could not read them. A report counts as long as its JSON is."""
    message = report()
    said = encode(message)
    topic, ack = TOPICS.node("n1", NodeTopic.REPORT), Ack(sent_at=1.0, stream="s", stored_through=1)
    async with linked(mosquitto.url) as (link, events), client(mosquitto.url) as node:
        await node.subscribe(TOPICS.node("n1", NodeTopic.ACK), qos=1)
        answers = []
        for payload in (deflated(said), said):
            events.clear()
            await node.publish(topic, payload, qos=1)
            await eventually(lambda: events)
            assert events == [ReportSeen(message, len(said))]
            link.send(SendAck("n1", ack))
            async with asyncio.timeout(20):
                answers.append((await anext(node.messages)).payload)
        assert [answer.startswith(DEFLATED) for answer in answers] == [True, False]
        assert [decode(answer, ACK) for answer in answers] == [ack, ack]


async def test_what_was_retained_before_is_heard(url):
    """Presence that was published while the coordinator was away arrives when it connects."""
    async with client(url) as node:
        await node.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1, retain=True)
    async with linked(url) as (_, events):
        await eventually(lambda: [event.message.node for event in events] == ["n1"])


REFUSED = {
    "not JSON": (NodeTopic.REPORT, b"\xff\x00garbage", "malformed"),
    "nothing": (NodeTopic.REPORT, b"", "malformed"),
    "an array": (NodeTopic.GROUP, b"[]", "malformed"),
    "missing fields": (NodeTopic.PRESENCE, b'{"schema": 1}', "malformed"),
    "deep nesting": (NodeTopic.REPORT, b"[" * 100_000, "malformed"),
    "another version": (NodeTopic.PRESENCE, b'{"schema": 2}', "unknown_version"),
    "another node's name": (NodeTopic.PRESENCE, encode(presence("n2")), "wrong_node"),
    "another node's runs": (NodeTopic.REPORT, encode(report("n2")), "wrong_node"),
    "a bomb": (NodeTopic.REPORT, deflated(b" " * (MAX_MESSAGE_BYTES + 1)), "oversized"),
    "no end": (NodeTopic.REPORT, deflated(encode(report()))[:-2], "malformed"),
    "too much": (NodeTopic.REPORT, b" " * (MAX_MESSAGE_BYTES + 1), "oversized"),
}


async def test_bad_messages_are_counted_logged_once_and_dropped(mosquitto):
    """Each kind is counted every time and logged the first time; good messages after them arrive."""
    with structlog.testing.capture_logs() as logs:
        async with linked(mosquitto.url) as (link, events), client(mosquitto.url) as node:
            for topic, payload, _ in [*REFUSED.values(), *REFUSED.values()]:
                await node.publish(TOPICS.node("n1", topic), payload, qos=1)
            await node.publish(TOPICS.node("bad name!", NodeTopic.REPORT), b"{}", qos=1)
            await node.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1)
            await eventually(lambda: events)
    kinds = [kind for _, _, kind in REFUSED.values()]
    expected = {kind: 2 * kinds.count(kind) for kind in set(kinds)}
    expected["malformed"] += 1
    assert dict(link.of_nodes.refused) == expected
    told = [entry["kind"] for entry in logs if entry["event"] == "message_refused"]
    assert sorted(told) == sorted(expected)


async def test_a_last_will_is_heard_whatever_its_qos(url):
    """The embedded broker sends it with QoS 1, although the link subscribes with QoS 0. The connection goes on."""
    will = aiomqtt.Will(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1, retain=True)
    async with linked(url) as (link, events):
        with pytest.raises(aiomqtt.MqttError):
            async with client(url, will=will) as node:
                connection: Any = node._client.socket()
                connection.shutdown(socket.SHUT_RDWR)
                await anext(node.messages)
        await eventually(lambda: [(event.message.node, event.kept) for event in events] == [("n1", False)])
        async with client(url) as node:
            await node.publish(TOPICS.node("n2", NodeTopic.PRESENCE), encode(presence("n2")), qos=1)
        await eventually(lambda: [event.message.node for event in events] == ["n1", "n2"])
        assert link.connected


@pytest.mark.parametrize("is_kept", [True, False])
async def test_a_new_fleet_does_not_look_like_a_broker_that_keeps_nothing(url, monkeypatch, is_kept):
    """Its node comes after the coordinator, which gets what was kept since when it subscribes once more."""
    monkeypatch.setattr("muster_coordinator.runtime.kept_messages.COMES_WITHIN_S", 0.5)
    async with client(url) as node, linked(url) as (_, events):
        await node.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1, retain=is_kept)
        await eventually(lambda: events)
        await node.subscribe(TOPICS.coordinator, qos=1)
        if is_kept:
            await eventually(lambda: any(event.kept for event in events))
        async with asyncio.timeout(20):
            async for message in node.messages:
                accepted = decode(message.payload, COORDINATOR).accepts
                if is_kept or KEPT_NOTHING in accepted:
                    break
        assert (KEPT_NOTHING in accepted) is not is_kept


async def test_a_cleared_retained_message_is_nothing(url):
    """Somebody who clears what the broker kept of a node has said nothing about it."""
    async with linked(url) as (link, events), client(url) as node:
        await node.publish(TOPICS.node("n1", NodeTopic.INVENTORY), b"", qos=1, retain=True)
        await node.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1)
        await eventually(lambda: events)
        assert not link.of_nodes.refused


def references(*bounds: float) -> PublishReferences:
    rows = tuple(Reference(check="gemm", metric="tflops", fail_below=bound, source="test") for bound in bounds)
    return PublishReferences(References(sent_at=1.0, rows=rows))


async def kept_bounds(url: str) -> list[float | None]:
    """The bounds of the references that the broker gives to whoever subscribes now."""
    async with client(url) as node:
        await node.subscribe(TOPICS.references, qos=1)
        async with asyncio.timeout(20):
            message = await anext(node.messages)
        return [row.fail_below for row in decode(message.payload, REFERENCES).rows]


async def test_the_broker_keeps_the_references_for_who_comes_later(url):
    """Of several messages the last."""
    async with linked(url) as (link, _):
        link.send(references(1.0))
        link.send(references(1.0, 2.0))
        link.send(SendAck("n1", Ack(sent_at=1.0, stream="s", stored_through=1)))
        async with client(url) as node:
            await node.subscribe(TOPICS.references, qos=1)
            async with asyncio.timeout(20):
                async for message in node.messages:
                    if len(decode(message.payload, REFERENCES).rows) == 2:
                        break
        assert await kept_bounds(url) == [1.0, 2.0]


async def test_the_references_are_said_again_to_a_broker_that_has_lost_them(mosquitto):
    """Also those that were set while it was away."""
    async with linked(mosquitto.url) as (link, _):
        link.send(references(1.0))
        mosquitto.stop()
        await eventually(lambda: not link.connected)
        link.send(references(2.0))
        mosquitto.start()
        await eventually(lambda: link.connected)
        assert await kept_bounds(mosquitto.url) == [2.0]


async def test_acks_and_commands_reach_their_node_in_order(url):
    """Each goes to its node's own topic, in the order in which they were sent."""
    async with client(url) as node, linked(url) as (link, _):
        await node.subscribe(TOPICS.node("n1", NodeTopic.ACK), qos=1)
        await node.subscribe(TOPICS.node("n1", NodeTopic.COMMAND), qos=1)
        for n in range(200):
            link.send(SendAck("n1", Ack(sent_at=1.0, stream="s", stored_through=n)))
            link.send(SendAck("n2", Ack(sent_at=1.0, stream="s", stored_through=n)))
        link.send(SendCommand("n1", Start(sent_at=1.0, epoch=7, expires_at=2.0, group="g")))
        through, orders = [], []
        async with asyncio.timeout(20):
            async for message in node.messages:
                body = json.loads(message.payload)
                if str(message.topic).endswith("/command"):
                    orders.append(body["kind"])
                    break
                through.append(body["stored_through"])
        assert through == list(range(200))
        assert orders == ["start"]


async def test_a_burst_arrives_completely(mosquitto):
    """Thousands of reports of many nodes at once; those of each node come in order."""
    nodes = [f"n{number}" for number in range(30)]
    async with linked(mosquitto.url) as (_, events), client(mosquitto.url) as node:
        for seq in range(1, 101):
            sends = (
                node.publish(TOPICS.node(name, NodeTopic.REPORT), encode(report(name, seq)), qos=1) for name in nodes
            )
            await asyncio.gather(*sends)
        await eventually(lambda: len(events) >= 3000)
        for name in nodes:
            told = [event.message.runs[0].seq for event in events if event.message.node == name]
            assert told == list(range(1, 101))


async def test_a_node_that_floods_is_muted_and_others_are_not(mosquitto):
    """The link drops what a node sends beyond its allowance, reports the node, and unsubscribes from its messages."""
    async with linked(mosquitto.url) as (link, events), client(mosquitto.url) as n1, client(mosquitto.url) as n2:

        def senders(kind):
            return [event.message.node for event in events if isinstance(event, kind)]

        began = time.monotonic()
        for start in range(0, 3000, 300):
            await asyncio.gather(
                *(n1.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1) for _ in range(300))
            )
            await n2.publish(TOPICS.node("n2", NodeTopic.REPORT), encode(report("n2", start + 1)), qos=1)
        await eventually(lambda: link.muted == {"n1"})
        await eventually(lambda: AgentMisbehaved("n1", Misconduct.FLOODING, NodeTopic.PRESENCE) in events)
        await eventually(lambda: senders(ReportSeen).count("n2") == 10)
        await eventually(lambda: link.of_nodes.refused["beyond_allowance"] >= FLOOD_MESSAGES)
        # A node's messages come in order: its report comes after the presences that were admitted, and is not muted.
        await n1.publish(TOPICS.node("n1", NodeTopic.REPORT), encode(report("n1")), qos=1)
        await eventually(lambda: senders(ReportSeen).count("n1") == 1)
        admitted, limit = senders(PresenceSeen).count("n1"), LIMITS[NodeTopic.PRESENCE].messages
        assert admitted <= limit.burst + limit.per_s * (time.monotonic() - began)
        await n1.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1)
        await n1.publish(TOPICS.node("n1", NodeTopic.REPORT), encode(report("n1", 2)), qos=1)
        await n2.publish(TOPICS.node("n2", NodeTopic.PRESENCE), encode(presence("n2")), qos=1)
        await eventually(lambda: "n2" in senders(PresenceSeen) and senders(ReportSeen).count("n1") == 2)
        assert senders(PresenceSeen).count("n1") == admitted


async def test_a_message_that_makes_decoding_fail_is_dropped(mosquitto, monkeypatch):
    """It is logged and reported with its node, and the messages of other nodes arrive."""

    def fail(topic, node, payload, **others):
        if node == "n1":
            raise RecursionError("a bug")
        return event_of(topic, node, payload, **others)

    monkeypatch.setattr("muster_coordinator.runtime.node_messages.event_of", fail)
    async with linked(mosquitto.url) as (link, events), client(mosquitto.url) as node:
        with structlog.testing.capture_logs() as logs:
            for name in ("n1", "n1", "n2"):
                await node.publish(TOPICS.node(name, NodeTopic.PRESENCE), encode(presence(name)), qos=1)
            await eventually(lambda: len(events) == 2 and link.of_nodes.refused["failed"] == 2)
        assert AgentMisbehaved("n1", Misconduct.FAILED, "RecursionError") in events
        assert [event.message.node for event in events if isinstance(event, PresenceSeen)] == ["n2"]
        assert [line["event"] for line in logs if line["log_level"] == "error"] == ["message_failed"]


async def test_messages_that_no_agent_sends_are_reported_with_their_node(mosquitto):
    """Malformed messages, and those in the name of another node; a newer version is no misconduct."""
    async with linked(mosquitto.url) as (_, events), client(mosquitto.url) as node:
        newer = encode(presence("n3")).replace(b'"schema":1', b'"schema":2')
        for name, payload in (("n3", newer), ("n1", b"{}"), ("n2", encode(presence("n1")))):
            await node.publish(TOPICS.node(name, NodeTopic.PRESENCE), payload, qos=1)
        await eventually(lambda: len(events) == 2)
        assert set(events) == {
            AgentMisbehaved("n1", Misconduct.REFUSED, "malformed"),
            AgentMisbehaved("n2", Misconduct.REFUSED, "wrong_node"),
        }


async def test_nothing_is_lost_while_the_coordinator_is_slow(url, monkeypatch):
    """What it cannot take yet stays with the broker, such as what ten thousand nodes have said when it comes new."""
    monkeypatch.setattr("muster_coordinator.runtime.inbox.MOST", 100)
    taken: list[PresenceSeen] = []
    gate = asyncio.Event()

    async def deliver(batch):
        await gate.wait()
        taken.extend(event for event in batch if isinstance(event, PresenceSeen))

    said = [f"n{number}" for number in range(1_000)]
    async with client(url) as node, linked_to(deliver, url) as link:
        for start in range(0, len(said), 500):
            topics = ((TOPICS.node(name, NodeTopic.PRESENCE), name) for name in said[start : start + 500])
            await asyncio.gather(*(node.publish(topic, encode(presence(name)), qos=1) for topic, name in topics))
        assert link.of_nodes.received < 500
        gate.set()
        await eventually(lambda: len(taken) == len(said))
    assert sorted(event.message.node for event in taken) == sorted(said)


async def test_all_that_the_broker_has_kept_comes_in(url, monkeypatch):
    """Also when it is more than may wait: it comes before the answer to the subscription."""
    monkeypatch.setattr("muster_coordinator.runtime.inbox.MOST", 100)
    said = [f"n{number}" for number in range(1_000)]
    async with client(url) as node, client(url) as watcher:
        await watcher.subscribe(TOPICS.node(said[-1], NodeTopic.PRESENCE))
        for start in range(0, len(said), 500):
            topics = ((TOPICS.node(name, NodeTopic.PRESENCE), name) for name in said[start : start + 500])
            sends = (node.publish(topic, encode(presence(name)), qos=1, retain=True) for topic, name in topics)
            await asyncio.gather(*sends)
        await anext(aiter(watcher.messages))  # the embedded broker confirms what it has not kept yet
        async with linked(url) as (_, events):
            await eventually(lambda: len(events) >= len(said))
    assert sorted(event.message.node for event in events) == sorted(said)


async def said_by_coordinator(watcher: aiomqtt.Client):
    async with asyncio.timeout(20):
        message = await anext(aiter(watcher.messages))
    return decode(message.payload, COORDINATOR)


async def test_the_coordinator_says_who_leads_and_says_goodbye(url):
    """The epoch and the API's address stand retained; a clean stop says offline."""
    async with client(url) as watcher:
        async with linked(url):
            await watcher.subscribe(TOPICS.coordinator, qos=1)
            said = await said_by_coordinator(watcher)
            assert (said.online, said.epoch, said.url) == (True, 7, "http://127.0.0.1:1")
        assert not (await said_by_coordinator(watcher)).online


async def test_agents_hear_of_another_slowdown_with_the_next_heartbeat(url, monkeypatch):
    """The heartbeats after it are not for them again. The broker keeps it for those that connect later."""
    monkeypatch.setattr(link_module, "HEARTBEAT_S", 0.2)
    async with client(url) as agent, linked(url):
        await agent.subscribe(TOPICS.coordinator, qos=1)
        assert (await said_by_coordinator(agent)).slowdown == 1
        monkeypatch.setattr(LoadMeter, "slowdown", 3)
        slowed_down = await said_by_coordinator(agent)
        if slowed_down.slowdown == 1:  # the first one came twice: when it was published, and because it is kept
            slowed_down = await said_by_coordinator(agent)
        await asyncio.sleep(1.0)
        async with client(url) as late:
            await late.subscribe(TOPICS.coordinator, qos=1)
            assert await said_by_coordinator(late) == slowed_down
        assert slowed_down.slowdown == 3


async def test_the_link_comes_back_after_the_broker(mosquitto):
    """While the broker is away nothing can be sent; afterwards messages flow as before."""
    async with linked(mosquitto.url) as (link, events):
        mosquitto.stop()
        await eventually(lambda: not link.connected)
        link.send(SendAck("n1", Ack(sent_at=1.0, stream="s", stored_through=1)))
        mosquitto.start()
        await eventually(lambda: link.connected)
        async with client(mosquitto.url) as node:
            await node.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1)
            await eventually(lambda: events)


async def test_each_connection_has_a_name_of_its_own(mosquitto):
    """Agents repeat their last reply about a group when they hear another name."""

    async def named() -> str:
        async with client(mosquitto.url) as watcher:
            await watcher.subscribe(TOPICS.coordinator, qos=1)
            return str((await said_by_coordinator(watcher)).connection)

    async with linked(mosquitto.url) as (link, _):
        first = await named()
        assert first
        assert await named() == first
        mosquitto.stop()
        await eventually(lambda: not link.connected)
        mosquitto.start()
        await eventually(lambda: link.connected)
        assert await named() not in ("", first)


async def test_the_broker_that_is_back_is_news_and_the_first_connection_is_not(mosquitto):
    """What nodes found meanwhile is still in their outboxes."""
    async with linked(mosquitto.url) as (link, events):
        assert events == []
        mosquitto.stop()
        await eventually(lambda: not link.connected)
        mosquitto.start()
        await eventually(lambda: link.connected)
        assert events == [LinkRestored()]


async def test_each_connection_says_when_it_begins_has_delivered_what_was_kept_and_ends(mosquitto):
    """Kept messages come before the link has caught up; the loss is told once, however long the broker is away."""
    async with client(mosquitto.url) as node:
        await node.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1, retain=True)
    events: list[Any] = []

    async def deliver(batch):
        events.extend(event for event in batch if not isinstance(event, LoadSeen))

    async with linked_to(deliver, mosquitto.url) as link:
        await eventually(lambda: len(events) == 2)
        mosquitto.stop()
        await eventually(lambda: not link.connected)
        await asyncio.sleep(1.0)  # more attempts fail meanwhile
        mosquitto.start()
        await eventually(lambda: len(events) == 5)
        assert (events[0].message.node, events[0].kept) == ("n1", True)
        assert events[1:] == [LinkCaughtUp(), LinkLost(), LinkRestored(), LinkCaughtUp()]


async def test_what_the_receiver_raises_ends_the_link(mosquitto):
    """A bug behind the link is not taken for a lost connection."""

    async def deliver(batch):
        if not all(isinstance(event, LinkCaughtUp | LoadSeen) for event in batch):
            raise RuntimeError("a bug")

    link = CoordinatorLink(
        Settings(),
        broker_url=mosquitto.url,
        api_url="",
        epoch=7,
        deliver=deliver,
        known=lambda: NODES,
        is_known=lambda node, head: (node, head) == KNOWN,
        has_inventory=lambda node, digest: (node, digest) == ("n1", inventory_digest(TAKEN)),
        clock=time.time,
    )
    task = asyncio.create_task(link.run())
    await eventually(lambda: link.connected)
    async with client(mosquitto.url) as node:
        await node.publish(TOPICS.node("n1", NodeTopic.PRESENCE), encode(presence()), qos=1)
    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(task, 20)
    assert raised.group_contains(RuntimeError, match="a bug")


async def test_an_inventory_that_the_broker_has_kept_is_told_from_a_new_one(url):
    """Whoever published it may be gone by now."""
    topic = TOPICS.node("n1", NodeTopic.INVENTORY)
    said = encode(InventoryReport(sent_at=1000.0, node="n1", inventory=Inventory(), checks=()))
    async with client(url) as agent:
        await agent.publish(topic, said, qos=1, retain=True)
        async with linked(url) as (_, events):
            await eventually(lambda: len(events) == 1)
            await agent.publish(topic, said, qos=1, retain=True)
            await eventually(lambda: len(events) == 2)
    assert [event.kept for event in events] == [True, False]


async def ignore(batch):
    """Takes events, and does nothing about them."""


async def refuse_subscriptions(reader, writer):
    """The end of a broker that lets a client connect and subscribe to nothing, as its rights may say."""
    connect, subscribe, connected, subscribed, refused = 0x10, 0x82, b"\x20\x02\x00\x00", 0x90, 0x80
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            kind, size = await reader.readexactly(2)
            if size >= 0x80:  # then another byte says how many times more
                size += 0x80 * ((await reader.readexactly(1))[0] - 1)
            body = await reader.readexactly(size)
            if kind == connect:
                writer.write(connected)
            elif kind == subscribe:
                codes = bytes([refused]) * body.count(b"muster/")
                writer.write(bytes([subscribed, 2 + len(codes)]) + body[:2] + codes)
    writer.close()


async def test_who_may_not_subscribe_is_not_connected():
    """It is said in the log, and the coordinator is not ready: nothing that nodes say would come in."""
    server = await asyncio.start_server(refuse_subscriptions, "127.0.0.1", 0)
    url = f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with structlog.testing.capture_logs() as logs:
        async with server, running(ignore, url) as link:
            await eventually(lambda: any(entry["event"] == "broker_connected" for entry in logs))
            own = (TOPICS.coordinator, TOPICS.coordinator_echo)
            refused = [entry["topic"] for entry in logs if entry["event"] == "subscription_refused"]
            assert sorted(refused) == sorted([*map(TOPICS.every_node, FROM_NODE), *own])
            assert not link.connected
