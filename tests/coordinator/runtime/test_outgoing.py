"""How many messages go to the broker before it has confirmed the first."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.enums import MQTTErrorCode

from muster_coordinator.runtime.outgoing import SENDS_AT_ONCE, OutgoingMessage, transmit


class SlowBroker:
    """A client whose broker confirms a message when the test says so, and the queue of what is to be sent.

    Its own client publishes without waiting, and numbers its messages. `waits` counts the messages that were waited
    for, `told` has the confirmations that aiomqtt was told of. With another `result`, nothing can be sent.
    """

    def __init__(self):
        self.queue: asyncio.Queue[OutgoingMessage] = asyncio.Queue()
        self.sent: list[str] = []
        self.told: list[int] = []
        self.waits = 0
        self.result = MQTTErrorCode.MQTT_ERR_SUCCESS
        self.on_publish: Callable[..., None] = lambda _client, _data, number, *_: self.told.append(number)
        self._client = self

    def publish(self, topic, payload, *, qos, retain, timeout=None) -> Any:
        self.sent.append(topic)
        return SimpleNamespace(mid=len(self.sent) - 1, rc=self.result) if timeout is None else self._written()

    async def _written(self):
        self.waits += 1

    def confirm(self, number: int) -> None:
        self.on_publish(self, None, number, None, None)


@pytest.fixture
async def broker() -> AsyncIterator[SlowBroker]:
    client: Any = SlowBroker()
    serving = asyncio.create_task(transmit(client, client.queue))
    yield client
    serving.cancel()


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_one_slow_confirmation_delays_nothing_but_the_last(broker):
    """In order; only as many as may be unconfirmed, and one more for each that is confirmed, whichever it is."""
    for number in range(SENDS_AT_ONCE + 3):
        broker.queue.put_nowait(OutgoingMessage(str(number), b""))
    await settled()
    assert broker.sent == [str(number) for number in range(SENDS_AT_ONCE)]
    broker.confirm(7)
    await settled()
    assert broker.sent[SENDS_AT_ONCE:] == [str(SENDS_AT_ONCE)]
    assert broker.told == [7]


async def test_what_aiomqtt_has_sent_makes_no_room(broker):
    """The heartbeat is not one of these messages."""
    for number in range(SENDS_AT_ONCE + 1):
        broker.queue.put_nowait(OutgoingMessage(str(number), b""))
    await settled()
    broker.confirm(SENDS_AT_ONCE + 70)
    await settled()
    assert len(broker.sent) == SENDS_AT_ONCE
    assert broker.told == [SENDS_AT_ONCE + 70]


async def test_what_needs_no_confirmation_does_not_count(broker):
    """Such as acknowledgements: all that come together are written together, and the last one is waited for."""
    for number in range(3 * SENDS_AT_ONCE):
        broker.queue.put_nowait(OutgoingMessage(str(number), b"", qos=0))
    await settled()
    assert (broker.sent, broker.waits) == ([str(number) for number in range(3 * SENDS_AT_ONCE)], 1)


async def test_messages_keep_their_order(broker):
    """Orders and acknowledgements alike."""
    for number in range(20):
        broker.queue.put_nowait(OutgoingMessage(str(number), b"", qos=number % 3 // 2))
    await settled()
    assert broker.sent == [str(number) for number in range(20)]


async def test_a_message_that_cannot_be_sent_ends_the_connection():
    """The link connects again, as after any other error of MQTT."""
    client: Any = SlowBroker()
    client.result = MQTTErrorCode.MQTT_ERR_NO_CONN
    client.queue.put_nowait(OutgoingMessage("a", b""))
    with pytest.raises(aiomqtt.MqttError, match="not currently connected"):
        await transmit(client, client.queue)


async def test_a_broker_that_confirms_nothing_ends_the_connection(monkeypatch):
    """It would never take an order again."""
    monkeypatch.setattr("muster_coordinator.runtime.outgoing.ANSWERED_WITHIN_S", 0.01)
    client: Any = SlowBroker()
    for number in range(SENDS_AT_ONCE + 1):
        client.queue.put_nowait(OutgoingMessage(str(number), b""))
    with pytest.raises(aiomqtt.MqttError, match="confirms nothing"):
        await transmit(client, client.queue)
