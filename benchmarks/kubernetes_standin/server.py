"""The stand-in as a running server, and what a test or a benchmark does with it in the same process."""

import asyncio
import json
import re
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web
from benchmarks.kubernetes_standin import credentials
from benchmarks.kubernetes_standin.access import CLUSTER_ADMIN, PodToken, Role, User, Users, denied, new_token
from benchmarks.kubernetes_standin.api import VERSION, Call, answer, selection
from benchmarks.kubernetes_standin.faults import Fault, Order, Orders, refusal
from benchmarks.kubernetes_standin.lifecycle import NodeLifecycle
from benchmarks.kubernetes_standin.objects import node, pod
from benchmarks.kubernetes_standin.ownership import Writer
from benchmarks.kubernetes_standin.resources import NODES, PODS, TOKEN_REVIEWS, Object
from benchmarks.kubernetes_standin.statuses import Refused, bad_request, no_such_resource
from benchmarks.kubernetes_standin.store import Store
from benchmarks.kubernetes_standin.target import Target, target_of, verb_of
from benchmarks.kubernetes_standin.watching import Watches

ADMIN = "kubernetes-admin"

MOST_BYTES = 3 << 20
"""Of a request's body, as for kube-apiserver."""


@dataclass
class Request:
    """A request that came, at an instant of `time.monotonic`; `code` is None while it has no answer, or for good.

    `user` is None for whoever has not proved to be somebody, `verb` is RBAC's or else the method.
    """

    at: float
    verb: str
    path: str
    query: dict[str, str]
    user: str | None
    body: Any
    code: int | None = None


class StandIn:
    """A server on loopback that runs for as long as its context lasts; it keeps its port over `stop` and `start`.

    `directory` is for its certificates and for the files of its users.
    """

    def __init__(self, directory: Path) -> None:
        self.store = Store()
        self.watches = Watches(self.store)
        NodeLifecycle(self.store)
        self.orders = Orders()
        self.requests: list[Request] = []
        self.url = ""
        self._users = Users()
        self._directory = directory
        self._certificates = credentials.make_certificates(directory)
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.add_user(ADMIN, CLUSTER_ADMIN)

    async def __aenter__(self) -> "StandIn":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._serve)
        # As in kube-apiserver, who hangs up takes the work along: a slow answer does not outlive its connection.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificates.server, self._certificates.key)
        await web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=context).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"https://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        """Closes every connection and listens no more; objects, users and records stay."""
        if self._runner is not None:
            self.watches.end(expired=False)
            await self._runner.cleanup()
            self._runner = None

    @property
    def authority(self) -> Path:
        """The certificate of who has signed the server's."""
        return self._certificates.authority

    def add_user(self, name: str, *roles: Role) -> User:
        """A user with a token and what ClusterRoles and Roles allow; a Role counts in its own namespace."""
        return self._users.add(name, roles)

    def kubeconfig(self, user: str = ADMIN) -> Path:
        """The user's kubeconfig."""
        path = self._directory / f"{_as_file(user)}.kubeconfig"
        credentials.write_kubeconfig(path, self.url, self.authority, user, self._users.by_name[user].token)
        return path

    def service_account(self, user: str, namespace: str = "muster") -> Path:
        """The directory that Kubernetes mounts into the pods of a service account: token, ca.crt and namespace."""
        directory = self._directory / _as_file(user)
        token = self._users.by_name[user].token
        credentials.write_service_account(directory, self.authority, token, namespace)
        return directory

    def pod_token(self, user: str, node: str, audience: str) -> str:
        """A service account's token for an audience, as a kubelet projects it into a pod on this node."""
        bound = PodToken(user, node, f"pod-on-{node}", audience)
        self._users.pod_tokens.append(bound)
        return bound.token

    def replace_token(self, user: str) -> None:
        """Refuses the user's token from now on. The next `kubeconfig` or `service_account` has the new one."""
        self._users.by_name[user].token = new_token()

    def order(self, fault: Fault, **more: Any) -> None:
        """Orders a fault; `more` are the fields of an Order."""
        self.orders.open.append(Order(fault, **more))

    def add_node(self, name: str, **more: Any) -> None:
        """A node that a kubelet has registered; `more` are the arguments of `objects.node`."""
        self.store.create(NODES, "", node(name, **more), Writer("kubelet", "Update"))

    def add_pod(self, name: str, node: str, **more: Any) -> None:
        """A pod that runs on a node; `more` are the arguments of `objects.pod`."""
        item = pod(name, node, **more)
        self.store.create(PODS, item["metadata"]["namespace"], item, Writer("kube-scheduler", "Update"))

    def node(self, name: str) -> Object:
        """A node as it is now, for nobody to change; Refused when it is not there."""
        return self.store.get(NODES, "", name).item

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        at = time.monotonic()
        target, verb = _named(request)
        body = await request.read()
        entry = Request(at, verb, request.path, dict(request.query), None, _decoded(body))
        self.requests.append(entry)
        order = self.orders.next_for(verb, request.path)
        fault = order.fault if order else None
        if fault is Fault.DROPPED_BEFORE:
            return _dropped(request)
        try:
            response = await self._answered(request, entry, target, body, order)
        except Refused as refused:
            entry.code = refused.code
            return _refusal(refused)
        if order and fault is Fault.SLOW:
            await asyncio.sleep(order.seconds)
        if fault is Fault.DROPPED_AFTER:
            return _dropped(request)
        entry.code = response.status
        return response

    async def _answered(
        self, request: web.Request, entry: Request, target: Target | None, body: bytes, order: Order | None
    ) -> web.StreamResponse:
        user = self._users.authenticated(request.headers.get("Authorization"))
        entry.user = user.name
        if order and (refused := refusal(order, target.name if target else "")):
            raise refused
        if order and order.fault is Fault.GARBAGE:
            return web.Response(body=b'{"kind":"Status","apiVersi', content_type="application/json")
        if request.path.rstrip("/") == "/version":
            return web.json_response(VERSION)
        if target is None:
            raise no_such_resource()
        attempt = target.attempt(entry.verb)
        if not user.may(attempt):
            raise denied(user, attempt, target.resource)
        if target.resource is TOKEN_REVIEWS:
            return _token_review(self._users, body)
        agent = request.headers.get("User-Agent", "unknown")
        call = Call(user, target, request.query, request.content_type, agent, body)
        if entry.verb == "watch":
            return await self._watched(request, call, entry)
        code, text = answer(self.store, call, entry.verb)
        return web.Response(status=code, body=text, content_type="application/json")

    async def _watched(self, request: web.Request, call: Call, entry: Request) -> web.StreamResponse:
        version = int(request.query.get("resourceVersion") or 0)
        wanted = selection(call)
        bookmarks = request.query.get("allowWatchBookmarks") in {"1", "true", "True"}
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        entry.code = response.status
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(float(request.query.get("timeoutSeconds") or 1800)):
                async for line in self.watches.lines(wanted, version or None, bookmarks=bookmarks):
                    await response.write(line)
        return response


def _named(request: web.Request) -> tuple[Target | None, str]:
    """What the request is about, if it is about anything, and the verb."""
    try:
        target = target_of(request.path)
        return target, verb_of(request.method, request.query, target)
    except Refused:
        return None, request.method


def _decoded(body: bytes) -> Any:
    """A body for the records: JSON where it is JSON."""
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode(errors="replace")


def _token_review(users: Users, body: bytes) -> web.Response:
    """The review from the request, with its status added."""
    review = _decoded(body)
    if not isinstance(review, dict) or not review.get("spec", {}).get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    spec = review["spec"]
    return web.json_response({**review, "status": users.reviewed(spec["token"], spec.get("audiences", []))}, status=201)


def _refusal(refused: Refused) -> web.Response:
    headers = {} if refused.retry_after_s is None else {"Retry-After": str(refused.retry_after_s)}
    if isinstance(refused.body, str):
        return web.Response(text=refused.body, status=refused.code, headers=headers)
    return web.json_response(refused.body, status=refused.code, headers=headers)


def _dropped(request: web.Request) -> web.Response:
    """Closes the connection; the response goes nowhere."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _as_file(user: str) -> str:
    return re.sub(r"[^\w.-]", "_", user)
