"""The pages about acceptances, and the methods that make them."""

import asyncio
from collections.abc import Iterable
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from muster.model import Verdict
from muster_coordinator.model.acceptance_records import AcceptanceFilter, AcceptanceRecord
from muster_coordinator.store.acceptance_reports import AcceptanceReports
from muster_coordinator.views.pages.acceptance_list import PAGE_SIZE, VERDICTS, AcceptanceList
from muster_coordinator.views.pages.acceptance_page import acceptance_page
from muster_coordinator.web.acceptance import find_acceptance
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.response import page_response, root_of
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.requests import NoQuery, Request, query

MOST_TEXT = 253


class AcceptanceListQuery(Request):
    """The acceptances to show; empty fields of the form count as none."""

    node: str = Field("", max_length=MOST_TEXT)
    verdict: Verdict | Literal[""] = ""
    suite: str = Field("", max_length=MOST_TEXT)
    cursor: str | None = None

    def filter(self) -> AcceptanceFilter:
        node, suite = self.node.strip(), self.suite.strip()
        return AcceptanceFilter(node=node or None, verdict=self.verdict or None, suite=suite or None)


class AcceptancePages:
    """Makes the pages of what `reader` reads."""

    def __init__(self, reader: FleetReader) -> None:
        self._reader = reader
        self._reports = AcceptanceReports(reader.store.database)

    def routes(self) -> list[web.RouteDef]:
        """The pages."""
        return [web.get("/acceptance", self.list), web.get("/acceptance/{report}", self.report)]

    async def list(self, request: web.Request) -> web.Response:
        """The acceptances that fit the filter, the latest received first."""
        asked = query(request, AcceptanceListQuery)
        wanted = asked.filter()
        found = await self._reports.page(wanted, PAGE_SIZE, asked.cursor)
        page = AcceptanceList(
            at=self._reader.pipeline.clock(),
            wanted=wanted,
            items=found.items,
            is_first=asked.cursor is None,
            next_cursor=found.next_cursor,
        )
        shell = self._shell(request, [name for item in page.items for name in item.failed_nodes])
        return page_response(await asyncio.to_thread(render, "acceptances", page=page, verdicts=VERDICTS, **shell))

    async def report(self, request: web.Request) -> web.Response:
        """One acceptance with its report."""
        query(request, NoQuery)
        record = await find_acceptance(self._reports, request.match_info["report"])
        at, shell = self._reader.pipeline.clock(), self._shell(request, [node.name for node in record.report.nodes])
        return page_response(await asyncio.to_thread(_rendered, record, at, shell))

    def _shell(self, request: web.Request, names: Iterable[str]) -> dict[str, Any]:
        fleet = self._reader.pipeline.fleet
        return {"root": root_of(request), "fleet": fleet.name, "known": {*filter(fleet.remembers, names)}}


def _rendered(record: AcceptanceRecord, at: float, shell: dict[str, Any]) -> str:
    return render("acceptance", page=acceptance_page(record, at), **shell)
