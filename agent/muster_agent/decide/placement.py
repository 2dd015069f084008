"""Checks whether a Prepare describes a possible group. Its content comes from other members, which may lie.

The agent declines an impossible placement before it claims the node and starts ranks. A possible placement may still be
wrong. If the address of rank 0 belongs to another program, the ranks of this node fail and nothing else happens.
"""

import ipaddress
import re
from ipaddress import IPv4Address, IPv6Address

from muster.wire.messages import Prepare
from muster_agent.decide.plan import CannotRun

MOST_RANKS = 1 << 18
"""Maximum number of ranks, above the devices of the largest clusters (about 200,000 in 2025).

A rank that joins a group lists all others, which takes 100 MB of memory for this number.
"""

MOST_CHARACTERS = 253
"""The longest host name (RFC 1035)."""

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"({_LABEL}\.)*(?![0-9]+\.?$|0[xX])({_LABEL})\.?")
"""A host name. Its last label is no number: 127.1, for example, is another way to write an IPv4 address."""


def require_possible(prepare: Prepare, ranks: int, own_address: str) -> None:
    """Raises CannotRun if no group can have this node's `ranks` ranks there, or its rank 0 at that address."""
    last = prepare.first_rank + ranks - 1
    if not (prepare.first_rank >= 0 and last < prepare.world_size <= MOST_RANKS):
        given = f"ranks {prepare.first_rank} to {last} in a world of {prepare.world_size}"
        raise CannotRun(
            "bad_place", f"{given}: ranks start at 0 and end below the world size, which is at most {MOST_RANKS}"
        )
    if problem := _address_problem(prepare.master_addr, own_address if prepare.first_rank else None):
        raise CannotRun("unreachable", f"rank 0 is at {prepare.master_addr[:MOST_CHARACTERS]!r}: {problem}")
    if not 1 <= prepare.master_port <= 65535:
        raise CannotRun("unreachable", f"rank 0 is at port {prepare.master_port}; ports are 1 to 65535")


def _address_problem(address: str, own_address: str | None) -> str | None:
    """Why rank 0 cannot be at `address`, or None. `own_address` is None if this node has rank 0."""
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
    """The IP address, or None for a name. An IPv4 address that is mapped into IPv6 comes back as IPv4."""
    try:
        host = ipaddress.ip_address(address)
    except ValueError:
        return None
    return host.ipv4_mapped or host if isinstance(host, IPv6Address) else host
