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
    """A message to publish. The broker keeps a retained one for later subscribers.

    With QoS 0 nobody confirms it. That is enough for an acknowledgement: if one is lost, the agent asks again.
    """

    topic: str
    payload: bytes
    retain: bool = False
    qos: int = 1


async def transmit(client: aiomqtt.Client, outbox: asyncio.Queue[OutgoingMessage]) -> None:
    """Publishes up to SENDS_AT_ONCE messages before the broker has confirmed them; those with QoS 0 go first."""
    while True:
        batch = [await outbox.get()]
        while len(batch) < SENDS_AT_ONCE and not outbox.empty():
            batch.append(outbox.get_nowait())
        for message in batch:
            if message.qos == 0:  # it waits for nothing, so it needs no task
                await publish_message(client, message)
        await asyncio.gather(*(publish_message(client, message) for message in batch if message.qos))


async def publish_message(client: aiomqtt.Client, message: OutgoingMessage) -> None:
    """Publishes a message and waits for the broker's confirmation if there is one. Raises MqttError if none comes."""
    await publish(
        client, message.topic, message.payload, qos=message.qos, retain=message.retain, within_s=ANSWERED_WITHIN_S
    )
