"""Ports for servers that are told their number before they listen.

A port that the kernel picks (`bind` to 0) is free again when its socket closes. Until the server listens on it, any
other process may be given the same one, also as the near end of a connection that it opens. So ports come from below
the range from which the kernel picks, in blocks: a process that took a block has it until it ends. Each port is given
once.
"""

import socket
from collections.abc import Iterator
from pathlib import Path

_FIRST = 10_000  # most services that have a number of their own have one below
_END = 20_000  # from there on are the ports that jobs derive from their ids
_BLOCK = 50


def free_port() -> int:
    """A port of the loopback address that nobody else is given and nobody listens on."""
    return next(port for port in _ports if _nobody_listens(port))


def free_address() -> str:
    """The same as `host:port`."""
    return f"127.0.0.1:{free_port()}"


def _in_blocks() -> Iterator[int]:
    kernels = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    end = min(kernels, _END)
    for first in range(_FIRST, end - _BLOCK + 1, _BLOCK):
        if _taken_by_us(first):
            yield from range(first, first + _BLOCK)
    raise RuntimeError(f"the ports from {_FIRST} to {end} are all given or in use")


def _taken_by_us(block: int) -> bool:
    # An abstract name of Unix sockets belongs to one socket in its network namespace, as a port does.
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0ports-from-{block}")
    except OSError:
        claim.close()
        return False
    claim.detach()  # stays open until the process ends
    return True


def _nobody_listens(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


_ports = _in_blocks()
