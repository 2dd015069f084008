"""The forms about sweeps: plan one, start it, end it."""

import asyncio

from aiohttp import web
from pydantic import Field

from muster.model import Name
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.views.sweeps.forecast_text import forecast_text
from muster_coordinator.web.guard import CALLER
from muster_coordinator.web.operations import Operations
from muster_coordinator.web.pages.account import Operator
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.login_pages import see_other
from muster_coordinator.web.pages.response import page_response, root_of
from muster_coordinator.web.pages.templates import render, sweep_path
from muster_coordinator.web.requests import MOST_SELECTION, NoQuery, Request, form, query
from muster_coordinator.web.sweep_lookup import find_sweep


class SweepForm(Request):
    """A sweep as the form asks for it; the API takes more. Without a selection all nodes take part."""

    check: Name
    select: str | None = Field(None, max_length=MOST_SELECTION)
    strategy: Strategy | None = None
    max_parallel: str | None = Field(None, max_length=20)

    def request(self) -> SweepRequest:
        return SweepRequest(**self.model_dump(exclude_none=True))


class SweepActions:
    """Carries out what the forms ask for."""

    def __init__(self, operations: Operations, reader: FleetReader) -> None:
        self._operations = operations
        self._reader = reader

    def routes(self) -> list[web.RouteDef]:
        """The routes that the forms are sent to."""
        return [
            web.post("/sweeps", self.start),
            web.post("/sweeps/plan", self.plan),
            web.post("/sweeps/{sweep}/abort", self.abort),
        ]

    async def plan(self, request: web.Request) -> web.Response:
        """What the sweep would do and cost, with the way to start it. Nothing is started."""
        query(request, NoQuery)
        wanted = await form(request, SweepForm)
        fleet = self._operations.pipeline.fleet
        forecast = fleet.forecast(wanted.request())
        html = await asyncio.to_thread(
            render,
            "sweep_plan",
            root=root_of(request),
            fleet=fleet.name,
            at=self._operations.pipeline.clock(),
            is_current=self._reader.is_current,
            wanted=wanted,
            text=forecast_text(forecast),
            operator=Operator.of(request),
        )
        return page_response(html)

    async def start(self, request: web.Request) -> web.Response:
        """Starts the sweep and leads to its page."""
        query(request, NoQuery)
        wanted = await form(request, SweepForm)
        sweep = await self._operations.start_sweep(wanted.request(), request[CALLER].name)
        return see_other(root_of(request) + sweep_path(sweep))

    async def abort(self, request: web.Request) -> web.Response:
        """Ends the sweep and leads back to its page."""
        query(request, NoQuery)
        await form(request, NoQuery)
        sweep = await find_sweep(self._reader.store, request.match_info["sweep"])
        if sweep.ended_at is None:
            await self._operations.abort_sweep(sweep.id, request[CALLER].name)
        return see_other(root_of(request) + sweep_path(sweep.id))
