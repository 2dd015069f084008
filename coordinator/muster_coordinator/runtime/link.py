"""The coordinator's end of MQTT: bytes to events, acks and commands to bytes.

The messages of nodes become events in `node_messages`. The link also drops messages beyond a node's allowance. While
the broker is away it drops messages that it cannot send: agents send unacknowledged runs again, and commands expire.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

import aiomqtt
import structlog

from muster.config import Settings
from muster.errors import RemoteError, SettingsError
from muster.mqtt import addresses, connection_options, pause_s, publish, why_not_connected
from muster.wire import codec
from muster.wire.codec import encode, encode_short
from muster.wire.messages import DEFLATE, REPEATS, REPORTS_AS_HEARTBEATS, CoordinatorPresence, short_id
from muster.wire.report_head import ReportHead
from muster.wire.topics import NodeTopic, Topics
from muster_coordinator.model.events import (
    FleetEvent,
    LinkCaughtUp,
    LinkLost,
    LinkRestored,
    PublishReferences,
    ReportSeen,
    SendAck,
    SendCommand,
)
from muster_coordinator.model.load import LoadSeen, ReportInvited
from muster_coordinator.runtime.compression import Compression
from muster_coordinator.runtime.inbox import Inbox, ReceivedMessage
from muster_coordinator.runtime.kept_messages import KeptMessages
from muster_coordinator.runtime.load_meter import LoadMeter
from muster_coordinator.runtime.muting import MuteList, subscriptions
from muster_coordinator.runtime.node_messages import NodeMessages
from muster_coordinator.runtime.outgoing import ANSWERED_WITHIN_S, OutgoingMessage, RetainedMessage, transmit
from muster_coordinator.runtime.rate_limits import Allowances
from muster_coordinator.runtime.subscribing import subscribe, switch

HEARTBEAT_S = 10.0

ANNOUNCED_EVERY_S = 300.0
"""How often a heartbeat goes to the agents: 240 bytes for each. They hear of a new leader or connection at once, and of
another slowdown with the next heartbeat.
"""

KEEPALIVE_S = 15
GOODBYE_S = 1.0

LOOK_S = 0.5
"""How often the link checks whether a node has begun or stopped to flood."""

INVITE_S = 0.1
"""How often the link looks whether there is time for a deferred report."""

SUPERSEDED = (
    "another coordinator leads this fleet: stop this one; if there is no other, clear the retained message on the "
    "coordinator's topic at the broker and restart this one"
)

ACCEPTS = (DEFLATE, REPEATS, REPORTS_AS_HEARTBEATS)

log = structlog.get_logger()


class _Superseded(Exception):
    """A coordinator with a newer epoch leads the fleet."""


class CoordinatorLink:
    """The connection to the broker, kept up until a coordinator with a newer epoch leads the fleet.

    `deliver` gets the events of a batch of messages and may wait; the link decodes nothing meanwhile. `known` returns
    the names of the nodes; `is_known` and `has_inventory` are for the messages `of_nodes`, which it counts. `meter`
    measures the load. `connected` says whether the link receives the messages of all nodes that are not `muted`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        broker_url: str,
        api_url: str,
        epoch: int,
        deliver: Callable[[Sequence[FleetEvent]], Awaitable[None]],
        known: Callable[[], Iterable[str]],
        is_known: Callable[[str, ReportHead], bool],
        has_inventory: Callable[[str, str], bool],
        clock: Callable[[], float],
    ) -> None:
        self.connected = False
        self._was_connected = False
        self.muted: frozenset[str] = frozenset()
        self.meter = LoadMeter()
        self._brokers = addresses(broker_url)
        self._broker_url = next(self._brokers)
        connection_options(settings.broker, self._broker_url)  # raises SettingsError at the start, not in `run`
        self._settings = settings.broker
        self._topics = Topics(settings.fleet)
        self._api_url = api_url
        self._epoch = epoch
        self._newer_epoch: int | None = None
        self._connection = ""
        self._announce_at = 0.0
        self._deliver = deliver
        self._known = known
        self._clock = clock
        self._allowances = Allowances()
        self._compression = Compression(self._allowances)
        self.of_nodes = NodeMessages(
            self._topics, self._compression.read, is_known=is_known, has_inventory=has_inventory
        )
        self._kept = KeptMessages()
        self._mutes = MuteList()
        self._outbox: asyncio.Queue[OutgoingMessage] | None = None
        self._references = RetainedMessage(self._topics.references)

    def send(self, command: SendAck | SendCommand | PublishReferences) -> None:
        """Queues a message. Without a connection, messages to nodes are dropped; references wait for the next one."""
        match command:
            case SendAck(node, ack):
                self._send(self._topics.node(node, NodeTopic.ACK), self._compression.write(node, ack))
            case SendCommand(node, order):
                self._send(self._topics.node(node, NodeTopic.COMMAND), encode(order))
            case PublishReferences(message):
                self._references.replace(encode(message))

    def _send(self, topic: str, payload: bytes) -> None:
        if self._outbox is not None:
            self._outbox.put_nowait(OutgoingMessage(topic, payload))

    async def run(self) -> None:
        """Connects, and reconnects whenever the connection is lost. Returns if a newer coordinator leads the fleet.

        It must return, because two coordinators with one broker account would disconnect each other forever.
        """
        attempt = 0
        while True:
            try:
                client = self._client()
                inbox = Inbox(client, self._allowances, self._mutes, self.meter)
                async with client:
                    attempt = 0
                    await self._serve(client, inbox)
            except* (aiomqtt.MqttError, SettingsError) as group:
                why = await why_not_connected(group.exceptions[0], self._settings, self._broker_url)
                log.warning("broker_away", broker=self._broker_url, error=why)
            except* _Superseded:
                log.error("coordinator_superseded", epoch=self._epoch, newer_epoch=self._newer_epoch, note=SUPERSEDED)
            if attempt == 0:
                await self._deliver([LinkLost()])
            if self._newer_epoch is not None:
                return
            self._broker_url = next(self._brokers)
            await asyncio.sleep(pause_s(attempt))
            attempt += 1

    def _client(self) -> aiomqtt.Client:
        self._connection = short_id()
        will = aiomqtt.Will(self._topics.coordinator, encode(self._presence(online=False)), qos=1, retain=True)
        return aiomqtt.Client(
            **connection_options(self._settings, self._broker_url),
            identifier=f"muster-coordinator-{self._connection}",
            keepalive=KEEPALIVE_S,
            will=will,
        )

    async def _serve(self, client: aiomqtt.Client, inbox: Inbox) -> None:
        self.meter.note_connected()
        self._kept.connected(time.monotonic())
        self._outbox = asyncio.Queue()
        if self._was_connected:
            await self._deliver([LinkRestored()])
        self._was_connected = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(client), name="link-receive")
                tasks.create_task(transmit(client, self._outbox), name="link-transmit")
                tasks.create_task(self._references.keep(client), name="link-references")
                tasks.create_task(self._listen(client, inbox), name="link-listen")
                tasks.create_task(self._watch(inbox), name="link-watch")
                tasks.create_task(self._invite(inbox), name="link-invite")
        finally:
            self.connected, self._outbox = False, None
            if self._newer_epoch is None:
                with suppress(aiomqtt.MqttError):
                    offline = encode(self._presence(online=False))
                    await client.publish(self._topics.coordinator, offline, qos=1, retain=True, timeout=GOODBYE_S)

    async def _listen(self, client: aiomqtt.Client, inbox: Inbox) -> None:
        """Keeps the subscriptions to all nodes that do not flood, and publishes our heartbeat every HEARTBEAT_S.

        The agents get one each ANNOUNCED_EVERY_S, or all if the broker does not keep one for agents that connect. The
        others measure how long messages take, and show us other leaders.
        """
        subscribed: frozenset[str] = frozenset()
        beat_at = self._announce_at = 0.0
        announced = self.meter.slowdown
        while True:
            floods = self._mutes.muted(time.monotonic())
            wanted = subscriptions(self._topics, floods, self._known() if floods else ())
            if not subscribed:
                own = (self._topics.coordinator, self._topics.coordinator_echo)
                self.connected = await subscribe(client, wanted.union(own))
                log.info("broker_connected", broker=self._broker_url)
            elif wanted != subscribed:
                self.connected &= await switch(client, wanted - subscribed, subscribed - wanted)
            subscribed, self.muted = wanted, frozenset(node for node, _ in floods)
            if not floods and self._kept.is_to_be_tried(time.monotonic()):
                await subscribe(client, (self._topics.every_node(NodeTopic.PRESENCE),))
            if self._kept.is_found_missing(time.monotonic()) or self.meter.slowdown != announced:
                self._announce_at = 0.0
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + HEARTBEAT_S
                presence = self._presence(online=True)
                self.meter.note_heartbeat(presence.id, time.monotonic())
                is_for_agents = time.monotonic() >= self._announce_at
                if is_for_agents:
                    announced = presence.slowdown
                    self._announce_at = time.monotonic() + (HEARTBEAT_S if self._kept.asks else ANNOUNCED_EVERY_S)
                topic = self._topics.coordinator if is_for_agents else self._topics.coordinator_echo
                payload = encode_short(presence)
                await publish(client, topic, payload, retain=is_for_agents, within_s=ANSWERED_WITHIN_S)
            inbox.flooded.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await inbox.flooded.wait()

    async def _watch(self, inbox: Inbox) -> None:
        """Delivers the load and the misconduct of nodes, one event per node and kind, and once that it has caught up.

        `_listen` must not wait for the receiver: agents wait for our heartbeat.
        """
        has_caught_up = False
        while True:
            await asyncio.sleep(LOOK_S)
            if self.connected and not has_caught_up:
                await self._deliver([LinkCaughtUp()])
                has_caught_up = True
            self.of_nodes.note_dropped(inbox.dropped)
            inbox.dropped.clear()
            load = LoadSeen(self.meter.measure(time.monotonic(), self._clock()), frozenset(inbox.deferred))
            inbox.deferred.clear()
            await self._deliver([load, *self.of_nodes.take_misconduct()])

    async def _invite(self, inbox: Inbox) -> None:
        """Asks for reports that were deferred as soon as there is time."""
        while True:
            await asyncio.sleep(INVITE_S)
            if invited := inbox.invite(time.monotonic()):
                await self._deliver([ReportInvited(node, stream) for node, stream in invited])

    async def _receive(self, client: aiomqtt.Client) -> None:
        batch: list[ReceivedMessage]
        async for batch in client.messages:  # type: ignore[assignment]  # an Inbox gives lists
            if events := [event for event in map(self._event, batch) if event is not None]:
                self.meter.note_taken(sum(isinstance(event, ReportSeen) for event in events))
                await self._deliver(events)
            await asyncio.sleep(0)

    def _event(self, received: ReceivedMessage) -> FleetEvent | None:
        message = received.message
        if message.topic not in (self._topics.coordinator, self._topics.coordinator_echo):
            self._kept.heard(kept=message.retain)
            return self.of_nodes.event(message, received.head)
        try:
            self._note_coordinator(message.payload, kept=message.retain)
        except RemoteError as error:
            self.of_nodes.refuse(error, message.topic)
        return None

    def _note_coordinator(self, payload: bytes, *, kept: bool) -> None:
        """Reads the presence of a coordinator, perhaps our own. Raises _Superseded if it is newer than ours.

        The URL decides between two coordinators that started in the same second, so that only one of them goes on.
        """
        if not payload:
            self._announce_at = 0.0  # somebody has cleared the retained message
            return
        presence = codec.decode(payload, codec.COORDINATOR)
        if not presence.online or presence.epoch != self._epoch:
            self._announce_at = 0.0  # the broker keeps the last will of a predecessor, or its last heartbeat
        if (presence.epoch, presence.url) > (self._epoch, self._api_url):
            self._newer_epoch = presence.epoch
            raise _Superseded
        if not kept:
            self.meter.note_echo(presence.id, time.monotonic())

    def _presence(self, *, online: bool) -> CoordinatorPresence:
        return CoordinatorPresence(
            id=short_id(),
            sent_at=self._clock(),
            online=online,
            epoch=self._epoch,
            url=self._api_url,
            connection=self._connection,
            accepts=(*ACCEPTS, *self._kept.asks) if online else (),
            slowdown=self.meter.slowdown if online else 1,
        )
