"""The forms of a node's page: hold it, release it, run one of its checks."""

from http import HTTPStatus

from aiohttp import web
from pydantic import Field

from muster.errors import unknown
from muster.model import Name
from muster_coordinator.web.guard import named_requester, requester
from muster_coordinator.web.operations import Operations
from muster_coordinator.web.pages.login_pages import see_other
from muster_coordinator.web.pages.response import root_of
from muster_coordinator.web.pages.templates import node_path
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import Decision, NoQuery, Release, Request, form, query

DONE = {
    "held": "The node stays as it is until it is released.",
    "released": "The node is released. If it is out of service, it returns after its tests.",
    "returned": "The node is released and returns to service without tests.",
    "run": "The run is requested. It appears below when it has ended.",
}
"""What was done, by the word that the page gets in its URL afterwards."""


class RunForm(Request):
    """The check to run, with its usual parameters."""

    check: Name = Field()


class NodeActions:
    """Carries out what the forms ask for, and leads back to the node's page."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def routes(self) -> list[web.RouteDef]:
        """The routes that the forms are sent to."""
        return [
            web.post("/nodes/{node}/hold", self.hold),
            web.post("/nodes/{node}/release", self.release),
            web.post("/nodes/{node}/runs", self.run),
        ]

    async def hold(self, request: web.Request) -> web.Response:
        """Keeps the node as it is."""
        node = self._node(request)
        said = await form(request, Decision)
        await self._operations.hold(node, named_requester(request, said.by), said.reason)
        return _back(request, node, "held")

    async def release(self, request: web.Request) -> web.Response:
        """Ends a hold, and lets a drained node return."""
        node = self._node(request)
        said = await form(request, Release)
        who = named_requester(request, said.by)
        await self._operations.release(node, who, said.reason, untested=said.untested)
        return _back(request, node, "returned" if said.untested else "released")

    async def run(self, request: web.Request) -> web.Response:
        """Runs a check of the node now."""
        node = self._node(request)
        said = await form(request, RunForm)
        await self._operations.start_run(node, said.check, {}, requester(request))
        return _back(request, node, "run")

    def _node(self, request: web.Request) -> str:
        query(request, NoQuery)
        node, fleet = request.match_info["node"], self._operations.pipeline.fleet
        if fleet.case(node) is None:
            raise Problem(HTTPStatus.NOT_FOUND, unknown("node", node, fleet.names))
        return node


def _back(request: web.Request, node: str, done: str) -> web.Response:
    return see_other(f"{root_of(request)}{node_path(node)}?done={done}")
