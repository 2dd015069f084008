"""The page of the quarantine, and the method that makes it."""

import asyncio

from aiohttp import web

from muster_coordinator.views.pages.quarantine_page import QuarantineFacts, quarantine_page
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.response import ROOT, page_response
from muster_coordinator.web.pages.shared_page import SharedPage
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.requests import NoQuery, query


class QuarantinePages:
    """Makes the page of what `reader` reads."""

    def __init__(self, reader: FleetReader) -> None:
        self._reader = reader
        self._page = SharedPage(self._make)

    def routes(self) -> list[web.RouteDef]:
        """The page."""
        return [web.get("/quarantine", self.quarantine)]

    async def quarantine(self, request: web.Request) -> web.Response:
        """The budget, the nodes that are out or should be and why, what actors do, and the latest decisions."""
        query(request, NoQuery)
        return page_response(await self._page.get())

    async def _make(self) -> str:
        facts = await self._reader.quarantine_facts()
        return await asyncio.to_thread(
            rendered, self._reader.pipeline.fleet.name, facts, is_current=self._reader.is_current
        )


def rendered(fleet: str, facts: QuarantineFacts, *, is_current: bool) -> str:
    """The page of the quarantine with these facts."""
    return render("quarantine", root=ROOT, fleet=fleet, is_current=is_current, page=quarantine_page(facts))
