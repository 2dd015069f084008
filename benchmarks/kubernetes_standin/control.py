"""The orders that a stand-in of another process takes: plain HTTP on loopback, apart from the API itself.

    GET  /requests     the records
    POST /faults       the fields of an Order
    POST /watches/end  {"expired"}: ends all watches
    POST /forget       {}: forgets the past
    POST /users        {"name", "roles"}: gives the paths of the user's `kubeconfig` and `service_account`

Bodies and answers are JSON. `child` is the other end.
"""

from dataclasses import asdict

from aiohttp import web
from benchmarks.kubernetes_standin.faults import Fault
from benchmarks.kubernetes_standin.server import StandIn


class Control:
    """Listens for as long as its context lasts."""

    def __init__(self, standin: StandIn) -> None:
        self._standin = standin
        self.url = ""

    async def __aenter__(self) -> "Control":
        app = web.Application()
        app.router.add_get("/requests", self._requests)
        app.router.add_post("/faults", self._order)
        app.router.add_post("/watches/end", self._end_watches)
        app.router.add_post("/forget", self._forget)
        app.router.add_post("/users", self._add_user)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _requests(self, _: web.Request) -> web.Response:
        return web.json_response([asdict(request) for request in self._standin.requests])

    async def _order(self, request: web.Request) -> web.Response:
        order = await request.json()
        self._standin.order(Fault(order.pop("fault")), **order)
        return web.json_response(None)

    async def _end_watches(self, request: web.Request) -> web.Response:
        self._standin.watches.end(expired=(await request.json())["expired"])
        return web.json_response(None)

    async def _forget(self, _: web.Request) -> web.Response:
        self._standin.store.forget()
        return web.json_response(None)

    async def _add_user(self, request: web.Request) -> web.Response:
        user = await request.json()
        name = self._standin.add_user(user["name"], *user["roles"]).name
        files = {"kubeconfig": self._standin.kubeconfig(name), "service_account": self._standin.service_account(name)}
        return web.json_response({what: str(path) for what, path in files.items()})
