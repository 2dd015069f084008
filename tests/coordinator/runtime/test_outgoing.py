"""Messages to nodes: those that wait are written together."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiomqtt
import pytest

from muster.config import Settings
from muster.mqtt import connection_options
from muster_coordinator.runtime.outgoing import MOST_TOGETHER, OutgoingMessage, transmit
from muster_coordinator.runtime.packets import PacketReader, message_of


class Connection:
    """A client of aiomqtt that notes what is `sent`: each entry has the topics that were sent together.

    A message that is waited for is written when `written` is set.
    """

    def __init__(self):
        self.queue: asyncio.Queue[OutgoingMessage] = asyncio.Queue()
        self.sent: list[list[str]] = []
        self.written = asyncio.Event()
        self.written.set()
        self._client = self

    def _packet_queue(self, _kind, packets, _id, _qos):
        self.sent.append([message_of(packet).topic for packet in PacketReader().read(packets)])

    async def publish(self, topic, payload, *, qos, retain, timeout):
        assert (qos, retain) == (0, False)
        self.sent.append([topic])
        await self.written.wait()


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    client: Any = Connection()
    sending = asyncio.create_task(transmit(client, client.queue))
    yield client
    sending.cancel()


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


def put(connection: Connection, numbers: range) -> list[str]:
    topics = [str(number) for number in numbers]
    for topic in topics:
        connection.queue.put_nowait(OutgoingMessage(topic, b"x"))
    return topics


async def test_messages_that_wait_are_written_together_and_in_order(connection):
    """The last one is waited for, and meanwhile the next ones gather."""
    connection.written.clear()
    first = put(connection, range(3))
    await settled()
    later = put(connection, range(3, 5))
    await settled()
    assert connection.sent == [first[:-1], first[-1:]]
    connection.written.set()
    await settled()
    assert connection.sent[2:] == [later[:-1], later[-1:]]


async def test_many_messages_leave_turns_for_others(connection):
    """At most MOST_TOGETHER are written before the loop goes on."""
    connection.written.clear()
    topics = put(connection, range(2 * MOST_TOGETHER))
    await settled()
    assert connection.sent == [topics[:MOST_TOGETHER], [topics[MOST_TOGETHER]]]


async def test_one_message_goes_alone(connection):
    """It needs no company, and nothing is left behind."""
    assert put(connection, range(1)) == ["0"]
    await settled()
    assert connection.sent == [["0"]]
    assert connection.queue.empty()


async def test_a_connection_that_is_lost_ends_the_sending(mosquitto):
    """The link connects again; messages of before are dropped with the connection."""
    options: dict[str, Any] = connection_options(Settings().broker, mosquitto.url)
    client, queue = aiomqtt.Client(**options), asyncio.Queue[OutgoingMessage]()
    with pytest.raises(aiomqtt.MqttError):
        async with client:
            mosquitto.stop()
            while not client._disconnected.done():
                await asyncio.sleep(0.01)
            for number in range(3):
                queue.put_nowait(OutgoingMessage(str(number), b"x"))
            async with asyncio.timeout(20):
                await transmit(client, queue)
