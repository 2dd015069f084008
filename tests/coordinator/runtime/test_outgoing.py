"""How many messages go to the broker before it has confirmed the first."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from muster_coordinator.runtime.outgoing import SENDS_AT_ONCE, OutgoingMessage, transmit


class SlowBroker:
    """A client whose broker confirms a message when the test says so, and the queue of what is to be sent."""

    def __init__(self):
        self.queue: asyncio.Queue[OutgoingMessage] = asyncio.Queue()
        self.sent = []
        self.unconfirmed = []

    async def publish(self, topic, payload, *, qos, retain, timeout):
        self.sent.append(topic)
        if qos:
            self.unconfirmed.append(asyncio.Event())
            await self.unconfirmed[-1].wait()


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
    """Such as acknowledgements."""
    for number in range(3 * SENDS_AT_ONCE):
        broker.queue.put_nowait(OutgoingMessage(str(number), b"", qos=0))
    await settled()
    assert len(broker.sent) == 3 * SENDS_AT_ONCE
