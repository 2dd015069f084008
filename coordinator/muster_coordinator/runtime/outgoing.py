"""Messages to nodes on their way to the broker."""

import asyncio
from typing import NamedTuple

import aiomqtt

from muster.mqtt import publish

SENDS_AT_ONCE = 64

ANSWERED_WITHIN_S = 300.0
"""Timeout of the broker's answers, which come after the messages that it has kept for us: for ten thousand new nodes a
minute of work. The loss of the broker shows earlier, because nothing arrives for KEEPALIVE_S.
"""


class OutgoingMessage(NamedTuple):
    """A message to publish. The broker keeps a retained one for later subscribers."""

    topic: str
    payload: bytes
    retain: bool = False


async def transmit(client: aiomqtt.Client, outbox: asyncio.Queue[OutgoingMessage]) -> None:
    """Publishes in order, up to SENDS_AT_ONCE messages before the broker has confirmed them."""
    while True:
        batch = [await outbox.get()]
        while len(batch) < SENDS_AT_ONCE and not outbox.empty():
            batch.append(outbox.get_nowait())
        await asyncio.gather(*(publish_message(client, message) for message in batch))


async def publish_message(client: aiomqtt.Client, message: OutgoingMessage) -> None:
    """Publishes a message and waits for the broker's confirmation. Raises MqttError if none comes."""
    await publish(client, message.topic, message.payload, retain=message.retain, within_s=ANSWERED_WITHIN_S)
