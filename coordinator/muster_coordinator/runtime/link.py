"""The coordinator's end of MQTT: bytes to events, acks and commands to bytes.

Every message of a peer either becomes an event, or the link drops it, counts it by kind, logs it once a minute for each
kind and holds it against its node. The link also drops messages beyond a node's allowance. While the broker is away the
link drops messages that it cannot send: agents send unacknowledged runs again, and commands expire.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain

import aiomqtt
import structlog
from paho.mqtt.reasoncodes import ReasonCode

from muster.config import Settings
from muster.errors import RemoteError, SettingsError
from muster.log_limit import LogLimit
from muster.mqtt import connection_options, pause_s
from muster.wire import codec
from muster.wire.codec import encode
from muster.wire.messages import CoordinatorPresence, new_id
from muster.wire.report_head import ReportHead, report_head
from muster.wire.topics import NodeTopic, Topics
from muster_coordinator.evidence.node_events import event_of
from muster_coordinator.model.events import (
    AgentMisbehaved,
    FleetEvent,
    LinkCaughtUp,
    LinkLost,
    LinkRestored,
    PublishReferences,
    ReportRepeated,
    ReportSeen,
    SendAck,
    SendCommand,
)
from muster_coordinator.model.load import LoadSeen
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.runtime.inbox import Inbox
from muster_coordinator.runtime.load_meter import LoadMeter
from muster_coordinator.runtime.muting import MuteList, subscriptions
from muster_coordinator.runtime.outgoing import (
    ANSWERED_WITHIN_S,
    SENDS_AT_ONCE,
    OutgoingMessage,
    publish_message,
    transmit,
)
from muster_coordinator.runtime.rate_limits import Allowances

HEARTBEAT_S = 10.0
KEEPALIVE_S = 15
GOODBYE_S = 1.0

LOOK_S = 0.5
"""How often the link checks whether a node has begun or stopped to flood."""

SWITCHED_WITHIN_S = 3.0
"""Timeout of new subscriptions. 10,000 messages that came before the flood was noticed are less than 1 s of work."""

SUBSCRIBED_AT_ONCE = 500
"""Maximum number of topics in one packet; with names of usual length about 20 KiB."""

SUBSCRIBED_QOS = 0
"""The QoS at which the broker delivers messages of nodes. With QoS 1 the broker waits for confirmations after a few
messages (20 in Mosquitto), and a busy event loop would receive only these in each turn. QoS 0 is as safe: without a
connection the broker forgets undelivered messages at either QoS, and agents send unacknowledged runs again.
"""

WRONG = frozenset({"malformed", "oversized", "wrong_node"})
"""The kinds of refused messages that no version of the agent sends."""

SUPERSEDED = (
    "another coordinator leads this fleet: stop this one; if there is no other, clear the retained message on the "
    "coordinator's topic at the broker and restart this one"
)

RETAINED = (NodeTopic.PRESENCE, NodeTopic.INVENTORY)

log = structlog.get_logger()


class _Superseded(Exception):
    """A coordinator with a newer epoch leads the fleet."""


class CoordinatorLink:
    """The connection to the broker, kept up until a coordinator with a newer epoch leads the fleet.

    `deliver` gets the events of a batch of messages and may wait; the link decodes nothing meanwhile. `known` returns
    the names of the nodes, `is_known` whether all runs of a node's report were taken already. `received` counts
    messages, `refused` counts dropped ones by kind, `meter` measures the load. `connected` says whether the link
    receives the messages of all nodes that are not `muted`.
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
    ) -> None:
        self.connected = False
        self._was_connected = False
        self.muted: frozenset[str] = frozenset()
        self.received = 0
        self.refused: Counter[str] = Counter()
        self.meter = LoadMeter()
        connection_options(settings.broker, broker_url)  # raises SettingsError at the start rather than in `run`
        self._settings = settings.broker
        self._topics = Topics(settings.fleet)
        self._broker_url = broker_url
        self._api_url = api_url
        self._epoch = epoch
        self._newer_epoch: int | None = None
        self._deliver = deliver
        self._known = known
        self._is_known = is_known
        self._allowances = Allowances()
        self._mutes = MuteList()
        self._log_limit = LogLimit()
        self._misconduct: dict[tuple[str, Misconduct], str] = {}
        self._outbox: asyncio.Queue[OutgoingMessage] | None = None
        self._references: OutgoingMessage | None = None

    def send(self, command: SendAck | SendCommand | PublishReferences) -> None:
        """Queues a message. Without a connection, messages to nodes are dropped; references wait for the next one."""
        match command:
            case SendAck(node, ack):
                outgoing = OutgoingMessage(self._topics.node(node, NodeTopic.ACK), encode(ack))
            case SendCommand(node, order):
                outgoing = OutgoingMessage(self._topics.node(node, NodeTopic.COMMAND), encode(order))
            case PublishReferences(message):
                outgoing = self._references = OutgoingMessage(self._topics.references, encode(message), retain=True)
        if self._outbox is not None:
            self._outbox.put_nowait(outgoing)

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
                log.warning("broker_away", broker=self._broker_url, error=str(group.exceptions[0]))
            except* _Superseded:
                log.error("coordinator_superseded", epoch=self._epoch, newer_epoch=self._newer_epoch, note=SUPERSEDED)
            if attempt == 0:
                await self._deliver([LinkLost()])
            if self._newer_epoch is not None:
                return
            await asyncio.sleep(pause_s(attempt))
            attempt += 1

    def _client(self) -> aiomqtt.Client:
        will = aiomqtt.Will(self._topics.coordinator, encode(self._presence(online=False)), qos=1, retain=True)
        return aiomqtt.Client(
            **connection_options(self._settings, self._broker_url),
            identifier=f"muster-coordinator-{new_id()[:8]}",
            keepalive=KEEPALIVE_S,
            will=will,
        )

    async def _serve(self, client: aiomqtt.Client, inbox: Inbox) -> None:
        client.pending_calls_threshold = SENDS_AT_ONCE  # aiomqtt warns above this number
        self.meter.note_connected()
        self._outbox = asyncio.Queue()
        if self._references is not None:
            self._outbox.put_nowait(self._references)
        if self._was_connected:
            await self._deliver([LinkRestored()])
        self._was_connected = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(client), name="link-receive")
                tasks.create_task(transmit(client, self._outbox), name="link-transmit")
                tasks.create_task(self._listen(client, inbox), name="link-listen")
                tasks.create_task(self._watch(inbox), name="link-watch")
        finally:
            self.connected, self._outbox = False, None
            if self._newer_epoch is None:
                with suppress(aiomqtt.MqttError):
                    offline = encode(self._presence(online=False))
                    await client.publish(self._topics.coordinator, offline, qos=1, retain=True, timeout=GOODBYE_S)

    async def _listen(self, client: aiomqtt.Client, inbox: Inbox) -> None:
        """Keeps the subscriptions to all nodes that do not flood, and publishes our heartbeat every HEARTBEAT_S."""
        subscribed: frozenset[str] = frozenset()
        beat_at = 0.0
        while True:
            floods = self._mutes.muted(time.monotonic())
            wanted = subscriptions(self._topics, floods, self._known() if floods else ())
            if not subscribed:
                await client.subscribe(self._topics.coordinator, SUBSCRIBED_QOS, timeout=ANSWERED_WITHIN_S)
                self.connected = await self._subscribe(client, wanted)
                log.info("broker_connected", broker=self._broker_url)
            elif wanted != subscribed:
                await self._switch(client, wanted - subscribed, subscribed - wanted)
            subscribed, self.muted = wanted, frozenset(node for node, _ in floods)
            if time.monotonic() >= beat_at:
                beat_at = time.monotonic() + HEARTBEAT_S
                presence = self._presence(online=True)
                self.meter.note_heartbeat(presence.id, time.monotonic())
                beat = OutgoingMessage(self._topics.coordinator, encode(presence), retain=True)
                await publish_message(client, beat)
            inbox.flooded.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await inbox.flooded.wait()

    async def _switch(self, client: aiomqtt.Client, more: frozenset[str], less: frozenset[str]) -> None:
        """Subscribes to `more` and unsubscribes from `less` at the same time. Raises MqttError if that takes too long.

        The broker's answers come after the part of the flood that it has queued already. A new connection is quicker:
        the broker forgets that queue, and agents send the lost messages again.
        """
        try:
            async with asyncio.timeout(SWITCHED_WITHIN_S):
                subscribed, _ = await asyncio.gather(self._subscribe(client, more), self._unsubscribe(client, less))
        except TimeoutError:
            raise aiomqtt.MqttError(
                "too many messages of a flood wait at the broker; reconnecting without them"
            ) from None
        self.connected = self.connected and subscribed

    async def _subscribe(self, client: aiomqtt.Client, patterns: Iterable[str]) -> bool:
        """Subscribes to the patterns. Returns False, with an error in the log, if the broker refuses any."""
        packets = _in_chunks(sorted(patterns))
        wanted = ([(pattern, SUBSCRIBED_QOS) for pattern in packet] for packet in packets)
        answers = await asyncio.gather(*(client.subscribe(topics, timeout=ANSWERED_WITHIN_S) for topics in wanted))
        codes = [code for answer in answers for code in answer]
        refused = [
            pattern
            for pattern, code in zip(chain(*packets), codes, strict=True)
            if isinstance(code, ReasonCode) and code.is_failure
        ]
        for pattern in refused:
            log.error("subscription_refused", topic=pattern, broker=self._broker_url)
        return not refused

    async def _unsubscribe(self, client: aiomqtt.Client, patterns: Iterable[str]) -> None:
        packets = _in_chunks(sorted(patterns))
        await asyncio.gather(*(client.unsubscribe(packet, timeout=ANSWERED_WITHIN_S) for packet in packets))

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
            for (node, topic), count in inbox.dropped.items():
                self.refused["beyond_allowance"] += count
                self._note_misconduct(node, Misconduct.FLOODING, topic)
            inbox.dropped.clear()
            wrongs, self._misconduct = self._misconduct, {}
            load = LoadSeen(self.meter.measure(time.monotonic(), time.time()))
            misconduct = [AgentMisbehaved(node, kind, detail) for (node, kind), detail in wrongs.items()]
            await self._deliver([load, *misconduct])

    async def _receive(self, client: aiomqtt.Client) -> None:
        batch: list[aiomqtt.Message]
        async for batch in client.messages:  # type: ignore[assignment]  # an Inbox gives lists
            if events := [event for event in map(self._event, batch) if event is not None]:
                self.meter.note_taken(sum(isinstance(event, ReportSeen) for event in events))
                await self._deliver(events)
            await asyncio.sleep(0)

    def _event(self, message: aiomqtt.Message) -> FleetEvent | None:
        try:
            if message.topic.value == self._topics.coordinator:
                self._note_coordinator(message.payload, kept=message.retain)
                return None
            return self._from_node(message)
        except RemoteError as error:
            self._refuse(error, message.topic.value)
            return None

    def _from_node(self, message: aiomqtt.Message) -> FleetEvent | None:
        self.received += 1
        node, topic = self._topics.parse_node(message.topic.value)
        if not message.payload and topic in RETAINED:
            return None  # somebody has cleared the retained message
        try:
            if topic is NodeTopic.REPORT and (head := report_head(message.payload)) and self._is_known(node, head):
                return ReportRepeated(node, head.stream)
            return event_of(topic, node, message.payload, kept=message.retain)
        except RemoteError:
            raise
        except Exception as error:  # a bug in muster; no node may end the coordinator with it
            self.refused["failed"] += 1
            self._note_misconduct(node, Misconduct.FAILED, type(error).__name__)
            if (left_out := self._log_limit.admit("failed", time.monotonic())) is not None:
                log.exception("message_failed", topic=topic, node=node, left_out=left_out)
            return None

    def _note_coordinator(self, payload: bytes, *, kept: bool) -> None:
        """Reads the presence of a coordinator, perhaps our own. Raises _Superseded if it is newer than ours.

        The URL decides between two coordinators that started in the same second, so that only one of them goes on.
        """
        if not payload:
            return
        presence = codec.decode(payload, codec.COORDINATOR)
        if (presence.epoch, presence.url) > (self._epoch, self._api_url):
            self._newer_epoch = presence.epoch
            raise _Superseded
        if not kept:
            self.meter.note_echo(presence.id, time.monotonic())

    def _refuse(self, error: RemoteError, topic: str) -> None:
        self.refused[error.kind] += 1
        if (left_out := self._log_limit.admit(error.kind, time.monotonic())) is not None:
            detail = error.detail[:500]
            log.warning("message_refused", kind=error.kind, detail=detail, topic=topic[:500], left_out=left_out)
        if error.kind in WRONG:
            with suppress(RemoteError):
                self._note_misconduct(self._topics.parse_node(topic)[0], Misconduct.REFUSED, error.kind)

    def _note_misconduct(self, node: str, kind: Misconduct, detail: str) -> None:
        self._misconduct.setdefault((node, kind), detail)

    def _presence(self, *, online: bool) -> CoordinatorPresence:
        return CoordinatorPresence(sent_at=time.time(), online=online, epoch=self._epoch, url=self._api_url)


def _in_chunks(patterns: list[str]) -> list[list[str]]:
    """The patterns in lists of SUBSCRIBED_AT_ONCE."""
    return [patterns[start : start + SUBSCRIBED_AT_ONCE] for start in range(0, len(patterns), SUBSCRIBED_AT_ONCE)]
