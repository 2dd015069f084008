"""The coordinator's end of MQTT: bytes to events, acks and commands to bytes.

Whatever a peer sends either becomes an event or is counted by kind, logged once a minute, held against its node, and
dropped. So is what a node sends beyond its allowance. What cannot be sent while the broker is away is dropped too:
agents send again what was not acknowledged, and commands expire.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import aiomqtt
import structlog
from paho.mqtt.reasoncodes import ReasonCode

from muster.config import Settings
from muster.errors import RemoteError, SettingsError
from muster.log_limit import LogLimit
from muster.mqtt import connection_options, pause_s, publish
from muster.wire import codec
from muster.wire.codec import encode
from muster.wire.messages import CoordinatorPresence, new_id
from muster.wire.topics import NodeTopic, Topics
from muster_coordinator.allowance import Allowances
from muster_coordinator.conduct import Misconduct
from muster_coordinator.events import AgentMisbehaved, Event, PublishReferences, SendAck, SendCommand
from muster_coordinator.inbox import Inbox
from muster_coordinator.muting import Muting, subscriptions
from muster_coordinator.node_events import event_of

HEARTBEAT_S = 10.0
KEEPALIVE_S = 15
GOODBYE_S = 1.0
SENDS_AT_ONCE = 64

LOOK_S = 0.5
"""How often it is looked whether somebody floods, and whether somebody does so no longer."""

SWITCHED_WITHIN_S = 3.0
"""Of 10,000 messages that have come before the flood was noticed, less than a second of work."""

SUBSCRIBED_AT_ONCE = 500
"""Topics in one packet: with names of usual length, some 20 KiB."""

SUBSCRIBED_QOS = 0
"""How the broker hands on to us what nodes publish. With QoS 1 it waits for confirmations after a few messages (20 in
Mosquitto), so that each turn of a busy event loop would bring no more than these. Nothing is less safe: when we are
gone, the broker forgets what was under way at either QoS, and agents send again what we have not acknowledged."""

ANSWERED_WITHIN_S = 300.0
"""The broker's answers come behind what it has kept for us: of ten thousand new nodes, a minute of work. That it
is gone shows earlier, by KEEPALIVE_S of reading in vain."""

WRONG = frozenset({"malformed", "oversized", "wrong_node"})
"""What no agent sends, of whatever version."""

SUPERSEDED = (
    "another coordinator leads this fleet: stop this one, or, if there is no other, clear what the broker has retained "
    "on the topic of the coordinator and restart this one"
)

RETAINED = (NodeTopic.PRESENCE, NodeTopic.INVENTORY)

log = structlog.get_logger()


class Spoken(NamedTuple):
    """A message on its way out; the broker keeps one that is retained for whoever comes later."""

    topic: str
    payload: bytes
    retain: bool = False


class _Superseded(Exception):
    """A coordinator with a newer epoch speaks for the fleet."""


class Link:
    """The connection to the broker, kept up until a coordinator with a newer epoch speaks for the fleet.

    `deliver` gets the events of a batch of messages and may wait; nothing more is decoded meanwhile. `known` gives the
    names of the nodes. `received` counts messages, `refused` those that were dropped, by kind. `connected` says whether
    all that nodes say comes in, but for those that are `muted`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        broker_url: str,
        api_url: str,
        epoch: int,
        deliver: Callable[[Sequence[Event]], Awaitable[None]],
        known: Callable[[], Iterable[str]],
    ) -> None:
        self.connected = False
        self.muted: frozenset[str] = frozenset()
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
        self._known = known
        self._allowances = Allowances()
        self._muting = Muting()
        self._log_limit = LogLimit()
        self._misconduct: dict[tuple[str, Misconduct], str] = {}
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
                client = self._client()
                inbox = Inbox(client, self._allowances, self._muting)
                async with client:
                    attempt = 0
                    await self._serve(client, inbox)
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
        return aiomqtt.Client(
            **connection_options(self._settings, self._broker_url),
            identifier=f"muster-coordinator-{new_id()[:8]}",
            keepalive=KEEPALIVE_S,
            will=will,
        )

    async def _serve(self, client: aiomqtt.Client, inbox: Inbox) -> None:
        client.pending_calls_threshold = SENDS_AT_ONCE  # more than that would be worth a warning
        self._outbox = asyncio.Queue()
        if self._references is not None:
            self._outbox.put_nowait(self._references)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive(client), name="link-receive")
                tasks.create_task(_transmit(client, self._outbox), name="link-transmit")
                tasks.create_task(self._listen(client, inbox), name="link-listen")
                tasks.create_task(self._watch(inbox), name="link-watch")
        finally:
            self.connected, self._outbox = False, None
            if self._newer_epoch is None:
                with suppress(aiomqtt.MqttError):
                    offline = self._presence(online=False)
                    await client.publish(self._topics.coordinator, offline, qos=1, retain=True, timeout=GOODBYE_S)

    async def _listen(self, client: aiomqtt.Client, inbox: Inbox) -> None:
        """Subscribes to what all nodes say, but for those that flood, and says every HEARTBEAT_S that we are there."""
        subscribed: frozenset[str] = frozenset()
        beat_at = 0.0
        while True:
            floods = self._muting.muted(time.monotonic())
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
                await _say(client, Spoken(self._topics.coordinator, self._presence(online=True), retain=True))
            inbox.flooded.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await inbox.flooded.wait()

    async def _switch(self, client: aiomqtt.Client, more: frozenset[str], less: frozenset[str]) -> None:
        """Subscribes to more and at once to less: the broker's answers stand behind the flood that has come so far.

        When that takes too long, MqttError: the broker forgets what waits for a connection that ends, and agents say
        again what was among it.
        """
        try:
            async with asyncio.timeout(SWITCHED_WITHIN_S):
                subscribed, _ = await asyncio.gather(self._subscribe(client, more), self._unsubscribe(client, less))
        except TimeoutError:
            raise aiomqtt.MqttError("too much of a flood waits at the broker; connecting anew without it") from None
        self.connected = self.connected and subscribed

    async def _subscribe(self, client: aiomqtt.Client, patterns: Iterable[str]) -> bool:
        """Whether the broker lets us."""
        packets = _in_chunks(sorted(patterns))
        wanted = ([(pattern, SUBSCRIBED_QOS) for pattern in some] for some in packets)
        answers = await asyncio.gather(*(client.subscribe(it, timeout=ANSWERED_WITHIN_S) for it in wanted))
        codes = [code for answer in answers for code in answer]
        refused = [pattern for pattern, code in zip(chain(*packets), codes, strict=True) if _is_refusal(code)]
        for pattern in refused:
            log.error("subscription_refused", topic=pattern, broker=self._broker_url)
        return not refused

    async def _unsubscribe(self, client: aiomqtt.Client, patterns: Iterable[str]) -> None:
        packets = _in_chunks(sorted(patterns))
        await asyncio.gather(*(client.unsubscribe(it, timeout=ANSWERED_WITHIN_S) for it in packets))

    async def _watch(self, inbox: Inbox) -> None:
        """Says once in a while what nodes have done wrong."""
        while True:
            await asyncio.sleep(LOOK_S)
            for (node, topic), count in inbox.dropped.items():
                self.refused["beyond_allowance"] += count
                self._accuse(node, Misconduct.FLOODING, topic)
            inbox.dropped.clear()
            wrongs, self._misconduct = self._misconduct, {}
            await self._deliver([AgentMisbehaved(node, kind, detail) for (node, kind), detail in wrongs.items()])

    async def _receive(self, client: aiomqtt.Client) -> None:
        batch: list[aiomqtt.Message]
        async for batch in client.messages:  # type: ignore[assignment]  # an Inbox gives lists
            if events := [event for event in map(self._event, batch) if event is not None]:
                await self._deliver(events)
            await asyncio.sleep(0)

    def _event(self, message: aiomqtt.Message) -> Event | None:
        try:
            if message.topic.value == self._topics.coordinator:
                self._hear_coordinator(message.payload)
                return None
            return self._from_node(message)
        except RemoteError as error:
            self._refuse(error, message.topic.value)
            return None

    def _from_node(self, message: aiomqtt.Message) -> Event | None:
        self.received += 1
        node, topic = self._topics.parse_node(message.topic.value)
        if not message.payload and topic in RETAINED:
            return None  # somebody has cleared what the broker kept
        try:
            return event_of(topic, node, message.payload, kept=message.retain)
        except RemoteError:
            raise
        except Exception as error:  # a bug, which nobody shall be able to end the coordinator with
            self.refused["failed"] += 1
            self._accuse(node, Misconduct.FAILED, type(error).__name__)
            if (left_out := self._log_limit.admit("failed", time.monotonic())) is not None:
                log.exception("message_failed", topic=topic, node=node, left_out=left_out)
            return None

    def _hear_coordinator(self, payload: bytes) -> None:
        """Ours, an older one's last word, or that there is a newer one, which has taken or will take our place.

        Of two that started in the same second, the URL decides, so that not both go on.
        """
        if not payload:
            return
        said = codec.decode(payload, codec.COORDINATOR)
        if (said.epoch, said.url) > (self._epoch, self._api_url):
            self._newer_epoch = said.epoch
            raise _Superseded

    def _refuse(self, error: RemoteError, topic: str) -> None:
        self.refused[error.kind] += 1
        if (left_out := self._log_limit.admit(error.kind, time.monotonic())) is not None:
            detail = error.detail[:500]
            log.warning("message_refused", kind=error.kind, detail=detail, topic=topic[:500], left_out=left_out)
        if error.kind in WRONG:
            with suppress(RemoteError):
                self._accuse(self._topics.parse_node(topic)[0], Misconduct.REFUSED, error.kind)

    def _accuse(self, node: str, kind: Misconduct, detail: str) -> None:
        self._misconduct.setdefault((node, kind), detail)

    def _presence(self, *, online: bool) -> bytes:
        return encode(CoordinatorPresence(sent_at=time.time(), online=online, epoch=self._epoch, url=self._api_url))


async def _transmit(client: aiomqtt.Client, outbox: asyncio.Queue[Spoken]) -> None:
    """Sends in order, without waiting for one message's confirmation before the next is sent."""
    while True:
        batch = [await outbox.get()]
        while len(batch) < SENDS_AT_ONCE and not outbox.empty():
            batch.append(outbox.get_nowait())
        await asyncio.gather(*(_say(client, it) for it in batch))


def _in_chunks(patterns: list[str]) -> list[list[str]]:
    """As many as fit into a packet."""
    return [patterns[start : start + SUBSCRIBED_AT_ONCE] for start in range(0, len(patterns), SUBSCRIBED_AT_ONCE)]


def _is_refusal(code: object) -> bool:
    return isinstance(code, ReasonCode) and code.is_failure


async def _say(client: aiomqtt.Client, it: Spoken) -> None:
    await publish(client, it.topic, it.payload, retain=it.retain, within_s=ANSWERED_WITHIN_S)
