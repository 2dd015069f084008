"""Connects agent and coordinator to the broker with the same settings."""

import asyncio
import random
import socket
import ssl
from collections.abc import Iterator
from itertools import cycle
from typing import Any
from urllib.parse import urlsplit

import aiomqtt

from muster.addresses import broker_urls
from muster.backoff import backoff_s
from muster.config import BrokerSettings
from muster.errors import SettingsError
from muster.reconnect import LONGEST_PAUSE_S
from muster.secret_file import read_secret

MAX_INFLIGHT = 1_000
"""Maximum number of unconfirmed messages of QoS 1 in each direction. paho's own limit of 20 is for slow links."""

PROBED_WITHIN_S = 3.0
"""How long to look at a broker that does not answer."""


def addresses(url: str) -> Iterator[str]:
    """The brokers of `broker.url` in turns, endlessly. They begin at a random one, so that clients spread."""
    brokers = broker_urls(url)
    random.shuffle(brokers)
    return cycle(brokers)


def connection_options(broker: BrokerSettings, url: str) -> dict[str, Any]:
    """The arguments of `aiomqtt.Client` for the broker at `url`. Raises SettingsError if a file cannot be read."""
    parts = urlsplit(url)
    secure = parts.scheme == "mqtts"
    return {
        "hostname": parts.hostname,
        "port": parts.port or (8883 if secure else 1883),
        "username": broker.username,
        "password": None if broker.password_file is None else read_secret(broker.password_file, "broker.password_file"),
        "tls_context": _tls(broker) if secure else None,
        "max_inflight_messages": MAX_INFLIGHT,
    }


async def publish(
    client: aiomqtt.Client, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False, within_s: float = 10.0
) -> None:
    """Publishes and waits for the broker's confirmation, with QoS 0 only until the message is written.

    Raises MqttError if that takes longer than `within_s`.

    Call it in a task that is new with the connection. Before Python 3.13, a task that has outlived a failed task group
    may still count as cancelled.
    """
    await client.publish(topic, payload, qos=qos, retain=retain, timeout=within_s)
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        # Before Python 3.12 the wait inside forgets a cancellation that comes together with the confirmation.
        raise asyncio.CancelledError


async def why_not_connected(error: Exception, broker: BrokerSettings, url: str) -> str:
    """What the log says about a failed connection; with TLS, whose certificate is refused, and why.

    With TLS 1.3 a broker looks at our certificate after the handshake, and `error` says only that time was up. Then
    this makes a connection of its own, which takes up to 2 PROBED_WITHIN_S.
    """
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"the broker's certificate is not accepted: {text}"
    if urlsplit(url).scheme != "mqtts" or "timed out" not in text:
        return text
    alert = await asyncio.to_thread(_alert, broker, url)
    if alert is None:
        return text
    ours = "without broker.cert_file" if broker.cert_file is None else f"with the certificate {broker.cert_file}"
    return f"the broker refuses this client {ours}: {alert}"


def _alert(broker: BrokerSettings, url: str) -> str | None:
    """What the broker objects to after a TLS handshake; None if that is nothing, or it is not there."""
    try:
        options = connection_options(broker, url)
        with (
            socket.create_connection((options["hostname"], options["port"]), PROBED_WITHIN_S) as raw,
            options["tls_context"].wrap_socket(raw, server_hostname=options["hostname"]) as secured,
        ):
            secured.recv(1)
    except ssl.SSLError as error:
        return (error.reason or "").partition("ALERT_")[2].replace("_", " ").lower() or None
    except (OSError, SettingsError):
        return None
    return None


def pause_s(attempt: int) -> float:
    """Seconds to wait after failure number `attempt` in a row, from 0: random from 0 to 0.5, 1, 2, 4, … seconds."""
    return random.uniform(0, backoff_s(attempt + 1, 0.5, LONGEST_PAUSE_S))  # noqa: S311 (spreads load, no secret)


def _tls(broker: BrokerSettings) -> ssl.SSLContext:
    """A TLS context that always verifies the broker's certificate and name, with our own certificate if one is set."""
    try:
        context = ssl.create_default_context(cafile=broker.ca_file)
    except OSError as error:
        raise SettingsError(f"broker.ca_file: cannot use {broker.ca_file}: {error.strerror or error}") from None
    if broker.cert_file is None:
        if broker.key_file is not None:
            raise SettingsError("broker.key_file: set broker.cert_file to the certificate that the key is for")
        return context
    try:
        context.load_cert_chain(broker.cert_file, broker.key_file)
    except OSError as error:
        files = f"{broker.cert_file} with the key in {broker.key_file or 'the same file'}"
        raise SettingsError(f"broker.cert_file: cannot use {files}: {error.strerror or error}") from None
    return context
