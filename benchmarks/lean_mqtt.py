"""A client of MQTT 3.1.1 that costs little: thousands of them fit into one process.

It has the methods of `aiomqtt.Client` that an agent's link uses: it publishes at QoS 1 and subscribes at QoS 0. A
client of aiomqtt takes 13 KiB and several callbacks for each packet; ten thousand of them would measure themselves.
Only connecting has a time limit: the brokers of the benchmarks answer or are gone.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import aiomqtt
from benchmarks.mqtt_packets import CONNECT, PUBLISH, QOS_1, RETAINED, SUBSCRIBE, packet, text

from muster_coordinator.runtime.packets import Packet, PacketReader, message_of

CONNACK, PUBACK, SUBACK, DISCONNECT = 0x20, 0x40, 0x90, 0xE0
ANSWERED_WITHIN_S = 60.0
CLEAN_SESSION, WILL_QOS_1_RETAINED = 0x02, 0x04 | 0x08 | 0x20


@dataclass(slots=True)
class Traffic:
    """The bytes of MQTT that all clients of this process have sent and received, with the packets that confirm."""

    sent: int = 0
    received: int = 0


TRAFFIC = Traffic()

LOST = "the connection is lost"


class LeanClient(asyncio.Protocol):
    """One connection to the broker at `host` and `port`; `will` is the topic and payload of its last will."""

    def __init__(self, host: str, port: int, identifier: str, will: tuple[str, bytes], keepalive_s: int) -> None:
        self._address = host, port
        flags = CLEAN_SESSION | WILL_QOS_1_RETAINED
        about = bytes([4, flags]) + keepalive_s.to_bytes(2)
        last_words = text(will[0]) + len(will[1]).to_bytes(2) + will[1]
        self._connect = packet(CONNECT, text("MQTT") + about + text(identifier) + last_words)
        self._early: list[tuple[str, bytes]] = []
        self._take: Callable[[str, bytes], None] = self._keep
        self._answers: dict[tuple[int, int], asyncio.Future[None]] = {}
        self._next_id = 0
        self._packets = PacketReader()
        self._lost = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        answer = self._answers[CONNACK, 0] = loop.create_future()
        try:
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                self._transport, _ = await loop.create_connection(lambda: self, *self._address)
                self._transport.write(self._connect)
                await answer
        except (OSError, TimeoutError) as error:
            raise aiomqtt.MqttError(f"not connected: {error}") from None
        return self

    async def __aexit__(self, *_: object) -> None:
        self._transport.write(packet(DISCONNECT, b""))
        self._transport.close()

    async def deliver(self, take: Callable[[str, bytes], None]) -> None:
        """Calls `take` with topic and payload of each message. Raises MqttError when the connection is lost."""
        for topic, payload in self._early:
            take(topic, payload)
        self._take = take
        await self._lost
        raise aiomqtt.MqttError(LOST)

    async def subscribe(self, topics: list[tuple[str, int]]) -> None:
        """Subscribes, and waits for the broker's answer."""
        filters = b"".join(text(topic) + bytes([qos]) for topic, qos in topics)
        await self._ask(SUBSCRIBE, SUBACK, b"", filters)

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool, timeout: float) -> None:
        """Publishes at QoS 1, and waits for the broker's confirmation."""
        assert qos == 1
        await self._ask(PUBLISH | QOS_1 | (RETAINED if retain else 0), PUBACK, text(topic), payload)

    def send(self, topic: str, payload: bytes) -> None:
        """Publishes at QoS 1, and lets the broker's confirmation come when it may."""
        self._send(PUBLISH | QOS_1, text(topic), payload)

    async def _ask(self, kind: int, answered_by: int, before_id: bytes, after_id: bytes) -> None:
        """Sends a packet with a number in it, and waits for the answer to that."""
        if self._transport.is_closing():
            raise aiomqtt.MqttError(LOST)
        key = answered_by, self._send(kind, before_id, after_id)
        answer = self._answers[key] = asyncio.get_running_loop().create_future()
        try:
            await answer
        finally:
            self._answers.pop(key, None)

    def _send(self, kind: int, before_id: bytes, after_id: bytes) -> int:
        """Sends a packet with the next number in it, and returns that."""
        self._next_id = self._next_id % 65_535 + 1
        data = packet(kind, before_id + self._next_id.to_bytes(2) + after_id)
        TRAFFIC.sent += len(data)
        self._transport.write(data)
        return self._next_id

    # What asyncio calls

    def data_received(self, data: bytes) -> None:
        TRAFFIC.received += len(data)
        for received in self._packets.read(data):
            if received.is_plain_message:
                message = message_of(received)
                self._take(message.topic, message.payload)
            else:
                self._take_answer(received)

    def connection_lost(self, _error: Exception | None) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(aiomqtt.MqttError(LOST))
                answer.exception()  # marks the error as seen: the task that waited may have been cancelled
        if not self._lost.done():
            self._lost.set_result(None)

    def _keep(self, topic: str, payload: bytes) -> None:
        self._early.append((topic, payload))

    def _take_answer(self, received: Packet) -> None:
        kind, body = received.first & 0xF0, received.body
        # A CONNACK has no number, and its second byte is 0 if the broker accepts.
        number = 0 if kind == CONNACK else int.from_bytes(body[:2])
        answer = self._answers.get((kind, number))
        if answer is None or answer.done():
            return
        if kind == CONNACK and body[1]:
            answer.set_exception(aiomqtt.MqttError("the broker refuses the connection"))
        else:
            answer.set_result(None)
