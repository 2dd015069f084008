"""The agent's connection to the broker.

One task receives, another sends. Replies, the inventory and the outbox are kept outside the connection, so a lost
connection loses none of them. The agent trusts nothing that comes from the broker: it counts and drops a message that
does not parse, and also a message that makes it raise an unexpected error.

If the broker is away, the agent connects again after a random pause between 0 and 0.5 s, then 1 s, 2 s and so on
(`pause_s`). A fleet that has lost its broker therefore does not come back all at once.

The last will says only that the broker has lost the connection. `close` says goodbye, so the coordinator does not wait
for the agent to come back.
"""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import aiomqtt
import structlog

import muster
from muster.config import Settings
from muster.errors import RemoteError, SettingsError
from muster.model import Run
from muster.mqtt import addresses, connection_options, pause_s, publish
from muster.references import Reference
from muster.wire import codec
from muster.wire.deflate import deflated
from muster.wire.messages import (
    DEFLATE,
    REPORTS_AS_HEARTBEATS,
    AnyGroupReply,
    CoordinatorPresence,
    InventoryReport,
    NodeMessage,
    Presence,
    short_id,
)
from muster.wire.topics import NodeTopic, Topics, client_id
from muster_agent.decide.events import CommandReceived, CoordinatorSeen
from muster_agent.decide.heartbeat_timing import HeartbeatTiming
from muster_agent.decide.inventory_timing import InventoryTiming
from muster_agent.decide.last_reply import LastReply
from muster_agent.wire.loss_log import LossLog
from muster_agent.wire.machine import machine_of
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox
from muster_agent.wire.reply_size import shorten_to_fit
from muster_agent.wire.reports import Reports

SUBSCRIBED_QOS = 0
"""QoS 1 would save nothing: the broker forgets an agent that is away at either. For QoS 1, RabbitMQ keeps a queue on
one node of a cluster, and refuses its client while that node is down.
"""

STEADY_S = 10.0
"""After a connection that lasted this long, the pauses start from the shortest again."""

MAX_REPLIES = 1000
MAX_QUEUED_MESSAGES = 1000

log = structlog.get_logger()

CommandInbox = Callable[[CommandReceived | CoordinatorSeen], None]
ReferencesInbox = Callable[[tuple[Reference, ...]], None]


class AgentLink:
    """The connection of one node. It calls `inbox` and `references_inbox` in the event loop."""

    def __init__(
        self,
        settings: Settings,
        outbox: Outbox,
        metrics: AgentMetrics,
        inbox: CommandInbox,
        references_inbox: ReferencesInbox,
    ) -> None:
        self._settings = settings
        self._node = settings.node
        self._process, self._machine = short_id(), machine_of(settings.agent.machine_id_file)
        self._topics = Topics(settings.fleet)
        self._outbox = outbox
        self._metrics = metrics
        self._inbox = inbox
        self._references_inbox = references_inbox
        self._reports = Reports(settings.node, outbox)
        self._accepted: frozenset[str] = frozenset()
        self._replies: deque[AnyGroupReply] = deque(maxlen=MAX_REPLIES)
        self._last_reply = LastReply()
        self._inventory: InventoryReport | None = None
        self._inventory_timing = InventoryTiming()
        self._connected_at = math.inf
        self._leader: tuple[int, bool] | None = None
        self._refused_kinds: set[str] = set()
        self._failed_kinds: set[str] = set()
        self._heartbeat = HeartbeatTiming(settings.agent.heartbeat_s)
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._brokers = addresses(settings.broker.agent_url)
        self._broker = next(self._brokers)
        self._losses = LossLog(settings.broker)
        connection_options(settings.broker, self._broker)  # raises for wrong settings at the start
        self.connected = False

    # Called by the daemon to send

    def reply(self, message: AnyGroupReply) -> None:
        """Sends a reply about a group as soon as there is a connection. If very many wait, the oldest are dropped.

        A reply that is too large for a message is shortened.
        """
        reply = shorten_to_fit(message)
        self._last_reply.sent(reply)
        self._replies.append(reply)
        self._wake.set()

    def announce(self, inventory: InventoryReport) -> None:
        """Sends the inventory now and after every reconnect."""
        self._inventory = inventory.model_copy(update={"machine": self._machine})
        self._inventory_timing.changed()
        self._wake.set()

    def appended(self, run: Run) -> None:
        """Notes that the outbox has a new run, which has its number."""
        self._reports.appended(run)
        self._wake.set()

    def close(self) -> None:
        """Sends the remaining messages and a goodbye, then ends `run`."""
        self._closing.set()
        self._wake.set()

    # The connection

    async def run(self) -> None:
        """Connects, and reconnects after each loss, until `close`."""
        attempt = 0
        while not self._closing.is_set():
            self._connected_at = math.inf
            try:
                await self._serve_connection()
            except* (aiomqtt.MqttError, SettingsError) as errors:
                attempt = 0 if time.monotonic() - self._connected_at > STEADY_S else attempt
                self._metrics.reconnects.inc()
                await self._losses.lost(errors.exceptions[0], self._broker, attempt)
                self._broker = next(self._brokers)
                await self._pause(attempt)
                attempt += 1

    async def _serve_connection(self) -> None:
        """Serves one connection until it is lost or `close` is called."""
        task = asyncio.current_task()
        assert task is not None
        cancelled_before = task.cancelling()
        try:
            async with self._client() as client, asyncio.TaskGroup() as tasks:
                await self._greet(client)
                if task.cancelling() > cancelled_before:
                    # Before Python 3.12 the waits inside can forget a cancellation that comes with their answer.
                    raise asyncio.CancelledError
                listening = tasks.create_task(self._receive_until_lost(client), name="link-listen")
                await tasks.create_task(self._send_until_lost(client), name="link-speak")
                listening.cancel()
        finally:
            self.connected = False
            self._metrics.connected.set(0)

    def _client(self) -> aiomqtt.Client:
        will = Presence(
            sent_at=time.time(), node=self._node, online=False, version=muster.__version__, machine=self._machine
        )
        presence = self._topics.node(self._node, NodeTopic.PRESENCE)
        return aiomqtt.Client(
            **connection_options(self._settings.broker, self._broker),  # a certificate may have been renewed
            identifier=client_id(self._settings.fleet, self._node),
            keepalive=max(5, round(1.5 * self._settings.agent.heartbeat_s)),
            will=aiomqtt.Will(presence, codec.encode(will), qos=1, retain=True),
            max_queued_incoming_messages=MAX_QUEUED_MESSAGES,
        )

    async def _greet(self, client: aiomqtt.Client) -> None:
        self._accepted = frozenset()  # the coordinator may be another one; its retained presence comes first
        own = [self._topics.node(self._node, NodeTopic.ACK), self._topics.node(self._node, NodeTopic.COMMAND)]
        heard = (*own, self._topics.coordinator, self._topics.references)
        await client.subscribe([(topic, SUBSCRIBED_QOS) for topic in heard])
        self.connected = True
        self._connected_at = time.monotonic()
        self._metrics.connected.set(1)
        self._last_reply.connected()
        self._heartbeat.connected()
        self._inventory_timing.connected(self._connected_at)
        self._reports.connected()
        log.info("broker_connected", broker=self._broker)

    async def _pause(self, attempt: int) -> None:
        """Waits before the next attempt, or until `close`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s(attempt)):
                await self._closing.wait()

    # Sending

    async def _send_until_lost(self, client: aiomqtt.Client) -> None:
        while True:
            closing = self._closing.is_set()
            self._wake.clear()
            await self._send_all(client)
            if closing:
                return await self._send(client, NodeTopic.PRESENCE, self._presence(online=False), retain=True)
            await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._next_due() - time.monotonic())):
                await self._wake.wait()

    def _next_due(self) -> float:
        """When there is something to send that nothing else announces."""
        inventory_due = self._inventory_timing.due() if self._inventory else math.inf
        return min(self._heartbeat_due(), self._reports.next_due(), inventory_due)

    async def _send_all(self, client: aiomqtt.Client) -> None:
        while self._replies:
            await self._send_reply(client, self._replies.popleft())
        if self._heartbeat_due() <= time.monotonic():
            await self._send_heartbeat(client)
        if self._inventory and self._inventory_timing.due() <= time.monotonic():
            await self._send_inventory(client, self._inventory)
        self._reports.tick(coordinator_heard=self._leader is not None and self._leader[1])
        # The coordinator accepts a run as evidence only after the node has announced its check.
        while self._inventory_timing.is_sent and (report := self._reports.take_next(self._accepted)) is not None:
            await publish(client, self._topics.node(self._node, NodeTopic.REPORT), report)
            if REPORTS_AS_HEARTBEATS in self._accepted:
                self._heartbeat.reported(time.monotonic())
            if self._replies:  # replies go first: ranks of other nodes wait for them
                self._wake.set()
                return

    def _heartbeat_due(self) -> float:
        report_due = self._reports.next_due() if REPORTS_AS_HEARTBEATS in self._accepted else math.inf
        return self._heartbeat.due_beside(report_due, self._outbox.drops)

    async def _send_heartbeat(self, client: aiomqtt.Client) -> None:
        presence, now = self._presence(online=True), time.monotonic()
        kept = DEFLATE not in self._accepted or self._heartbeat.is_to_be_kept(now)
        self._heartbeat.sent(presence.outbox, self._outbox.drops, now, kept=kept)
        payload = codec.encode_short(presence)
        topic = self._topics.node(self._node, NodeTopic.PRESENCE)
        await publish(client, topic, payload if kept else deflated(payload), retain=kept)

    async def _send_inventory(self, client: aiomqtt.Client, inventory: InventoryReport) -> None:
        is_deflated = DEFLATE in self._accepted
        self._inventory_timing.sent(deflated=is_deflated)
        payload = codec.encode(inventory)
        topic = self._topics.node(self._node, NodeTopic.INVENTORY)
        await publish(client, topic, deflated(payload) if is_deflated else payload, retain=True)

    async def _send_reply(self, client: aiomqtt.Client, reply: AnyGroupReply) -> None:
        try:
            await self._send(client, NodeTopic.GROUP, reply)
        except aiomqtt.MqttError:
            self._replies.appendleft(reply)
            raise

    def _presence(self, *, online: bool) -> Presence:
        return Presence(
            id=short_id(),
            sent_at=time.time(),
            node=self._node,
            online=online,
            goodbye=not online,
            process=self._process,
            machine=self._machine,
            version=muster.__version__,
            outbox=self._reports.waiting,
            dropped=self._outbox.dropped(),
        )

    async def _send(
        self, client: aiomqtt.Client, topic: NodeTopic, message: NodeMessage, *, retain: bool = False
    ) -> None:
        await publish(client, self._topics.node(self._node, topic), codec.encode(message), retain=retain)

    # Receiving

    async def _receive_until_lost(self, client: aiomqtt.Client) -> None:
        async for message in client.messages:
            self.hear(message.topic.value, message.payload)

    def hear(self, topic: str, payload: object) -> None:
        """Handles one message from the broker. A bad message is counted and dropped; it never ends the agent."""
        try:
            self._handle(topic, payload)
        except RemoteError as error:
            self._refuse(error)
        except Exception as error:
            self._fail(topic, error)

    def _handle(self, topic: str, payload: object) -> None:
        assert isinstance(payload, bytes)
        if topic == self._topics.coordinator:
            self._handle_coordinator(codec.decode(payload, codec.COORDINATOR))
        elif topic == self._topics.references:
            self._references_inbox(codec.decode(payload, codec.REFERENCES).rows)
        elif topic == self._topics.node(self._node, NodeTopic.COMMAND):
            self._inbox(CommandReceived(codec.decode(payload, codec.COMMAND)))
        elif topic == self._topics.node(self._node, NodeTopic.ACK):
            self._reports.acknowledge(codec.decode(payload, codec.ACK))
            self._wake.set()
        else:
            raise RemoteError("unknown_topic", topic)

    def _handle_coordinator(self, presence: CoordinatorPresence) -> None:
        leader = (presence.epoch, presence.online)
        if self._leader not in (None, leader) and presence.online:
            self._reports.start_over()
            self._wake.set()
        self._leader = leader
        self._accepted = frozenset(presence.accepts) if presence.online else frozenset()
        self._inventory_timing.heard(presence)
        if not self._inventory_timing.is_sent:
            self._wake.set()
        if (again := self._last_reply.heard(presence, time.time())) is not None:
            self.reply(again)
        self._inbox(CoordinatorSeen(presence))

    def _refuse(self, error: RemoteError) -> None:
        self._metrics.refused(error.kind)
        if error.kind not in self._refused_kinds:
            self._refused_kinds.add(error.kind)
            log.warning("message_refused", kind=error.kind, detail=error.detail, note="logged once for each kind")

    def _fail(self, topic: str, error: Exception) -> None:
        """Drops and counts a message that a bug in muster could not handle; the log has the traceback."""
        self._metrics.refused("failed")
        kind = type(error).__name__
        if kind not in self._failed_kinds:
            self._failed_kinds.add(kind)
            log.error("message_failed", topic=topic, exc_info=error, note="logged once for each kind of error")
