"""What a trusted proxy says about a request: who has logged in at it, and how the browser has reached it.

The headers count only if the connection comes from one of `http.trusted_proxies`. Anybody else could write them, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import hdrs, web

from muster_coordinator.web.problems import Problem
from muster_coordinator.web.sessions import Right

USER, ROLE = "X-Muster-User", "X-Muster-Role"
"""The headers with the name of the person who has logged in at the proxy, and with what that person may do."""

ROLES = {"read": Right.READ, "operate": Right.CHANGE}

MOST_CHARACTERS_OF_A_NAME = 500


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """The networks whose addresses are those of trusted proxies."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of(cls, networks: Sequence[str]) -> "TrustedProxies":
        return cls(tuple(map(ip_network, networks)))

    def has_sent(self, request: web.Request) -> bool:
        """Whether a request comes from a trusted proxy."""
        try:
            address = ip_address(request.remote or "")
        except ValueError:  # no address, such as of a client that has disconnected already
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)

    def user(self, request: web.Request) -> tuple[str, Right] | None:
        """Who has logged in at the proxy, and what that person may do: to read, unless the proxy says more.

        None if nobody has, or if the request comes from elsewhere. Raises a Problem for headers that make no sense.
        """
        if USER not in request.headers or not self.has_sent(request):
            return None
        name, role = _only(request, USER), _only(request, ROLE) or "read"
        if not name or not name.isprintable() or len(name) > MOST_CHARACTERS_OF_A_NAME:
            raise Problem(HTTPStatus.FORBIDDEN, f"{USER}: must be one line of text; correct the proxy's configuration")
        if role not in ROLES:
            raise Problem(
                HTTPStatus.FORBIDDEN, f"{ROLE}: must be {' or '.join(ROLES)} (got {role!r}); correct the proxy"
            )
        return name, ROLES[role]

    def is_encrypted(self, request: web.Request) -> bool:
        """Whether the browser uses TLS, to us or to a trusted proxy."""
        return request.secure or (self.has_sent(request) and request.headers.get(hdrs.X_FORWARDED_PROTO) == "https")

    def host(self, request: web.Request) -> str:
        """The host and port that the browser has in its address bar."""
        forwarded = request.headers.get(hdrs.X_FORWARDED_HOST) if self.has_sent(request) else None
        return forwarded or request.host


NO_PROXIES = TrustedProxies()


def _only(request: web.Request, header: str) -> str:
    """The value of a header. A second one may be the client's own, which the proxy should have removed."""
    values = request.headers.getall(header, [])
    if len(values) > 1:
        raise Problem(HTTPStatus.FORBIDDEN, f"{header}: is given more than once; the proxy must replace what it gets")
    return values[0].strip() if values else ""
