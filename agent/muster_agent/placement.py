"""Whether a group can be as an order says: what other members announced stands in it, and one of them may lie.

An impossible place is declined before the node is claimed and anything is spawned. What a possible one leads to, such
as a rank 0 that is no store, ends the ranks and harms nothing else.
"""

import ipaddress
import re
from ipaddress import IPv4Address, IPv6Address

from muster.wire.messages import Prepare
from muster_agent.plan import Unfit

MOST_RANKS = 1 << 18
"""More devices than the largest clusters have (some 200,000 in 2025). A rank names every other one when it joins them,
for which it takes 100 MB of memory with so many."""

MOST_CHARACTERS = 253
"""Of a host name (RFC 1035)."""

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"({_LABEL}\.)*(?![0-9]+\.?$|0[xX])({_LABEL})\.?")
"""A host's name. One whose last label is a number is another way to write an IPv4 address, as 127.1 is."""


def must_be_possible(prepare: Prepare, ranks: int, own_address: str) -> None:
    """Unfit when no group gives `ranks` ranks of this node such a place, or has its rank 0 at such an address."""
    last = prepare.first_rank + ranks - 1
    if not (prepare.first_rank >= 0 and last < prepare.world_size <= MOST_RANKS):
        given = f"ranks {prepare.first_rank} to {last} in a world of {prepare.world_size}"
        raise Unfit("bad_place", f"{given}: no rank may be below 0 or beyond the world, which has at most {MOST_RANKS}")
    if problem := _problem_of(prepare.master_addr, own_address if prepare.first_rank else None):
        raise Unfit("unreachable", f"rank 0 is at {prepare.master_addr[:MOST_CHARACTERS]!r}: {problem}")
    if not 1 <= prepare.master_port <= 65535:
        raise Unfit("unreachable", f"rank 0 is at port {prepare.master_port}: there are 1 to 65535")


def _problem_of(address: str, own_address: str | None) -> str | None:
    """Why no other node can be there; `own_address` is None where rank 0 is this node's own."""
    host = _parsed(address)
    if host is None and not (len(address) <= MOST_CHARACTERS and _NAME.fullmatch(address)):
        return "that is neither an IP address nor the name of a host"
    if host is not None and (host.is_unspecified or host.is_multicast):
        return "that is no address of a host"
    if own_address is not None and _is_loopback(address) and not _is_loopback(own_address):
        return "that is this node itself, and rank 0 is another one's"
    return None


def _is_loopback(address: str) -> bool:
    host = _parsed(address)
    return address == "localhost" if host is None else host.is_loopback


def _parsed(address: str) -> IPv4Address | IPv6Address | None:
    """The IP address, in the form of version 4 where it has one; None for a name."""
    try:
        host = ipaddress.ip_address(address)
    except ValueError:
        return None
    return host.ipv4_mapped or host if isinstance(host, IPv6Address) else host
