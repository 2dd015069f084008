"""How many messages go to the broker before it has confirmed the first."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from muster_coordinator.runtime.outgoing import SENDS_AT_ONCE, OutgoingMessage, transmit


class SlowBroker:
    """A client whose broker confirms a message when the test says so, and the queue of what is to be sent.

    Its own client publishes without waiting. `waits` counts the messages without confirmation that were waited for.
    """

    def __init__(self):
        self.queue: asyncio.Queue[OutgoingMessage] = asyncio.Queue()
        self.sent: list[str] = []
        self.unconfirmed: list[asyncio.Event] = []
        self.waits = 0
        self._client = SimpleNamespace(publish=lambda topic, payload, qos, retain: self.sent.append(topic))

    async def publish(self, topic, payload, *, qos, retain, timeout):
        self.sent.append(topic)
        if qos:
            self.unconfirmed.append(asyncio.Event())
            await self.unconfirmed[-1].wait()
        else:
            self.waits += 1


@pytest.fixture
async def broker() -> AsyncIterator[SlowBroker]:
    client: Any = SlowBroker()
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(transmit(client, client.queue, tasks))
        yield client
        serving.cancel()
        for confirmed in client.unconfirmed:
            confirmed.set()


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_one_slow_confirmation_delays_nothing_but_the_last(broker):
    """In order; only as many as may be unconfirmed, and one more for each that is confirmed, whichever it is."""
    for number in range(SENDS_AT_ONCE + 3):
        broker.queue.put_nowait(OutgoingMessage(str(number), b""))
    await settled()
    assert broker.sent == [str(number) for number in range(SENDS_AT_ONCE)]
    broker.unconfirmed[7].set()
    await settled()
    assert broker.sent[SENDS_AT_ONCE:] == [str(SENDS_AT_ONCE)]


async def test_what_needs_no_confirmation_does_not_count(broker):
    """Such as acknowledgements: all that come together are written together, and the last one is waited for."""
    for number in range(3 * SENDS_AT_ONCE):
        broker.queue.put_nowait(OutgoingMessage(str(number), b"", qos=0))
    await settled()
    assert (broker.sent, broker.waits) == ([str(number) for number in range(3 * SENDS_AT_ONCE)], 1)


async def test_messages_of_one_qos_keep_their_order(broker):
    """Acknowledgements may overtake orders."""
    for number in range(20):
        broker.queue.put_nowait(OutgoingMessage(str(number), b"", qos=number % 3 // 2))
    await settled()
    orders = [str(number) for number in range(20) if number % 3 == 2]
    assert [topic for topic in broker.sent if topic in orders] == orders
    assert [topic for topic in broker.sent if topic not in orders] == [str(n) for n in range(20) if n % 3 != 2]
