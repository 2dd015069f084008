"""Checks whether a Prepare describes a possible group. It repeats what other members announced, and these may lie.

The agent declines an impossible place before it claims the node and spawns ranks. A possible place may still be wrong:
if the address of rank 0 belongs to something else, the ranks of this node fail, and nothing else happens.
"""

import ipaddress
import re
from ipaddress import IPv4Address, IPv6Address

from muster.wire.messages import Prepare
from muster_agent.decide.plan import Unfit

MOST_RANKS = 1 << 18
"""More devices than the largest clusters have (some 200,000 in 2025). A rank names every other one when it joins them,
for which it takes 100 MB of memory with so many."""

MOST_CHARACTERS = 253
"""Of a host name (RFC 1035)."""

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"({_LABEL}\.)*(?![0-9]+\.?$|0[xX])({_LABEL})\.?")
"""A host name. If its last label is a number, it is another notation of an IPv4 address, such as 127.1."""


def require_possible(prepare: Prepare, ranks: int, own_address: str) -> None:
    """Raises Unfit if no group can give this node's `ranks` ranks this place, or have its rank 0 at this address."""
    last = prepare.first_rank + ranks - 1
    if not (prepare.first_rank >= 0 and last < prepare.world_size <= MOST_RANKS):
        given = f"ranks {prepare.first_rank} to {last} in a world of {prepare.world_size}"
        raise Unfit(
            "bad_place", f"{given}: ranks start at 0 and end below the world size, which is at most {MOST_RANKS}"
        )
    if problem := _address_problem(prepare.master_addr, own_address if prepare.first_rank else None):
        raise Unfit("unreachable", f"rank 0 is at {prepare.master_addr[:MOST_CHARACTERS]!r}: {problem}")
    if not 1 <= prepare.master_port <= 65535:
        raise Unfit("unreachable", f"rank 0 is at port {prepare.master_port}; ports are 1 to 65535")


def _address_problem(address: str, own_address: str | None) -> str | None:
    """Why rank 0 cannot be there; `own_address` is None if this node has rank 0."""
    host = _parsed(address)
    if host is None and not (len(address) <= MOST_CHARACTERS and _NAME.fullmatch(address)):
        return "not an IP address or a host name"
    if host is not None and (host.is_unspecified or host.is_multicast):
        return "not the address of one host"
    if own_address is not None and _is_loopback(address) and not _is_loopback(own_address):
        return "that is this node, but another node has rank 0"
    return None


def _is_loopback(address: str) -> bool:
    host = _parsed(address)
    return address.lower().removesuffix(".") == "localhost" if host is None else host.is_loopback


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    """The IP address, as IPv4 if it is one that is mapped into IPv6; None for a name."""
    try:
        host = ipaddress.ip_address(address)
    except ValueError:
        return None
    return host.ipv4_mapped or host if isinstance(host, IPv6Address) else host
