"""Subscribes to the topics of nodes, and switches to others while messages flow."""

import asyncio
from collections.abc import Iterable
from itertools import chain

import aiomqtt
import structlog
from paho.mqtt.reasoncodes import ReasonCode

from muster_coordinator.runtime.outgoing import ANSWERED_WITHIN_S

SWITCHED_WITHIN_S = 3.0
"""Timeout of new subscriptions. 10,000 messages that came before the flood was noticed are less than 1 s of work."""

SUBSCRIBED_AT_ONCE = 500
"""Maximum number of topics in one packet; with names of usual length about 20 KiB."""

SUBSCRIBED_QOS = 0
"""The QoS at which the broker delivers messages of nodes. With QoS 1 the broker waits for confirmations after a few
messages (20 in Mosquitto), and a busy event loop would receive only these in each turn. QoS 0 is as safe: without a
connection the broker forgets undelivered messages at either QoS, and agents send unacknowledged runs again.
"""

log = structlog.get_logger()


async def subscribe(client: aiomqtt.Client, patterns: Iterable[str]) -> bool:
    """Subscribes to the patterns. Returns False, with an error in the log, if the broker refuses any."""
    packets = _in_chunks(sorted(patterns))
    wanted = ([(pattern, SUBSCRIBED_QOS) for pattern in packet] for packet in packets)
    answers = await asyncio.gather(*(client.subscribe(topics, timeout=ANSWERED_WITHIN_S) for topics in wanted))
    codes = [code for answer in answers for code in answer]
    refused = [
        pattern
        for pattern, code in zip(chain(*packets), codes, strict=True)
        if isinstance(code, ReasonCode) and code.is_failure
    ]
    for pattern in refused:
        log.error("subscription_refused", topic=pattern)
    return not refused


async def switch(client: aiomqtt.Client, more: frozenset[str], less: frozenset[str]) -> bool:
    """Subscribes to `more` and unsubscribes from `less` at the same time. Raises MqttError if that takes too long.

    Returns False if the broker refuses any. Its answers come after the part of a flood that it has queued already. A
    new connection is quicker: the broker forgets that queue, and agents send the lost messages again.
    """
    try:
        async with asyncio.timeout(SWITCHED_WITHIN_S):
            subscribed, _ = await asyncio.gather(subscribe(client, more), _unsubscribe(client, less))
    except TimeoutError:
        raise aiomqtt.MqttError("too many messages of a flood wait at the broker; reconnecting without them") from None
    return subscribed


async def _unsubscribe(client: aiomqtt.Client, patterns: Iterable[str]) -> None:
    packets = _in_chunks(sorted(patterns))
    await asyncio.gather(*(client.unsubscribe(packet, timeout=ANSWERED_WITHIN_S) for packet in packets))


def _in_chunks(patterns: list[str]) -> list[list[str]]:
    """The patterns in lists of SUBSCRIBED_AT_ONCE."""
    return [patterns[start : start + SUBSCRIBED_AT_ONCE] for start in range(0, len(patterns), SUBSCRIBED_AT_ONCE)]
