"""The connections that a check of a broker makes, and what comes to them."""

import asyncio
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

import aiomqtt
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from muster.config import BrokerSettings
from muster.model import Verdict
from muster.mqtt import connection_options
from muster.wire.topics import ROOT, Topics

T = TypeVar("T")

ANSWERED_WITHIN_S = 10.0
"""How long a broker may take for anything that is not measured."""


class BrokerAnswer(NamedTuple):
    """Whether a broker does what was asked, with a sentence for people."""

    verdict: Verdict
    detail: str


class Account:
    """An account at a broker. Raises SettingsError if a file of it cannot be read.

    One check at a time connects: a broker may end a second connection of an account.
    """

    def __init__(self, broker: BrokerSettings, url: str, fleet: str, *, identifier: str | None = None) -> None:
        self.broker = broker
        self.url = url
        self.fleet = fleet
        self.topics = Topics(fleet)
        self._identifier = identifier  # the broker may know a client by it
        self._id = uuid.uuid4().hex[:8]
        connection_options(broker, url)  # raises for wrong settings before anything is tried

    def topic(self, name: str) -> str:
        """A topic that only this check uses, below those of the fleet."""
        return f"{ROOT}/{self.fleet}/check/{self._id}/{name}"

    @property
    def other_node(self) -> str:
        """The name of a node that does not exist."""
        return f"check-{self._id}"

    def client(self, **options: Any) -> aiomqtt.Client:
        """A client that is not connected yet, with these options of aiomqtt beside those of the settings."""
        given = (
            connection_options(self.broker, self.url)
            | {"timeout": ANSWERED_WITHIN_S, "identifier": self._identifier}
            | options
        )
        return aiomqtt.Client(**given)

    def plain_client(self) -> paho.Client:
        """A connected client that reads only in its `loop`."""
        given = connection_options(self.broker, self.url)
        client = paho.Client(CallbackAPIVersion.VERSION2)
        client.username_pw_set(given["username"], given["password"])
        if given["tls_context"] is not None:
            client.tls_set_context(given["tls_context"])
        client.connect(given["hostname"], given["port"])
        return client


async def received(client: aiomqtt.Client, count: int, within_s: float = ANSWERED_WITHIN_S) -> list[aiomqtt.Message]:
    """The next `count` messages; fewer if no more come in that time."""
    messages: list[aiomqtt.Message] = []
    try:
        async with asyncio.timeout(within_s):
            async for message in client.messages:
                messages.append(message)
                if len(messages) == count:
                    break
    except TimeoutError:
        pass
    return messages


async def topics_before(client: aiomqtt.Client, last: str) -> set[str]:
    """The topics of new messages that come before one on `last`. Raises TimeoutError if that does not come.

    What the broker has kept is older: the coordinator's own messages, for example.
    """
    topics: set[str] = set()
    async with asyncio.timeout(ANSWERED_WITHIN_S):
        async for message in client.messages:
            if message.topic.value == last:
                break
            if not message.retain:
                topics.add(message.topic.value)
    return topics


async def unless_ended(client: aiomqtt.Client, action: Coroutine[Any, Any, T]) -> T:
    """The result of `action`. Raises MqttError as soon as the broker ends the connection.

    aiomqtt itself would wait for the broker's answer until time is up. A message that comes meanwhile is lost.
    """
    acting, reading = asyncio.create_task(action), asyncio.create_task(received(client, 1))
    await asyncio.wait((acting, reading), return_when=asyncio.FIRST_COMPLETED)
    if not acting.done() and reading.exception() is not None:
        acting.cancel()
        await asyncio.wait((acting,))
        raise aiomqtt.MqttError("the broker has ended the connection")
    reading.cancel()
    return await acting


async def publish_empty(client: aiomqtt.Client, topics: Sequence[str]) -> None:
    """Publishes a message without content on each topic.

    A broker may refuse one without a word, or by ending the connection, for which this raises MqttError.
    """
    for topic in topics:
        await client.publish(topic, b"", qos=1)
