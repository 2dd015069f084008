"""Whether a page of muster itself has sent a request, or a page of somebody else. Pure.

A browser adds cookies to requests by itself, also to those that another page makes it send. It says where a request
comes from in headers that no page can set.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

SEC_FETCH_SITE, ORIGIN = "Sec-Fetch-Site", "Origin"


def is_same_origin(headers: Mapping[str, str], host: str, *, is_encrypted: bool) -> bool | None:
    """Whether the request comes from a page at this host; None if no browser says, so it is from a program.

    Browsers send `Sec-Fetch-Site` only over TLS and to loopback. `Origin` has the scheme, which may be https although
    the request is not: a proxy may end TLS without saying so.
    """
    if (site := headers.get(SEC_FETCH_SITE)) is not None:
        return site == "same-origin"
    if (origin := headers.get(ORIGIN)) is None:
        return None
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    schemes = ("https",) if is_encrypted else ("http", "https")
    return parts.scheme in schemes and parts.netloc.lower() == host.lower()
