"""The signer: a small HTTPS server that gives each agent a certificate in the name of its node.

It holds the authority's key. Only the public key in a certificate comes from the client. Limits bound what one node can
use of the signer: one request at a time for each address, and few bytes for each request.
"""

import asyncio
import json
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from aiohttp import web

from muster import http_server
from muster.addresses import split_address
from muster.connections import NO_ROOM, Connections, most_connections
from muster.errors import SettingsError, Unavailable
from muster_plugins.schedulers.kubernetes.api import ApiServer, Unanswered
from muster_plugins.schedulers.kubernetes.calls import REVIEW_TOKEN
from muster_plugins.schedulers.kubernetes.enrolment.applicant import NotEntitled, node_of, review_of
from muster_plugins.schedulers.kubernetes.enrolment.authority import Authority, NoSuchKey, utc_now

PATH = "/v1/certificate"

MOST_BYTES = 4096
"""Maximum size of a request's body. A public key on P-256 takes 178 bytes in PEM."""

REVIEWS_AT_ONCE = 8
"""How many token reviews run at a time. On two busy cores, the signer serves 115 agents a second (measured with the
stand-in of the API server): ten thousand agents take a minute and a half."""

MOST_WAITING = 256
"""How many requests may wait; further ones are told to retry."""

MOST_CONNECTIONS = 2 * MOST_WAITING
"""Maximum number of connections: those that wait for an answer, and as many that have not asked yet."""

ANSWERED_WITHIN_S = 25.0
"""Shorter than an agent waits for an answer. A client that sends slowly occupies a place for no longer than this."""

PAUSE_S = 1.0
"""How long an address must wait after an answer. A node needs one or two answers a day."""

RETRY_AFTER_S = 5

log = structlog.get_logger()

Review = Callable[[str], bytes]


class Signer:
    """Answers requests; `review` asks the API server about a token, and may block or raise Unanswered."""

    def __init__(self, authority: Authority, review: Review, *, pause_s: float = PAUSE_S) -> None:
        self._authority = authority
        self._review = review
        self._pause_s = pause_s
        self._turns = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._waiting = 0
        self._recent: set[str] = set()

    def application(self) -> web.Application:
        connections = Connections("--listen", most_connections(MOST_CONNECTIONS), refusal=NO_ROOM)
        app = http_server.application(connections, most_body_bytes=MOST_BYTES)
        app.router.add_post(PATH, self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.Response:
        address = request.remote or ""
        if address in self._recent or self._waiting >= MOST_WAITING:
            return _refusal(429, "too many requests: retry later", retry=True)
        self._recent.add(address)
        self._waiting += 1
        try:
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                return await self._certify(request, address)
        except TimeoutError:
            return _refusal(503, f"no answer within {ANSWERED_WITHIN_S:g} s", retry=True)
        finally:
            self._waiting -= 1
            asyncio.get_running_loop().call_later(self._pause_s, self._recent.discard, address)

    async def _certify(self, request: web.Request, address: str) -> web.Response:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if kind != "Bearer" or not token:
            return _refusal(401, "no token: send it as `Authorization: Bearer TOKEN`")
        public_key = await request.read()
        try:
            async with self._turns:
                review = await asyncio.to_thread(self._review, token)
            node = node_of(review)
            certificate = self._authority.issue(node, public_key, utc_now())
        except Unanswered as error:
            log.warning("token_not_reviewed", error=str(error))
            return _refusal(503, "the API server does not answer the signer: retry later", retry=True)
        except NotEntitled as error:
            log.warning("certificate_refused", address=address, reason=str(error))
            return _refusal(403, str(error))
        except NoSuchKey as error:
            log.warning("certificate_refused", address=address, node=node, reason=str(error))
            return _refusal(400, str(error))
        log.info("certificate_issued", node=node, address=address)
        return web.Response(body=certificate, content_type="application/x-pem-file")


def token_review(server: ApiServer) -> Review:
    """The review that asks this API server about a token."""
    return lambda token: server.post(REVIEW_TOKEN.path, review_of(token))


@asynccontextmanager
async def serving(signer: Signer, listen: str, tls: Path) -> AsyncIterator[str]:
    """Serves on `listen` (host:port) with the certificate in `tls`; gives the URL. Raises what `serve` raises."""
    host, _ = split_address(listen)
    context = _server_context(tls)
    try:
        listener = http_server.listening_socket(listen)
    except OSError as error:
        raise Unavailable(f"--listen: cannot listen on {listen}: {error.strerror}; give another address") from None
    with listener:
        async with http_server.serving(signer.application(), listener, context):
            yield f"https://{host}:{listener.getsockname()[1]}"


async def serve(signer: Signer, listen: str, tls: Path) -> None:
    """Serves until SIGINT or SIGTERM; SettingsError or Unavailable if it cannot start."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(signer, listen, tls) as url:
        log.info("signer_ready", url=url)
        await stop.wait()


def _server_context(tls: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls / "tls.crt", tls / "tls.key")
    except OSError as error:
        raise SettingsError(f"{tls}: cannot use tls.crt and tls.key: {error.strerror or error}") from None
    return context


def _refusal(status: int, text: str, *, retry: bool = False) -> web.Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if retry else {}
    return web.Response(
        status=status, text=json.dumps({"message": text}), content_type="application/json", headers=headers
    )
