"""Listening ports of this node for groups, its address for other nodes, and connections to rank 0."""

import asyncio
import contextlib
import os
import socket
from dataclasses import replace
from urllib.parse import urlsplit

from muster.addresses import broker_urls
from muster.config import Settings
from muster_agent.decide.events import ConnectToRankZero, PortOpened, PortRefused, RankZeroReached, RankZeroUnreachable
from muster_agent.decide.orders import Order, RankPlace

BACKLOG = 4096
"""Connections that the kernel queues until rank 0 accepts them. Port scans take some; 4,096 is the maximum of Linux."""

_PAUSE_S = 0.1


class Ports:
    """Listening sockets by group. A group keeps its port until rank 0 takes the socket over."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._listeners: dict[str, socket.socket] = {}

    async def open(self, group: str) -> PortOpened | PortRefused:
        """Listens for a group at the address at which others reach this node."""
        try:
            address = await asyncio.to_thread(own_address, self._settings)
            listener = listen_at(address)
        except OSError as error:
            return PortRefused(group, f"cannot listen for the group: {error}")
        self._listeners[group] = listener
        return PortOpened(group, address, listener.getsockname()[1])

    def take(self, group: str) -> socket.socket | None:
        """Removes and returns the group's socket; the caller must close it."""
        return self._listeners.pop(group, None)

    def close(self, group: str) -> None:
        if listener := self.take(group):
            listener.close()

    def close_all(self) -> None:
        for group in list(self._listeners):
            self.close(group)


async def reach(wanted: ConnectToRankZero) -> RankZeroReached | RankZeroUnreachable:
    """Tries to connect to rank 0 of a group every 0.1 s, for at most `within_s`."""
    problem = "no answer"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wanted.within_s):
            while True:
                try:
                    _, writer = await asyncio.open_connection(wanted.address, wanted.port)
                except OSError as error:
                    problem = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
                    await asyncio.sleep(_PAUSE_S)
                except (OverflowError, ValueError) as error:  # not a port number, or not a host name
                    return RankZeroUnreachable(wanted.group, f"{wanted.address} port {wanted.port}: {error}")
                else:
                    writer.close()
                    return RankZeroReached(wanted.group)
    detail = f"{wanted.address} port {wanted.port} cannot be reached within {wanted.within_s:g} s: {problem}"
    return RankZeroUnreachable(wanted.group, detail)


def alone(order: Order, ranks: int) -> tuple[Order, socket.socket]:
    """Turns a run of scope GROUP into a group of this node alone, whose ranks meet on loopback."""
    listener = listen_at("127.0.0.1")
    address, port = listener.getsockname()
    places = tuple(
        RankPlace(
            rank=rank,
            local_rank=rank,
            local_world_size=ranks,
            world_size=ranks,
            master_addr=address,
            master_port=port,
        )
        for rank in range(ranks)
    )
    return replace(order, places=places), listener


def own_address(settings: Settings) -> str:
    """The address at which other nodes reach this one.

    It is `agent.address`, or else the source address of the route to the broker. All members of a group can reach the
    broker, so they find each other in its network. Raises OSError without a route. Resolves the broker's name, which
    may block.
    """
    if settings.agent.address is not None:
        return settings.agent.address
    url = urlsplit(broker_urls(settings.broker.agent_url)[0])
    family, kind, protocol, _, target = socket.getaddrinfo(url.hostname, url.port or 1883, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(target)  # a datagram socket sends nothing here: the kernel only chooses the route
        address: str = probe.getsockname()[0]
        return address


def listen_at(address: str) -> socket.socket:
    """A socket that listens at `address` on a free port; OSError when the address is not this host's."""
    family, kind, protocol, _, place = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
