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


_TURNED_AWAY_AT_ONCE = 100
"""Connections that are closed before the agent does something else."""


class Ports:
    """Listening sockets by group, from the invitation until the ranks of this node are ready.

    Until then, members only try whether they reach this node. So every connection is closed at once: connections that
    strangers keep open would fill the kernel's queue, and the node would count as unreachable.
    """

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
        listener.setblocking(False)
        asyncio.get_running_loop().add_reader(listener, _turn_away, listener)
        return PortOpened(group, address, listener.getsockname()[1])

    def copy(self, group: str) -> socket.socket | None:
        """The group's socket for rank 0, which must not accept connections before `close`; the caller must close it."""
        listener = self._listeners.get(group)
        return listener and listener.dup()

    def close(self, group: str) -> None:
        """Closes the group's socket; a copy listens on."""
        if listener := self._listeners.pop(group, None):
            asyncio.get_running_loop().remove_reader(listener)
            listener.setblocking(True)  # also the copy: a store that waits in accept expects that
            listener.close()

    def close_all(self) -> None:
        for group in list(self._listeners):
            self.close(group)


def _turn_away(listener: socket.socket) -> None:
    for _ in range(_TURNED_AWAY_AT_ONCE):
        try:
            connection, _ = listener.accept()
        except OSError:  # there is none any more
            return
        connection.close()


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
    # Or connections that were turned away would keep the port for a minute (TIME_WAIT).
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
