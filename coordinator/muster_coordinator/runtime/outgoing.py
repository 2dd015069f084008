"""Messages to nodes on their way to the broker."""

import asyncio
from typing import NamedTuple

import aiomqtt

from muster.mqtt import publish

SENDS_AT_ONCE = 256
"""Maximum number of messages that the broker has not confirmed. A confirmation may take 50 ms, because a large fleet is
read in 20 turns a second (`bursts`), and a sweep of 10,000 nodes sends 30,000 orders. aiomqtt goes through all of them
with each that is sent.
"""

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


async def transmit(client: aiomqtt.Client, outbox: asyncio.Queue[OutgoingMessage], tasks: asyncio.TaskGroup) -> None:
    """Publishes the messages of a queue, those of one QoS in order, up to SENDS_AT_ONCE before the first is confirmed.

    `tasks` are those of the connection; one more waits for each confirmation. If several messages with QoS 0 wait, only
    the last one is waited for, so that all are written together. One by one, with a turn of the event loop and four
    system calls for each, acknowledgements took a fifth of all work under load.
    """
    room = asyncio.Semaphore(SENDS_AT_ONCE)
    while True:
        message = await outbox.get()
        if message.qos == 0 and not outbox.empty():
            # Of aiomqtt's own client, because aiomqtt's `publish` waits. If it fails, so does the message after it.
            client._client.publish(message.topic, message.payload, qos=0, retain=message.retain)
        elif message.qos == 0:  # it needs no task, because it waits for nobody's answer
            await publish_message(client, message)
        else:
            await room.acquire()
            tasks.create_task(publish_message(client, message)).add_done_callback(lambda _: room.release())


async def publish_message(client: aiomqtt.Client, message: OutgoingMessage) -> None:
    """Publishes a message and waits for the broker's confirmation if there is one. Raises MqttError if none comes."""
    await publish(
        client, message.topic, message.payload, qos=message.qos, retain=message.retain, within_s=ANSWERED_WITHIN_S
    )
