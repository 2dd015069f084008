"""Addresses as people write them, and which of them are this machine."""

from ipaddress import ip_address

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def is_loopback_host(host: str) -> bool:
    """Whether a host, given by name or address, is the loopback of this machine; False for other names."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def split_address(address: str) -> tuple[str, int]:
    """`host:port` as a pair; ValueError when it is not one. IPv6 hosts stand in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{address!r} is not host:port, for example 127.0.0.1:8080")
    return possible_host(host.strip("[]")), int(port)


def possible_host(host: str) -> str:
    """The host unchanged; ValueError when it cannot be the name or address of a host."""
    try:
        host.encode("idna")
    except UnicodeError:
        is_possible = False
    else:
        is_possible = not set(host) & set("/@?#")
    if not is_possible:
        raise ValueError(f"{host!r} is neither the name nor the address of a host")
    return host


def is_loopback(address: str) -> bool:
    """Whether `host:port` can be reached from this machine only."""
    return split_address(address)[0] in LOOPBACK
