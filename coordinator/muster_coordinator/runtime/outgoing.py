"""Messages to nodes on their way to the broker."""

import asyncio
from typing import NamedTuple

import aiomqtt

from muster.mqtt import publish
from muster_coordinator.runtime.packets import PUBLISH, packet_with

MOST_TOGETHER = 500
"""Maximum number of messages that are written together; then other tasks of this process get their turn."""

ANSWERED_WITHIN_S = 300.0
"""Timeout of the broker's answers, which come after the messages that it has kept for us: for ten thousand new nodes a
minute of work. The loss of the broker shows earlier, because nothing arrives for KEEPALIVE_S.
"""

_NO_ID, _NOT_TOLD = 0, 1
"""The number and the QoS that paho gets for several packets sent as one. It only calls back for QoS 0."""


class OutgoingMessage(NamedTuple):
    """A message to a node, which the broker neither confirms nor keeps.

    A confirmation would be of no use. Agents subscribe with QoS 0, so it says nothing about the node, and a connection
    that is lost loses the message either way. An agent asks again for a lost acknowledgement; a lost order expires.
    """

    topic: str
    payload: bytes


class RetainedMessage:
    """What the broker is to keep on a topic: published again on each connection, and after each change."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._payload: bytes | None = None
        self._changed = asyncio.Event()

    def replace(self, payload: bytes) -> None:
        """Replaces the message."""
        self._payload = payload
        self._changed.set()

    async def keep(self, client: aiomqtt.Client) -> None:
        """Publishes the message and its successors. Raises MqttError if the broker does not confirm one."""
        while True:
            self._changed.clear()
            if self._payload is not None:
                await publish(client, self._topic, self._payload, retain=True, within_s=ANSWERED_WITHIN_S)
            await self._changed.wait()


async def transmit(client: aiomqtt.Client, outbox: asyncio.Queue[OutgoingMessage]) -> None:
    """Publishes the messages of a queue in order. Raises MqttError if the connection is lost.

    All that wait are written together, up to MOST_TOGETHER, and only the last one is waited for. One by one, with a
    turn of the event loop and four system calls for each, acknowledgements took a fifth of all work under load, and
    orders a third of the work for a sweep.
    """
    paho = client._client  # aiomqtt has no public attribute for it
    while True:
        last, packets = await outbox.get(), list[bytes]()
        while len(packets) < MOST_TOGETHER and not outbox.empty():
            packets.append(packet_with(*last))
            last = outbox.get_nowait()
        if packets:
            paho._packet_queue(PUBLISH, b"".join(packets), _NO_ID, _NOT_TOLD)
        await publish(client, *last, qos=0, within_s=ANSWERED_WITHIN_S)
