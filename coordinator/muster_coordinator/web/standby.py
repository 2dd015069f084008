"""What a coordinator that stands by serves: it passes every request on to the leader, but for probes and metrics.

So clients may use any coordinator, and a load balancer need not know which one leads. The leader decides what a request
may do: it gets the tokens and cookies of the client, and the headers of a proxy only if this coordinator trusts that
proxy. While nobody leads, the answer is 503.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from http import HTTPStatus

from aiohttp import ClientConnectionError, ClientError, ClientSession, ClientTimeout, DummyCookieJar, hdrs, web
from multidict import CIMultiDict
from prometheus_client import CONTENT_TYPE_LATEST, Metric, generate_latest
from prometheus_client.registry import Collector
from yarl import URL

from muster import http_server
from muster.config import HttpSettings
from muster.connections import NO_ROOM, Connections, most_connections
from muster_coordinator.runtime.metric_families import LEADS, gauge
from muster_coordinator.web.guard import PROBES
from muster_coordinator.web.problems import Problem, as_problems
from muster_coordinator.web.proxies import ROLE, USER, TrustedProxies
from muster_coordinator.web.requests import read_body
from muster_coordinator.web.server import MOST_BODY_BYTES, MOST_CONNECTIONS

PASSED_ON = "X-Muster-Passed-On"
"""Marks a request that a standby has passed on. Another standby does not pass it on again."""

OF_ONE_CONNECTION = frozenset(
    {
        "connection",
        "content-length",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say something about one connection only (RFC 9110, 7.6.1), or that aiohttp writes itself."""

OF_PROXIES = frozenset({USER.lower(), ROLE.lower(), "x-forwarded-host", "x-forwarded-proto"})

CONNECTED_WITHIN_S = 3.0

NOBODY = "no coordinator leads this fleet at the moment; one takes over within seconds"

METRICS = "/metrics"

LEADER = web.AppKey("leader", ClientSession)


class OwnMetrics(Collector):
    """What a standby tells Prometheus."""

    def collect(self) -> Iterator[Metric]:
        yield gauge(*LEADS, 0)


def standby_application(leader_url: Callable[[], str | None], http: HttpSettings) -> web.Application:
    """The application of a standby. `leader_url` returns the URL of the leader's API, None if nobody leads."""
    connections = Connections("http.listen", most_connections(MOST_CONNECTIONS), refusal=NO_ROOM)
    app = http_server.application(connections, [as_problems], most_body_bytes=MOST_BODY_BYTES)
    app.cleanup_ctx.append(_session)
    proxies = TrustedProxies.of(http.trusted_proxies)

    async def pass_on(request: web.Request) -> web.StreamResponse:
        url = leader_url()
        if request.path in PROBES:
            return web.json_response({"status": "standby", "leader": url})
        if request.path == METRICS:  # with those of the leader, sums over all coordinators would count it twice
            return web.Response(body=generate_latest(OwnMetrics()), headers={"Content-Type": CONTENT_TYPE_LATEST})
        if url is None or PASSED_ON in request.headers:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, NOBODY, Retry_After="2")
        return await _passed_on(request, URL(url), proxies)

    app.router.add_route(hdrs.METH_ANY, "/{path:.*}", pass_on)
    return app


async def _session(app: web.Application) -> AsyncIterator[None]:
    timeout = ClientTimeout(total=None, connect=CONNECTED_WITHIN_S)
    async with ClientSession(auto_decompress=False, cookie_jar=DummyCookieJar(), timeout=timeout) as session:
        app[LEADER] = session
        yield


async def _passed_on(request: web.Request, leader: URL, proxies: TrustedProxies) -> web.StreamResponse:
    """The leader's answer, piece by piece as it comes."""
    left_out = OF_ONE_CONNECTION if proxies.has_sent(request) else OF_ONE_CONNECTION | OF_PROXIES
    headers = _without(request.headers, left_out)
    headers[PASSED_ON] = "1"
    headers[hdrs.X_FORWARDED_FOR] = ", ".join([*headers.getall(hdrs.X_FORWARDED_FOR, []), request.remote or "unknown"])
    body = await read_body(request)
    try:
        answer = await request.app[LEADER].request(
            request.method, leader.join(request.rel_url), headers=headers, data=body, allow_redirects=False
        )
    except ClientConnectionError:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, NOBODY, Retry_After="2") from None
    async with answer:
        kept = _without(answer.headers, OF_ONE_CONNECTION)
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=kept)
        await response.prepare(request)
        try:
            async for part in answer.content.iter_any():
                await response.write(part)
        except ClientError:  # the leader has ended; the client sees that the answer is not complete
            if request.transport is not None:
                request.transport.abort()
    return response


def _without(headers: Mapping[str, str], left_out: frozenset[str]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)
