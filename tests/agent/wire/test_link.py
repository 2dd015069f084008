"""The connection to a real broker: presence, delivery, reconnects, and what it does with bad input."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Any

import aiomqtt
import pytest

from muster.agent_settings import AgentSettings
from muster.config import BrokerSettings, Settings
from muster.errors import SettingsError
from muster.model import Inventory, Run, Verdict
from muster.wire import codec
from muster.wire.messages import Ack, CoordinatorPresence, InventoryReport, Ready, References, Start
from muster.wire.topics import ROOT, NodeTopic, Topics
from muster_agent.decide.events import CommandReceived, CoordinatorSeen
from muster_agent.wire import link as link_module
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox

TOPICS = Topics("default")


def run(number: int) -> Run:
    return Run(id=f"r{number}", node="n", check="light", verdict=Verdict.PASS, started_at=1.0, duration_s=0.0)


@dataclass
class Coordinator:
    """A client that sees all that the node says, and speaks to it."""

    client: aiomqtt.Client
    heard: dict[NodeTopic, list] = field(default_factory=dict)
    payloads: list[tuple[NodeTopic, bytes]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def listen(self) -> None:
        async for message in self.client.messages:
            node, topic = TOPICS.parse_node(message.topic.value)
            if topic not in (NodeTopic.ACK, NodeTopic.COMMAND):
                async with self.changed:
                    self.payloads.append((topic, message.payload))
                    self.heard.setdefault(topic, []).append(codec.decode_from_node(topic, node, message.payload))
                    self.changed.notify_all()

    async def until(self, topic: NodeTopic, wanted) -> list:
        """Waits until `wanted` holds for what was heard on a topic."""
        async with asyncio.timeout(20), self.changed:
            await self.changed.wait_for(lambda: wanted(self.heard.get(topic, [])))
        return self.heard[topic]

    async def say(self, topic: str, message) -> None:
        payload = message if isinstance(message, bytes) else codec.encode(message)
        await self.client.publish(topic, payload, qos=1)

    async def ack(self, report, through: int, *, gap: bool = False, again: bool = False) -> None:
        ack = Ack(sent_at=1.0, stream=report.stream, stored_through=through, gap=gap, again=again)
        await self.say(TOPICS.node("n", NodeTopic.ACK), ack)


@contextlib.asynccontextmanager
async def coordinating(broker):
    async with aiomqtt.Client("127.0.0.1", broker.port) as client, asyncio.TaskGroup() as tasks:
        await client.subscribe(f"{ROOT}/default/node/+/+", qos=1)
        coordinator = Coordinator(client)
        listening = tasks.create_task(coordinator.listen())
        yield coordinator
        listening.cancel()


@dataclass
class Linked:
    link: AgentLink
    outbox: Outbox
    metrics: AgentMetrics
    inbox: asyncio.Queue
    references: asyncio.Queue
    task: asyncio.Task

    def append(self, number: int) -> None:
        kept = self.outbox.append(run(number))
        assert kept is not None
        self.link.appended(kept)

    async def next(self):
        async with asyncio.timeout(20):
            return await self.inbox.get()


INVENTORY = InventoryReport(sent_at=1.0, node="n", inventory=Inventory(), checks=())


@contextlib.asynccontextmanager
async def linked(broker, tmp_path, password_file=None, inventory=INVENTORY, **agent):
    """A link that has an inventory to announce, unless that is None."""
    at = BrokerSettings(url=broker.url, username="n" if password_file else None, password_file=password_file)
    settings = Settings(node="n", broker=at, agent=AgentSettings(**agent))
    outbox, metrics = Outbox(tmp_path / "outbox.db", 1000, "boot"), AgentMetrics("n1")
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    references: asyncio.Queue[Any] = asyncio.Queue()
    link = AgentLink(settings, outbox, metrics, inbox.put_nowait, references.put_nowait)
    if inventory is not None:
        link.announce(inventory)
    with contextlib.closing(outbox):
        task = asyncio.create_task(link.run())
        try:
            yield Linked(link, outbox, metrics, inbox, references, task)
        finally:
            link.close()
            await asyncio.wait([task], timeout=5)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def test_presence_is_repeated_and_a_clean_end_says_offline(mosquitto, tmp_path):
    """The heartbeat has the number of runs in the outbox."""
    async with coordinating(mosquitto) as coordinator:
        async with linked(mosquitto, tmp_path, heartbeat_s=0.5):
            seen = await coordinator.until(NodeTopic.PRESENCE, lambda seen: len(seen) >= 3)
            assert all(presence.online and not presence.goodbye for presence in seen)
            assert len({presence.process for presence in seen}) == 1
        seen = await coordinator.until(NodeTopic.PRESENCE, lambda seen: not seen[-1].online)
        assert (seen[-1].goodbye, seen[-1].process) == (True, seen[0].process)


async def test_a_lost_agent_is_told_by_its_last_will(mosquitto, tmp_path):
    """The coordinator need not wait for a missing heartbeat."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        await coordinator.until(NodeTopic.PRESENCE, lambda seen: seen)
        intruder = aiomqtt.Client("127.0.0.1", mosquitto.port, identifier="muster-default-n")
        async with intruder:  # the broker drops whoever had this name before
            seen = await coordinator.until(NodeTopic.PRESENCE, lambda seen: not seen[-1].online)
            assert not seen[-1].goodbye
        node.link.close()


async def test_runs_go_out_at_once_and_are_kept_until_they_are_stored(mosquitto, tmp_path):
    """`after` names the run before, as long as that is kept. The first report must be acknowledged before the next."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        for number in (1, 2, 3):
            node.append(number)
            reports = await coordinator.until(NodeTopic.REPORT, lambda seen, number=number: len(seen) == number)
            if number == 1:
                await coordinator.ack(reports[0], 1)
                await until(lambda: len(node.outbox) == 0)
        sent = [(report.after, [one.seq for one in report.runs]) for report in reports]
        assert sent == [(0, [1]), (0, [2]), (2, [3])]
        await coordinator.ack(reports[-1], 3)
        await until(lambda: len(node.outbox) == 0)


async def test_what_waited_goes_out_in_batches(mosquitto, tmp_path):
    """Every run is in exactly one of them, in order; the first one is acknowledged before the others go."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        for number in range(120):
            node.append(number)
        [first] = await coordinator.until(NodeTopic.REPORT, lambda seen: len(seen) == 1)
        await coordinator.ack(first, 50)
        reports = await coordinator.until(NodeTopic.REPORT, lambda seen: sum(len(one.runs) for one in seen) == 120)
        assert [one.seq for report in reports for one in report.runs] == [*range(1, 121)]
        assert max(len(report.runs) for report in reports) == 50


async def test_a_gap_sends_again_from_the_oldest(mosquitto, tmp_path):
    """The coordinator missed a report."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        node.append(1)
        node.append(2)
        seen = await coordinator.until(NodeTopic.REPORT, lambda seen: seen and seen[-1].runs[-1].seq == 2)
        before = len(seen)
        await coordinator.ack(seen[0], 0, gap=True)
        seen = await coordinator.until(NodeTopic.REPORT, lambda seen: len(seen) > before)
        assert [one.seq for one in seen[before].runs] == [1, 2]


async def test_an_invitation_sends_again_what_was_dropped(mosquitto, tmp_path):
    """The coordinator had no time for the report, and the agent need not wait until it is due."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        node.append(1)
        seen = await coordinator.until(NodeTopic.REPORT, lambda seen: seen)
        node.append(2)
        await coordinator.ack(seen[0], 0, again=True)
        seen = await coordinator.until(NodeTopic.REPORT, lambda seen: len(seen) > 1)
        assert [one.seq for one in seen[1].runs] == [1, 2]


async def test_a_new_coordinator_is_sent_everything_that_is_kept(mosquitto, tmp_path):
    """It has never seen runs that its predecessor had not stored."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        await coordinator.until(NodeTopic.PRESENCE, lambda seen: seen)
        await coordinator.say(TOPICS.coordinator, CoordinatorPresence(sent_at=1.0, online=True, epoch=1))
        assert isinstance(await node.next(), CoordinatorSeen)
        node.append(1)
        await coordinator.until(NodeTopic.REPORT, lambda seen: len(seen) == 1)
        await coordinator.say(TOPICS.coordinator, CoordinatorPresence(sent_at=2.0, online=True, epoch=2))
        await coordinator.until(NodeTopic.REPORT, lambda seen: len(seen) == 2)


async def test_an_acknowledgement_of_another_stream_is_ignored(mosquitto, tmp_path):
    """No run is deleted."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        node.append(1)
        await coordinator.until(NodeTopic.REPORT, lambda seen: seen)
        topic = TOPICS.node("n", NodeTopic.ACK)
        await coordinator.say(topic, Ack(sent_at=1.0, stream="another", stored_through=1))
        await coordinator.say(TOPICS.node("n", NodeTopic.COMMAND), start_of("g"))
        await node.next()
        assert len(node.outbox) == 1


async def test_after_a_broker_restart_everything_is_said_again(mosquitto, tmp_path):
    """Runs from the meantime are delivered, and the inventory again, because the broker has forgotten it."""
    async with linked(mosquitto, tmp_path) as node:
        async with coordinating(mosquitto) as coordinator:
            await coordinator.until(NodeTopic.INVENTORY, lambda seen: seen)
        mosquitto.stop()
        await until(lambda: not node.link.connected)
        node.append(1)
        mosquitto.start()
        async with coordinating(mosquitto) as coordinator:
            await coordinator.until(NodeTopic.REPORT, lambda seen: seen)
            await coordinator.until(NodeTopic.INVENTORY, lambda seen: seen)
    assert b"muster_agent_reconnects_total 0.0" not in node.metrics.expose()


async def test_no_run_is_sent_before_the_inventory(mosquitto, tmp_path):
    """Otherwise the run would be of a check that the node has not announced."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path, inventory=None) as node:
        node.append(1)
        for count in (1, 2):  # between two replies the agent sends everything else that it has
            node.link.reply(Ready(sent_at=1.0, node="n", group="g"))
            await coordinator.until(NodeTopic.GROUP, lambda seen, count=count: len(seen) == count)
        assert NodeTopic.REPORT not in coordinator.heard
        node.link.announce(INVENTORY)
        await coordinator.until(NodeTopic.REPORT, lambda seen: seen)
        assert [*coordinator.heard][-2:] == [NodeTopic.INVENTORY, NodeTopic.REPORT]


async def test_the_pauses_grow_however_long_an_attempt_takes(mosquitto, tmp_path, monkeypatch):
    """An attempt that took long and failed is no connection: a broker that is too slow is asked less and less often."""
    attempts: list[int] = []

    def pause_s(attempt: int) -> float:
        attempts.append(attempt)
        return 0.01

    monkeypatch.setattr(link_module, "STEADY_S", 0.0)
    monkeypatch.setattr(link_module, "pause_s", pause_s)
    mosquitto.stop()
    async with linked(mosquitto, tmp_path), asyncio.timeout(20):
        while len(attempts) < 3:
            await asyncio.sleep(0.01)
    assert attempts[:3] == [0, 1, 2]


async def test_a_lost_connection_is_told_at_once(mosquitto, tmp_path, monkeypatch):
    """The metric changes at once, even during a long pause before the next attempt."""
    monkeypatch.setattr(link_module, "pause_s", lambda _attempt: 3600.0)
    async with linked(mosquitto, tmp_path) as node:
        await until(lambda: node.link.connected)
        mosquitto.stop()
        await until(lambda: not node.link.connected)
        assert b"muster_agent_broker_connected 0.0" in node.metrics.expose()


async def test_replies_wait_for_the_connection(mosquitto, tmp_path):
    """A short loss of the connection does not end a group."""
    mosquitto.stop()
    async with linked(mosquitto, tmp_path) as node:
        node.link.reply(Ready(sent_at=1.0, node="n", group="g"))
        mosquitto.start()
        async with coordinating(mosquitto) as coordinator:
            await until(lambda: node.link.connected)
            node.link.reply(Ready(sent_at=1.0, node="n", group="h"))
            await coordinator.until(NodeTopic.GROUP, lambda seen: seen and seen[-1].group == "h")


async def test_orders_and_references_come_in(mosquitto, tmp_path):
    """Each message reaches its inbox."""
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        await coordinator.until(NodeTopic.PRESENCE, lambda seen: seen)
        await coordinator.say(TOPICS.node("n", NodeTopic.COMMAND), start_of("g"))
        event = await node.next()
        assert isinstance(event, CommandReceived)
        assert event.command == start_of("g")
        await coordinator.say(TOPICS.references, References(sent_at=1.0))
        assert await node.references.get() == ()


BAD = [
    (b"", "malformed"),
    (b"{", "malformed"),
    (b'{"schema": 2, "id": "x"}', "unknown_version"),
    (b'{"schema": 1, "id": "x", "sent_at": "soon"}', "malformed"),
    (b"x" * (codec.MAX_MESSAGE_BYTES + 1), "oversized"),
]


@pytest.mark.parametrize("topic", ["command", "ack", "coordinator", "references"])
async def test_bad_input_is_counted_and_dropped(mosquitto, tmp_path, topic):
    """Later messages are handled as usual."""
    name = getattr(TOPICS, topic, None) or TOPICS.node("n", NodeTopic(topic))
    async with coordinating(mosquitto) as coordinator, linked(mosquitto, tmp_path) as node:
        await coordinator.until(NodeTopic.PRESENCE, lambda seen: seen)
        for payload, _ in BAD:
            await coordinator.say(name, payload)
        await coordinator.say(TOPICS.node("n", NodeTopic.COMMAND), start_of("g"))
        assert isinstance(await node.next(), CommandReceived)
        text = node.metrics.expose().decode()
        for kind, count in {"malformed": 3.0, "unknown_version": 1.0, "oversized": 1.0}.items():
            assert f'muster_agent_refused_messages_total{{kind="{kind}"}} {count}' in text


def test_a_file_that_tls_needs_and_that_is_not_there_is_refused(tmp_path):
    """At the start, and by the name of its setting."""
    broker = BrokerSettings(url="mqtts://broker.example", ca_file=tmp_path / "ca.pem")
    with (
        contextlib.closing(Outbox(tmp_path / "outbox.db", 10, "boot")) as outbox,
        pytest.raises(SettingsError, match=r"broker\.ca_file"),
    ):
        AgentLink(
            Settings(node="n", broker=broker), outbox, AgentMetrics("n1"), lambda _event: None, lambda _rows: None
        )


def start_of(group: str) -> Start:
    return Start(id="c", sent_at=1.0, epoch=1, expires_at=2.0, group=group)


async def test_credentials_are_read_for_each_connection(mosquitto, tmp_path):
    """A password may change while the agent runs. While its file is missing, the agent retries."""
    secret = tmp_path / "password"
    secret.write_text("first")
    async with linked(mosquitto, tmp_path, password_file=secret) as node:
        await until(lambda: node.link.connected)
        secret.unlink()
        mosquitto.stop()
        mosquitto.start()
        reconnects = node.metrics.reconnects._value
        await until(lambda: reconnects.get() >= 3)
        assert not node.link.connected
        secret.write_text("second")
        await until(lambda: node.link.connected)


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)
