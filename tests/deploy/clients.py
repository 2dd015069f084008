"""Clients of a broker whose accounts have their name as password, and what comes to them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import aiomqtt

NODE, OTHER = "n1", "n1-a"
"""Two nodes; the second name begins with the first."""


def client(port: int, account: str, **options: Any) -> aiomqtt.Client:
    return aiomqtt.Client("127.0.0.1", port, username=account, password=account, **options)


async def arrived(listener: aiomqtt.Client, last: str) -> set[str]:
    """The topics of all messages that come to `listener` before one on the topic `last`."""
    topics: set[str] = set()
    async with asyncio.timeout(20):
        async for message in listener.messages:
            if message.topic.value == last:
                break
            topics.add(message.topic.value)
    return topics


async def delivered(listener: aiomqtt.Client, sender: aiomqtt.Client, topics: Sequence[str], last: str) -> set[str]:
    """The topics of which `listener` gets a message, when `sender` publishes on each, and then on `last`."""
    for topic in (*topics, last):
        await sender.publish(topic, b"x", qos=1)
    return await arrived(listener, last)
