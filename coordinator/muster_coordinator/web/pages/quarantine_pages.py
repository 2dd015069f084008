"""The page of the quarantine, and the method that makes it."""

import asyncio
from functools import partial

from aiohttp import web

from muster_coordinator.views.pages.quarantine_page import QuarantineFacts, quarantine_page
from muster_coordinator.web.guard import named_requester
from muster_coordinator.web.operations import Operations
from muster_coordinator.web.pages.account import Operator
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.login_pages import see_other
from muster_coordinator.web.pages.response import ROOT, page_response, root_of
from muster_coordinator.web.pages.shared_page import SharedPage
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.requests import Decision, NoQuery, form, query


class QuarantinePages:
    """Makes the page of what `reader` reads."""

    def __init__(self, reader: FleetReader, operations: Operations) -> None:
        self._reader = reader
        self._operations = operations
        self._pages: dict[Operator, SharedPage] = {}

    def routes(self) -> list[web.RouteDef]:
        """The page."""
        return [web.get("/quarantine", self.quarantine), web.post("/quarantine/unfreeze", self.unfreeze)]

    async def quarantine(self, request: web.Request) -> web.Response:
        """The budget, the nodes that are out or should be and why, what actors do, and the latest decisions."""
        query(request, NoQuery)
        operator = Operator.of(request)
        page = self._pages.setdefault(operator, SharedPage(partial(self._make, operator)))
        return page_response(await page.get())

    async def unfreeze(self, request: web.Request) -> web.Response:
        """Lifts a mass-event freeze, as the form asks for it."""
        query(request, NoQuery)
        said = await form(request, Decision)
        await self._operations.unfreeze(named_requester(request, said.by), said.reason)
        return see_other(f"{root_of(request)}quarantine")

    async def _make(self, operator: Operator) -> str:
        facts, reader = await self._reader.quarantine_facts(), self._reader
        fleet, is_current = reader.pipeline.fleet.name, reader.is_current
        return await asyncio.to_thread(rendered, fleet, facts, operator, is_current=is_current)


def rendered(fleet: str, facts: QuarantineFacts, operator: Operator, *, is_current: bool) -> str:
    """The page of the quarantine with these facts."""
    page = quarantine_page(facts)
    return render("quarantine", root=ROOT, fleet=fleet, is_current=is_current, page=page, operator=operator)
