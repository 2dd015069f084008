"""The embedded MQTT broker for one host. A fleet of several hosts runs Mosquitto and sets `broker.url`.

It accepts every client, so it listens on loopback only. It may lose messages for a client that is away. This is safe:
agents keep every run until the coordinator has stored it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from amqtt.adapters import StreamReaderAdapter, StreamWriterAdapter
from amqtt.broker import Broker
from amqtt.contexts import BrokerConfig, ListenerConfig, ListenerType
from amqtt.session import Session

from muster.addresses import split_address
from muster.connections import BACKLOG, Connections, most_connections
from muster.errors import Unavailable

LISTENER = "default"  # amqtt requires a listener of this name

MOST_CONNECTIONS = 512
"""One host has a few agents. A demo with hundreds of agents runs out of processors first."""

MOST_CONNECT_BYTES = 64 << 10
"""Maximum number of bytes from a client before it has identified itself with its name and last will. MQTT allows 256
MiB.
"""


class Snapshot(dict[str, Any]):
    """A dictionary that may change during an iteration.

    amqtt sends retained messages while it iterates over its tables, and drops the connection with a RuntimeError when
    another client publishes or subscribes meanwhile, as every agent of a host that starts does.
    """

    def __iter__(self) -> Iterator[str]:
        return iter(list(super().keys()))

    def items(self) -> Any:
        return list(super().items())


class Writer(StreamWriterAdapter):  # type: ignore[misc]
    """amqtt's writer, with its `transport`."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        super().__init__(writer)
        self.transport = writer.transport


class OwnBroker(Broker):  # type: ignore[misc]  # amqtt comes without types
    """amqtt's broker with two bugs fixed.

    amqtt sends a new client the retained messages for the subscriptions of all other clients, too. It also waits
    forever for the CONNECT of a client; here `connections` closes the connection of a client that does not send it.
    """

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__(config)
        self.connections = Connections(
            "broker.listen", most_connections(MOST_CONNECTIONS), most_unread=MOST_CONNECT_BYTES
        )

    async def _initialize_client_session(self, reader: Any, writer: "Writer", *address: Any) -> Any:
        session = await super()._initialize_client_session(reader, writer, *address)
        self.connections.start_work(writer.transport)
        return session

    async def _publish_retained_messages_for_subscription(
        self, subscription: tuple[str, int], session: Session
    ) -> None:
        subscribers = self._subscriptions.get(subscription[0], [])
        if any(subscriber is session for subscriber, _ in subscribers):
            await super()._publish_retained_messages_for_subscription(subscription, session)


@asynccontextmanager
async def embedded_broker(listen: str) -> AsyncIterator[str]:
    """Serves MQTT on `listen` (host:port; port 0 picks a free one) and yields its URL. Raises Unavailable if in use."""
    # amqtt warns of every client that disconnects without DISCONNECT.
    logging.getLogger("amqtt").setLevel(logging.ERROR)
    broker = OwnBroker(
        BrokerConfig(
            listeners={LISTENER: ListenerConfig(type=ListenerType.EXTERNAL)},
            plugins={"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
        )
    )
    broker._subscriptions = Snapshot()
    broker._retained_messages = Snapshot()
    await broker.start()
    try:
        server = await _listen(broker, listen)
        host, port = server.sockets[0].getsockname()[:2]
        try:
            yield f"mqtt://[{host}]:{port}" if ":" in host else f"mqtt://{host}:{port}"
        finally:
            server.close()
    finally:
        await broker.shutdown()


async def _listen(broker: OwnBroker, listen: str) -> asyncio.Server:
    """Opens the sockets here, because amqtt does not report the port that it got."""
    loop = asyncio.get_running_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await broker.external_connected(StreamReaderAdapter(reader), Writer(writer), LISTENER)
        finally:
            writer.close()  # if the first bytes are not MQTT, amqtt leaves the connection open

    def protocol() -> asyncio.Protocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), serve, loop=loop)

    host, port = split_address(listen)
    try:
        return await loop.create_server(broker.connections.around(protocol), host, port, backlog=BACKLOG)
    except OSError as error:
        raise Unavailable(
            f"broker.listen: cannot listen on {listen}: {error.strerror}; stop what listens there, "
            "set another broker.listen, or set broker.url to use that broker"
        ) from None
