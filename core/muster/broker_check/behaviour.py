"""What muster needs of any broker: each function tries one need with the coordinator's account.

Each makes a connection of its own and raises MqttError or TimeoutError if that fails.
"""

import asyncio
import select
import socket
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import aiomqtt
import paho.mqtt.client as paho

from muster.addresses import is_loopback_host
from muster.broker_check.connection import Account, BrokerAnswer, received
from muster.model import Verdict
from muster.wire.codec import MAX_MESSAGE_BYTES

ROUND_TRIPS = 100

SLOW_MS = 20.0
"""A broker that waits before it sends a small message adds 40 ms to each (Nagle's algorithm, delayed acknowledgements).
"""

IN_ORDER = 2_000

BURST = 20_000
"""Ten thousand nodes have two kept messages each, which a new coordinator gets at once."""

BURST_BYTES = 1_000

STALLED_S = 1.0
"""A broker that takes nothing for so long waits for the client to read."""

QUIET_S = 3.0
"""What has not come after so long without a message does not come."""

WILL_WITHIN_S = 5.0


async def strangers(account: Account) -> BrokerAnswer:
    """A client without an account stays out."""
    if account.broker.username is None and account.broker.cert_file is None:
        here = is_loopback_host(urlsplit(account.url).hostname or "")
        text = "no account is set, so every client" + (" on this host may do all" if here else " may do all: set one")
        return BrokerAnswer(Verdict.PASS if here else Verdict.FAIL, text)
    nobody = account.broker.model_copy(
        update={"username": None, "password_file": None, "cert_file": None, "key_file": None}
    )
    try:
        async with Account(nobody, account.url, account.fleet).client():
            return BrokerAnswer(Verdict.FAIL, "a client without an account got in")
    except aiomqtt.MqttError:
        return BrokerAnswer(Verdict.PASS, "a client without an account was refused")


async def latency(account: Account) -> BrokerAnswer:
    """A message comes back soon."""
    topic, took = account.topic("latency"), []
    async with account.client() as client:
        await client.subscribe(topic, qos=0)
        for _ in range(ROUND_TRIPS):
            began = time.perf_counter()
            await client.publish(topic, b"x", qos=1)
            if not await received(client, 1):
                return BrokerAnswer(Verdict.FAIL, "a message did not come back")
            took.append((time.perf_counter() - began) * 1000)
    median, p99 = statistics.median(took), statistics.quantiles(took, n=100, method="inclusive")[98]
    text = f"{median:.1f} ms, p99 {p99:.1f} ms, of {ROUND_TRIPS} messages with QoS 1"
    if median <= SLOW_MS:  # a few late ones are the fault of a busy host
        return BrokerAnswer(Verdict.PASS, text)
    why = "the network is slow, or the broker waits before it sends small messages (Mosquitto: set_tcp_nodelay true)"
    return BrokerAnswer(Verdict.WARN, f"{text}: {why}")


async def order(account: Account) -> BrokerAnswer:
    """All messages with QoS 1 arrive once, in the order in which they were published."""
    topic = account.topic("order")
    sent = [str(number).encode() for number in range(IN_ORDER)]
    async with account.client() as client:
        client.pending_calls_threshold = IN_ORDER  # aiomqtt warns of more calls than this
        await client.subscribe(topic, qos=0)
        began = time.perf_counter()
        reading = asyncio.create_task(received(client, IN_ORDER))
        await asyncio.gather(*(client.publish(topic, payload, qos=1) for payload in sent))
        payloads = [message.payload for message in await reading]
        rate = len(payloads) / (time.perf_counter() - began)
    if payloads == sent:
        return BrokerAnswer(Verdict.PASS, f"{IN_ORDER} messages arrived in order, {rate:,.0f} a second")
    if sorted(map(bytes, payloads)) == sorted(sent):
        return BrokerAnswer(Verdict.FAIL, "all messages arrived, but not in order")
    return BrokerAnswer(Verdict.FAIL, f"{len(payloads)} messages arrived of {IN_ORDER}")


async def size(account: Account) -> BrokerAnswer:
    """The largest message of muster arrives."""
    topic = account.topic("size")
    async with account.client() as client:
        await client.subscribe(topic, qos=0)
        try:
            await client.publish(topic, bytes(MAX_MESSAGE_BYTES), qos=1)
            arrived = await received(client, 1)
        except aiomqtt.MqttError:
            arrived = []
    text = f"a message of {MAX_MESSAGE_BYTES >> 20} MiB"
    if arrived and arrived[0].payload == bytes(MAX_MESSAGE_BYTES):
        return BrokerAnswer(Verdict.PASS, f"{text} arrived")
    return BrokerAnswer(Verdict.FAIL, f"{text} did not arrive: reports of many findings get that large")


async def dots(account: Account) -> BrokerAnswer:
    """A dot in a name stays a dot."""
    topic = account.topic("n1.rack-2/report")
    async with account.client() as client:
        await client.subscribe(account.topic("#"), qos=0)
        await client.publish(topic, b"x", qos=1)
        arrived = [message.topic.value for message in await received(client, 1)]
    if arrived == [topic]:
        return BrokerAnswer(Verdict.PASS, "a message for a name with a dot arrived on its topic")
    return BrokerAnswer(
        Verdict.WARN, "a message for a name with a dot did not arrive on its topic: name no node or fleet so"
    )


async def retained(account: Account) -> BrokerAnswer:
    """A retained message is kept for those who subscribe later, also with a wildcard."""
    exact, pattern = account.topic("retained/one"), account.topic("retained/+")
    async with account.client() as client:
        await client.publish(exact, b"kept", qos=1, retain=True)
    try:
        by_exact, by_pattern = [await _kept(account, each) for each in (exact, pattern)]
    finally:
        async with account.client() as client:
            await client.publish(exact, b"", qos=1, retain=True)
    if by_pattern:
        return BrokerAnswer(Verdict.PASS, "kept, and sent to those who subscribe with a wildcard")
    if by_exact:
        instead = "a coordinator that starts has to ask every node for its inventory"
        return BrokerAnswer(Verdict.WARN, f"kept, but not for a subscription with a wildcard: {instead}")
    return BrokerAnswer(Verdict.FAIL, "not kept: no agent knows its coordinator when it connects")


async def _kept(account: Account, subscription: str) -> bool:
    async with account.client() as client:
        await client.subscribe(subscription, qos=0)
        return any(message.retain and message.payload == b"kept" for message in await received(client, 1, within_s=2.0))


async def last_will(account: Account) -> BrokerAnswer:
    """The will of a client that vanishes is published, and kept if it says so."""
    topic = account.topic("will")
    deadline = time.monotonic() + WILL_WITHIN_S
    try:
        await _vanish(account.client(will=aiomqtt.Will(topic, b"kept", qos=1, retain=True)))
        while time.monotonic() < deadline:
            if await _kept(account, topic):
                return BrokerAnswer(Verdict.PASS, "published when a client vanished, and kept")
    finally:
        async with account.client() as client:
            await client.publish(topic, b"", qos=1, retain=True)
    return BrokerAnswer(Verdict.FAIL, f"not published in {WILL_WITHIN_S:.0f} s: nobody would miss a dead node")


async def _vanish(client: aiomqtt.Client) -> None:
    """Connects, and ends the connection without a goodbye."""
    with suppress(aiomqtt.MqttError):
        async with client:
            connection: Any = client._client.socket()
            connection.shutdown(socket.SHUT_RDWR)


async def one_connection(account: Account) -> BrokerAnswer:
    """A second connection with the same client id ends the first, so that an agent that restarts gets in at once."""
    name = f"muster-{account.other_node}"
    async with account.client(identifier=name) as first:
        ended = asyncio.create_task(received(first, 1))
        async with account.client(identifier=name) as second:
            await asyncio.wait([ended], timeout=QUIET_S)
            await second.publish(account.topic("second"), b"x", qos=1)
        has_ended = ended.done() and isinstance(ended.exception(), aiomqtt.MqttError)
        ended.cancel()
    text = "a second connection with the same client id " + ("ends" if has_ended else "does not end") + " the first"
    return BrokerAnswer(Verdict.PASS if has_ended else Verdict.FAIL, text)


async def burst(account: Account) -> BrokerAnswer:
    """The broker keeps what a client cannot read yet."""
    arrived = await asyncio.to_thread(_burst, account)
    text = f"{arrived:,} of {BURST:,} messages reached a client that did not read meanwhile"
    if arrived == BURST:
        return BrokerAnswer(Verdict.PASS, text)
    return BrokerAnswer(Verdict.WARN, f"{text}: let the broker queue more (Mosquitto: max_queued_messages)")


def _burst(account: Account) -> int:
    """How many of BURST messages come back to a client that reads only when it has published all."""
    client, topic = account.plain_client(), account.topic("burst")
    seen: Counter[str] = Counter()
    client.on_subscribe = lambda *_: seen.update(["subscribed"])
    client.on_message = lambda *_: seen.update(["message"])
    try:
        _read(client, until=client.is_connected)
        client.subscribe(topic, 0)
        _read(client, until=lambda: seen["subscribed"] > 0)
        _publish_without_reading(client, topic)
        while seen["message"] < BURST and _read(client, until=partial(_more, seen, seen["message"])):
            pass
    finally:
        client.disconnect()
    return seen["message"]


def _publish_without_reading(client: paho.Client, topic: str) -> None:
    """Reads only where the broker takes nothing more until somebody does, which loses nothing either."""
    patience_s = STALLED_S
    for _ in range(BURST):
        client.publish(topic, bytes(BURST_BYTES), 0)
        while client.want_write() and client.is_connected():
            connection: Any = client.socket()
            _, writable, _ = select.select([], [connection], [], patience_s)
            patience_s = patience_s if writable else 0.0
            client.loop_write() if patience_s else client.loop(0.1)


def _more(seen: Counter[str], before: int) -> bool:
    return seen["message"] > before


def _read(client: paho.Client, until: Callable[[], bool]) -> bool:
    """Reads until that holds; False if it does not within QUIET_S, or the connection is lost."""
    deadline = time.monotonic() + QUIET_S
    while not until():
        if time.monotonic() >= deadline or client.loop(0.1) != paho.MQTT_ERR_SUCCESS:
            return False
    return True


NEEDS: Mapping[str, Callable[[Account], Awaitable[BrokerAnswer]]] = {
    "strangers": strangers,
    "latency": latency,
    "order": order,
    "size": size,
    "dots": dots,
    "retained messages": retained,
    "last will": last_will,
    "one connection": one_connection,
    "slow reader": burst,
}
"""By name, in the order in which they are tried."""
