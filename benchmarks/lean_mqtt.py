"""A client of MQTT 3.1.1 that costs little: thousands of them fit into one process.

It has the methods of `aiomqtt.Client` that an agent's link uses, with QoS 1 in both directions. A client of aiomqtt
takes 13 KiB and several callbacks for each packet; ten thousand of them would measure themselves.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import aiomqtt
from benchmarks.mqtt_packets import CONNECT, PUBLISH, QOS_1, RETAINED, SUBSCRIBE, packet, text

CONNACK, PUBACK, SUBACK, DISCONNECT = 0x20, 0x40, 0x90, 0xE0
ANSWERED_WITHIN_S = 60.0
CLEAN_SESSION, WILL_QOS_1_RETAINED = 0x02, 0x04 | 0x08 | 0x20


@dataclass(slots=True)
class Traffic:
    """The bytes of MQTT that all clients of this process have sent and received, with the packets that confirm."""

    sent: int = 0
    received: int = 0


TRAFFIC = Traffic()


class Topic(NamedTuple):
    """The topic of a message."""

    value: str


class LeanMessage(NamedTuple):
    """A message from the broker."""

    topic: Topic
    payload: bytes


class LeanClient(asyncio.Protocol):
    """One connection to the broker at `host` and `port`; `will` is the topic and payload of its last will."""

    def __init__(self, host: str, port: int, identifier: str, will: tuple[str, bytes], keepalive_s: int) -> None:
        self._address = host, port
        flags = CLEAN_SESSION | WILL_QOS_1_RETAINED
        about = bytes([4, flags]) + keepalive_s.to_bytes(2)
        last_words = text(will[0]) + len(will[1]).to_bytes(2) + will[1]
        self._connect = packet(CONNECT, text("MQTT") + about + text(identifier) + last_words)
        self._received: asyncio.Queue[LeanMessage | None] = asyncio.Queue()
        self._answers: dict[tuple[int, int], asyncio.Future[None]] = {}
        self._next_id = 0
        self._unread = bytearray()
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

    @property
    async def messages(self) -> AsyncIterator[LeanMessage]:
        """The messages from the broker; raises MqttError when the connection is lost."""
        while (message := await self._received.get()) is not None:
            yield message
        raise aiomqtt.MqttError("the connection is lost")

    async def subscribe(self, topics: list[tuple[str, int]]) -> None:
        """Subscribes, and waits for the broker's answer."""
        filters = b"".join(text(topic) + bytes([qos]) for topic, qos in topics)
        await self._ask(SUBSCRIBE, SUBACK, lambda identifier: identifier + filters)

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool, timeout: float) -> None:
        """Publishes at QoS 1, and waits for the broker's confirmation."""
        assert qos == 1
        kind = PUBLISH | QOS_1 | (RETAINED if retain else 0)
        await self._ask(kind, PUBACK, lambda identifier: text(topic) + identifier + payload, timeout)

    async def _ask(
        self, kind: int, answered_by: int, body: Callable[[bytes], bytes], timeout_s: float = ANSWERED_WITHIN_S
    ) -> None:
        if self._transport.is_closing():
            raise aiomqtt.MqttError("the connection is lost")
        self._next_id = self._next_id % 65_535 + 1
        key = answered_by, self._next_id
        self._answers[key] = asyncio.get_running_loop().create_future()
        self._write(packet(kind, body(self._next_id.to_bytes(2))))
        try:
            async with asyncio.timeout(timeout_s):
                await self._answers[key]
        except TimeoutError:
            raise aiomqtt.MqttError("the broker does not answer") from None
        finally:
            self._answers.pop(key, None)

    def _write(self, data: bytes) -> None:
        TRAFFIC.sent += len(data)
        self._transport.write(data)

    # What asyncio calls

    def data_received(self, data: bytes) -> None:
        TRAFFIC.received += len(data)
        self._unread += data
        while (whole := _first_packet(self._unread)) is not None:
            kind, body, size = whole
            del self._unread[:size]
            self._take(kind, body)

    def connection_lost(self, _error: Exception | None) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(aiomqtt.MqttError("the connection is lost"))
                answer.exception()  # marks the error as seen: the task that waited may have been cancelled
        self._received.put_nowait(None)

    def _take(self, kind: int, body: bytes) -> None:
        match kind & 0xF0:
            case 0x30:  # PUBLISH
                self._take_message(kind, body)
            case 0x20:  # CONNACK, whose second byte is 0 if the broker accepts
                self._answer(CONNACK, 0, refused=body[1] != 0)
            case answer:
                self._answer(answer, int.from_bytes(body[:2]))

    def _take_message(self, kind: int, body: bytes) -> None:
        length = int.from_bytes(body[:2])
        topic, rest = body[2 : 2 + length].decode(), body[2 + length :]
        if kind & QOS_1:
            self._write(bytes([PUBACK, 2]) + rest[:2])
            rest = rest[2:]
        self._received.put_nowait(LeanMessage(Topic(topic), rest))

    def _answer(self, kind: int, identifier: int, *, refused: bool = False) -> None:
        answer = self._answers.get((kind, identifier))
        if answer is None or answer.done():
            return
        if refused:
            answer.set_exception(aiomqtt.MqttError("the broker refuses the connection"))
        else:
            answer.set_result(None)


def _first_packet(data: bytearray) -> tuple[int, bytes, int] | None:
    """The kind and body of the first whole packet, and its size; None if it is not complete."""
    length, shift, position = 0, 0, 1
    while True:
        if position >= len(data):
            return None
        digit = data[position]
        length |= (digit & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if not digit & 0x80:
            break
    if len(data) < position + length:
        return None
    return data[0], bytes(data[position : position + length]), position + length
