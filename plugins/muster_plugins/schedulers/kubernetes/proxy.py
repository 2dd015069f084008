"""The proxy for a server, from the environment: HTTPS_PROXY, HTTP_PROXY and NO_PROXY."""

from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_for(url: str) -> str | None:
    """The proxy; None if the server is asked directly."""
    parts, proxies = urlsplit(url), getproxies()
    host = parts.hostname or ""
    if proxy_bypass(host) or _is_in_a_network(host, proxies.get("no", "")):
        return None
    return proxies.get(parts.scheme)


def _is_in_a_network(host: str, exceptions: str) -> bool:
    """Whether an address is in a network of NO_PROXY. The standard library supports only names there."""
    return any(_contains(network.strip(), host) for network in exceptions.split(",") if "/" in network)


def _contains(network: str, host: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
