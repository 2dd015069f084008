"""Messages to nodes on their way to the broker."""

import asyncio
from typing import Any, NamedTuple

import aiomqtt
from paho.mqtt.client import Client, error_string
from paho.mqtt.enums import MQTTErrorCode

from muster.mqtt import publish

SENDS_AT_ONCE = 2_000
"""Maximum number of messages that the broker has not confirmed. A confirmation may take 50 ms, because a large fleet is
read in 20 turns a second (`bursts`), and a sweep of 10,000 nodes sends 30,000 orders: with 256, six seconds of them.
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


class _Unconfirmed:
    """The messages that the broker has not confirmed yet; `has_room` is set while there are few enough."""

    def __init__(self, paho: Client) -> None:
        self.has_room = asyncio.Event()
        self.has_room.set()
        self._ids: set[int] = set()
        self._tell_aiomqtt = paho.on_publish
        paho.on_publish = self._confirmed

    def add(self, message_id: int) -> None:
        """Counts a message that was sent."""
        self._ids.add(message_id)
        if len(self._ids) >= SENDS_AT_ONCE:
            self.has_room.clear()

    def _confirmed(self, paho: Client, userdata: Any, message_id: int, *details: Any) -> None:
        if message_id in self._ids:
            self._ids.remove(message_id)
            self.has_room.set()
        self._tell_aiomqtt(paho, userdata, message_id, *details)  # type: ignore[misc]  # it has set one


async def transmit(client: aiomqtt.Client, outbox: asyncio.Queue[OutgoingMessage]) -> None:
    """Publishes the messages of a queue in order, up to SENDS_AT_ONCE before the first is confirmed.

    It goes around aiomqtt's `publish`, which waits for each message with a task of its own and goes through all that
    wait with each that is sent. Raises MqttError if the connection is lost, or the broker confirms nothing.

    If several messages with QoS 0 wait, only the last one is waited for, so that all are written together. One by one,
    with a turn of the event loop and four system calls for each, acknowledgements took a fifth of all work under load.
    """
    paho = client._client  # aiomqtt has no public attribute for it
    unconfirmed = _Unconfirmed(paho)
    while True:
        message = await outbox.get()
        if message.qos == 0 and outbox.empty():
            await publish_message(client, message)
            continue
        if message.qos > 0 and not unconfirmed.has_room.is_set():
            await _answered(unconfirmed.has_room)
        info = paho.publish(message.topic, message.payload, qos=message.qos, retain=message.retain)
        if info.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            raise aiomqtt.MqttError(f"cannot publish: {error_string(info.rc)}")
        if message.qos > 0:
            unconfirmed.add(info.mid)


async def _answered(has_room: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            await has_room.wait()
    except TimeoutError:
        raise aiomqtt.MqttError(f"the broker confirms nothing for {ANSWERED_WITHIN_S:g} s") from None


async def publish_message(client: aiomqtt.Client, message: OutgoingMessage) -> None:
    """Publishes a message and waits for the broker's confirmation if there is one. Raises MqttError if none comes."""
    await publish(
        client, message.topic, message.payload, qos=message.qos, retain=message.retain, within_s=ANSWERED_WITHIN_S
    )
