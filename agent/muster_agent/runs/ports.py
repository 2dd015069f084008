"""The ports that this node holds for groups, and whether it can reach those of others."""

import asyncio
import contextlib
import os
import socket
from dataclasses import replace

from muster.config import Settings
from muster_agent.decide.events import PortOpened, PortRefused, Reach, Reached, Unreachable
from muster_agent.decide.orders import Order, Place
from muster_agent.runs.addresses import listen_at, own_address

_PAUSE_S = 0.1


class Ports:
    """Listening sockets by group: a port stays the group's from the reply that names it until rank 0 takes it over."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._listeners: dict[str, socket.socket] = {}

    async def open(self, group: str) -> PortOpened | PortRefused:
        """Listens for a group at the address by which others reach this node."""
        try:
            address = await asyncio.to_thread(own_address, self._settings)
            listener = listen_at(address)
        except OSError as error:
            return PortRefused(group, f"cannot listen for the group: {error}")
        self._listeners[group] = listener
        return PortOpened(group, address, listener.getsockname()[1])

    def take(self, group: str) -> socket.socket | None:
        """The group's socket, for whoever closes it from now on."""
        return self._listeners.pop(group, None)

    def close(self, group: str) -> None:
        if listener := self.take(group):
            listener.close()

    def close_all(self) -> None:
        for group in list(self._listeners):
            self.close(group)


async def reach(wanted: Reach) -> Reached | Unreachable:
    """Connects to rank 0 of a group, again and again for as long as that may take."""
    problem = "no answer"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(wanted.within_s):
            while True:
                try:
                    _, writer = await asyncio.open_connection(wanted.address, wanted.port)
                except OSError as error:
                    problem = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
                    await asyncio.sleep(_PAUSE_S)
                except (OverflowError, ValueError) as error:  # no port, or no host name
                    return Unreachable(wanted.group, f"{wanted.address} port {wanted.port}: {error}")
                else:
                    writer.close()
                    return Reached(wanted.group)
    detail = f"{wanted.address} port {wanted.port} cannot be reached within {wanted.within_s:g} s: {problem}"
    return Unreachable(wanted.group, detail)


def alone(order: Order, ranks: int) -> tuple[Order, socket.socket]:
    """A run of scope GROUP on this node alone: a group of one node, which meets on loopback."""
    listener = listen_at("127.0.0.1")
    address, port = listener.getsockname()
    places = tuple(
        Place(
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
