"""Which hosts are this one."""

from ipaddress import ip_address


def is_loopback_host(host: str) -> bool:
    """Whether a host, given by name or address, is the loopback of this machine; False for other names."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
