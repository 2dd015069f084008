"""The coordinator's end of MQTT: bytes to events, acks and commands to bytes.

Whatever a peer sends either becomes an event or is counted by kind, logged once per kind, and dropped. What cannot be
sent while the broker is away is dropped too: agents send again what was not acknowledged, and commands expire.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import aiomqtt
import structlog
from paho.mqtt.reasoncodes import ReasonCode

from muster.config import Settings
from muster.errors import RemoteError, SettingsError
from muster.mqtt import connection_options, pause_s, publish
from muster.wire import codec
from muster.wire.codec import decode_from_node, encode
from muster.wire.messages import CoordinatorPresence, InventoryReport, NodeMessage, Presence, Report, new_id
from muster.wire.topics import FROM_NODE, NodeTopic, Topics
from muster_coordinator.bursts import read_in_bursts
from muster_coordinator.events import (
    Event,
    GroupReplySeen,
    InventorySeen,
    PresenceSeen,
    PublishReferences,
    ReportSeen,
    SendAck,
    SendCommand,
)

HEARTBEAT_S = 10.0
KEEPALIVE_S = 15
GOODBYE_S = 1.0
INBOX = 5_000
"""Messages that wait to be decoded before no more are read: the broker keeps them as long."""

CHUNK = 200
"""Messages that are decoded before others in this process get their turn."""

SENDS_AT_ONCE = 64

SUBSCRIBED_QOS = 0
"""How the broker hands on to us what nodes publish. With QoS 1 it waits for confirmations after a few messages (20 in
Mosquitto), so that each turn of a busy event loop would bring no more than these. Nothing is less safe: when we are
gone, the broker forgets what was under way at either QoS, and agents send again what we have not acknowledged."""

ANSWERED_WITHIN_S = 300.0
"""The broker's answers come behind what it has kept for us: of ten thousand new nodes, a minute of work. That it
is gone shows earlier, by KEEPALIVE_S of reading in vain."""

SUPERSEDED = (
    "another coordinator leads this fleet: stop this one, or, if there is no other, clear what the broker has retained "
    "on the topic of the coordinator and restart this one"
)

RETAINED = (NodeTopic.PRESENCE, NodeTopic.INVENTORY)

_EVENTS: dict[type[NodeMessage], Callable[[Any], Event]] = {
    Presence: PresenceSeen,
    Report: ReportSeen,
}

log = structlog.get_logger()


class Inbox(asyncio.Queue[Any]):
    """Gives away all that waits at once, as a list: aiomqtt starts a task for each `get`, dearer than the message."""

    _queue: deque[aiomqtt.Message]

    def _get(self) -> list[aiomqtt.Message]:
        batch = list(self._queue)
        self._queue.clear()
        return batch


class Spoken(NamedTuple):
    """A message on its way out; the broker keeps one that is retained for whoever comes later."""

    topic: str
    payload: bytes
    retain: bool = False


class _Superseded(Exception):
    """A coordinator with a newer epoch speaks for the fleet."""


class Link:
    """The connection to the broker, kept up until a coordinator with a newer epoch speaks for the fleet.

    `deliver` gets the events of a batch of messages and may wait; nothing more is decoded meanwhile. `received` counts
    messages, `refused` those that were dropped, by kind. `connected` says whether all that nodes say comes in.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        broker_url: str,
        api_url: str,
        epoch: int,
        deliver: Callable[[Sequence[Event]], Awaitable[None]],
    ) -> None:
        self.connected = False
        self.received = 0
        self.refused: Counter[str] = Counter()
        connection_options(settings.broker, broker_url)  # what is wrong with them is said at the start
        self._settings = settings.broker
        self._topics = Topics(settings.fleet)
        self._broker_url = broker_url
        self._api_url = api_url
        self._epoch = epoch
        self._newer_epoch: int | None = None
        self._deliver = deliver
        self._outbox: asyncio.Queue[Spoken] | None = None
        self._references: Spoken | None = None

    def send(self, command: SendAck | SendCommand | PublishReferences) -> None:
        """Queues a message; without a connection one to a node is dropped, and the references wait for the next."""
        match command:
            case SendAck(node, ack):
                spoken = Spoken(self._topics.node(node, NodeTopic.ACK), encode(ack))
            case SendCommand(node, order):
                spoken = Spoken(self._topics.node(node, NodeTopic.COMMAND), encode(order))
            case PublishReferences(message):
                spoken = self._references = Spoken(self._topics.references, encode(message), retain=True)
        if self._outbox is not None:
            self._outbox.put_nowait(spoken)

    async def run(self) -> None:
        """Connects, and connects again whenever the connection is lost, until it is cancelled or superseded.

        Two coordinators under one account would otherwise end each other's connection for ever.
        """
        attempt = 0
        while True:
            try:
                async with self._client() as client:
                    attempt = 0
                    await self._serve(client)
            except* (aiomqtt.MqttError, SettingsError) as group:
                log.warning("broker_away", broker=self._broker_url, error=str(group.exceptions[0]))
            except* _Superseded:
                log.error("coordinator_superseded", epoch=self._epoch, newer_epoch=self._newer_epoch, note=SUPERSEDED)
            if self._newer_epoch is not None:
                return
            await asyncio.sleep(pause_s(attempt))
            attempt += 1

    def _client(self) -> aiomqtt.Client:
        will = aiomqtt.Will(self._topics.coordinator, self._presence(online=False), qos=1, retain=True)
        client = aiomqtt.Client(
            **connection_options(self._settings, self._broker_url),
            identifier=f"muster-coordinator-{new_id()[:8]}",
            keepalive=KEEPALIVE_S,
            will=will,
            queue_type=Inbox,
        )
        read_in_bursts(client, INBOX)
        return client

    async def _serve(self, client: aiomqtt.Client) -> None:
        client.pending_calls_threshold = SENDS_AT_ONCE  # more than that would be worth a warning
        self._outbox = asyncio.Queue()
        if self._references is not None:
            self._outbox.put_nowait(self._references)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(client), name="link-receive")
                tasks.create_task(_transmit(client, self._outbox), name="link-transmit")
                tasks.create_task(self._listen(client), name="link-listen")
        finally:
            self.connected, self._outbox = False, None
            if self._newer_epoch is None:
                with suppress(aiomqtt.MqttError):
                    offline = self._presence(online=False)
                    await client.publish(self._topics.coordinator, offline, qos=1, retain=True, timeout=GOODBYE_S)

    async def _listen(self, client: aiomqtt.Client) -> None:
        """Subscribes, and from then on says that we are there, unless somebody newer has done so already."""
        await client.subscribe(self._topics.coordinator, SUBSCRIBED_QOS, timeout=ANSWERED_WITHIN_S)
        patterns = [self._topics.every_node(topic) for topic in FROM_NODE]
        wanted = [(pattern, SUBSCRIBED_QOS) for pattern in patterns]
        codes = await client.subscribe(wanted, timeout=ANSWERED_WITHIN_S)
        refused = [pattern for pattern, code in zip(patterns, codes, strict=True) if _is_refusal(code)]
        for pattern in refused:
            log.error("subscription_refused", topic=pattern, broker=self._broker_url)
        self.connected = not refused
        log.info("broker_connected", broker=self._broker_url)
        await self._beat(client)

    async def _receive(self, client: aiomqtt.Client) -> None:
        batch: list[aiomqtt.Message]
        async for batch in client.messages:  # type: ignore[assignment]  # an Inbox gives lists
            for start in range(0, len(batch), CHUNK):
                found = map(self._event, batch[start : start + CHUNK])
                if events := [event for event in found if event is not None]:
                    await self._deliver(events)
                await asyncio.sleep(0)

    def _event(self, message: aiomqtt.Message) -> Event | None:
        try:
            if str(message.topic) == self._topics.coordinator:
                self._hear_coordinator(message.payload)
                return None
            self.received += 1
            node, topic = self._topics.parse_node(str(message.topic))
            if not message.payload and topic in RETAINED:
                return None  # somebody has cleared what the broker kept
            decoded = decode_from_node(topic, node, message.payload)
        except RemoteError as error:
            self._refuse(error, str(message.topic))
            return None
        if isinstance(decoded, InventoryReport):
            return InventorySeen(decoded, kept=message.retain)
        return _EVENTS.get(type(decoded), GroupReplySeen)(decoded)

    def _hear_coordinator(self, payload: object) -> None:
        """Ours, an older one's last word, or that there is a newer one, which has taken or will take our place.

        Of two that started in the same second, the URL decides, so that not both go on.
        """
        assert isinstance(payload, bytes)
        if not payload:
            return
        said = codec.decode(payload, codec.COORDINATOR)
        if (said.epoch, said.url) > (self._epoch, self._api_url):
            self._newer_epoch = said.epoch
            raise _Superseded

    def _refuse(self, error: RemoteError, topic: str) -> None:
        self.refused[error.kind] += 1
        if self.refused[error.kind] == 1:
            log.warning("message_refused", kind=error.kind, detail=error.detail[:500], topic=topic[:500])

    async def _beat(self, client: aiomqtt.Client) -> None:
        while True:
            await _say(client, Spoken(self._topics.coordinator, self._presence(online=True), retain=True))
            await asyncio.sleep(HEARTBEAT_S)

    def _presence(self, *, online: bool) -> bytes:
        return encode(CoordinatorPresence(sent_at=time.time(), online=online, epoch=self._epoch, url=self._api_url))


async def _transmit(client: aiomqtt.Client, outbox: asyncio.Queue[Spoken]) -> None:
    """Sends in order, without waiting for one message's confirmation before the next is sent."""
    while True:
        batch = [await outbox.get()]
        while len(batch) < SENDS_AT_ONCE and not outbox.empty():
            batch.append(outbox.get_nowait())
        await asyncio.gather(*(_say(client, it) for it in batch))


def _is_refusal(code: object) -> bool:
    return isinstance(code, ReasonCode) and code.is_failure


async def _say(client: aiomqtt.Client, it: Spoken) -> None:
    await publish(client, it.topic, it.payload, retain=it.retain, within_s=ANSWERED_WITHIN_S)
