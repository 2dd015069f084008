"""The address by which other nodes reach this one."""

import socket
from urllib.parse import urlsplit

from muster.config import Settings

BACKLOG = 4096
"""Connections that the kernel keeps until rank 0 accepts them: the maximum of Linux, as port scans use some."""


def own_address(settings: Settings) -> str:
    """What agent.address says, else the address that this host's route to the broker starts from.

    Whoever reaches the broker stands in its network, and there the members of a group find each other. OSError when
    there is no route. Looks the broker's name up, which may block.
    """
    if settings.agent.address is not None:
        return settings.agent.address
    url = urlsplit(settings.broker.agent_url)
    family, kind, protocol, _, target = socket.getaddrinfo(url.hostname, url.port or 1883, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(target)  # of a datagram socket: sends nothing, only chooses the route
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
