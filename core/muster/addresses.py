"""Parses addresses, and says which ones are on this host."""

from ipaddress import ip_address

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def is_loopback_host(host: str) -> bool:
    """Whether a host name or address is the loopback of this host; False for other names."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def broker_urls(value: str) -> list[str]:
    """The brokers of `broker.url`: one, or those of a cluster, divided by commas."""
    return value.split(",")


def split_address(address: str) -> tuple[str, int]:
    """Splits `host:port`; raises ValueError if it is not one. IPv6 hosts are in brackets."""
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdigit() and int(port) <= 65535
    is_in_brackets = host.startswith("[") and host.endswith("]")
    if not host or not is_port or (":" in host) is not is_in_brackets:
        raise ValueError(f"{address!r} is not host:port, for example 127.0.0.1:8080 or [::1]:8080")
    return possible_host(host.strip("[]")), int(port)


def possible_host(host: str) -> str:
    """Returns the host unchanged; raises ValueError if it cannot be a host name or address."""
    try:
        host.encode("idna")
    except UnicodeError:
        is_possible = False
    else:
        is_possible = not set(host) & set("/@?# ")
    if not is_possible:
        raise ValueError(f"{host!r} is neither the name nor the address of a host")
    return host


def is_loopback(address: str) -> bool:
    """Whether `host:port` can be reached from this host only."""
    return split_address(address)[0] in LOOPBACK
