"""The pages about sweeps, and the methods that make them."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from aiohttp import web
from pydantic import Field

from muster.errors import Refused
from muster.model import Name, Topology
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.pages.selection_link import neighbours
from muster_coordinator.views.pages.sweep_page import sweep_page
from muster_coordinator.views.pages.sweep_table import PAGE_SIZE, sweep_table
from muster_coordinator.views.sweeps.explanation import explain
from muster_coordinator.web.pages.account import Operator
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.response import page_response, root_of
from muster_coordinator.web.pages.sweep_form import SweepFields
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.requests import Request, query
from muster_coordinator.web.sweep_lookup import find_sweep

MOST_NAME = 253
"""Characters of the name of a node."""


class SweepTableQuery(SweepFields):
    """The page of the sweeps, as the API takes it, and what its form says already."""

    cursor: str | None = None
    near: Name | None = Field(None, alias="with", description="The node with whose neighbours a sweep is to be started")


class SweepPageQuery(Request):
    """The node for which the sweep is explained; an empty field of the form counts as none."""

    why: str = Field("", max_length=MOST_NAME)


class SweepPages:
    """Makes the pages of what `reader` reads."""

    def __init__(self, reader: FleetReader) -> None:
        self._reader = reader

    def routes(self) -> list[web.RouteDef]:
        """The pages."""
        return [web.get("/sweeps", self.sweeps), web.get("/sweeps/{sweep}", self.sweep)]

    async def sweeps(self, request: web.Request) -> web.Response:
        """The running sweeps, then those that have ended, the latest first."""
        wanted = query(request, SweepTableQuery)
        fleet = self._reader.pipeline.fleet
        near = None if wanted.near is None else fleet.node(wanted.near, self._reader.pipeline.clock())
        fields = wanted if near is None else wanted.model_copy(update={"select": neighbours(near)})
        return page_response(await self._table(request, fields, cursor=wanted.cursor))

    async def refused(self, request: web.Request, fields: SweepFields, reason: str) -> web.Response:
        """The page with the form as it was sent, and the reason why it was refused."""
        html = await self._table(request, fields, refused=reason)
        return page_response(html, HTTPStatus.UNPROCESSABLE_ENTITY)

    async def sweep(self, request: web.Request) -> web.Response:
        """One sweep: its verdict and culprits, its rounds and pairs, and the reason for one node if it is named."""
        asked_why = query(request, SweepPageQuery).why.strip()
        fleet, at = self._reader.pipeline.fleet, self._reader.pipeline.clock()
        record = await find_sweep(self._reader.store, request.match_info["sweep"])
        places, shell = fleet.places(record.nodes), self._shell(request)
        # In a thread: the page of a sweep of 1,000 nodes takes a second.
        html, status = await asyncio.to_thread(_rendered, record, places, asked_why, at, shell)
        return page_response(html, status)

    async def _table(
        self, request: web.Request, fields: SweepFields, *, cursor: str | None = None, refused: str = ""
    ) -> str:
        fleet = self._reader.pipeline.fleet
        latest = await self._reader.store.sweeps(PAGE_SIZE, cursor)
        is_first = cursor is None
        table = sweep_table(
            fleet.sweeps() if is_first else (),
            latest.items,
            at=self._reader.pipeline.clock(),
            is_first=is_first,
            next_cursor=latest.next_cursor,
        )
        form = {"fields": fields, "checks": sorted(fleet.offered_checks), "strategies": tuple(Strategy)}
        shell = self._shell(request)
        return await asyncio.to_thread(render, "sweeps", table=table, **form, refused=refused, **shell)

    def _shell(self, request: web.Request) -> Mapping[str, Any]:
        """What the frame of a page needs."""
        reader = self._reader
        values = {"root": root_of(request), "fleet": reader.pipeline.fleet.name, "is_current": reader.is_current}
        return {**values, "operator": Operator.of(request)}


def _rendered(
    record: SweepRecord, places: Mapping[str, Topology], asked_why: str, at: float, shell: Mapping[str, Any]
) -> tuple[str, HTTPStatus]:
    why, refused = None, ""
    try:
        why = explain(record, asked_why, places) if asked_why else None
    except Refused as error:
        refused = str(error)
    page = sweep_page(record, places, at=at, why=why, asked_why=asked_why, refused=refused)
    return render("sweep", page=page, **shell), HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.OK
