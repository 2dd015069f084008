"""The forms about sweeps: plan one, start it, end it."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web

from muster.errors import Refused
from muster_coordinator.views.sweeps.forecast_text import forecast_text
from muster_coordinator.web.guard import requester
from muster_coordinator.web.operations import Operations
from muster_coordinator.web.pages.account import Operator
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.login_pages import see_other
from muster_coordinator.web.pages.response import page_response, root_of
from muster_coordinator.web.pages.sweep_form import SweepForm
from muster_coordinator.web.pages.sweep_pages import SweepPages
from muster_coordinator.web.pages.templates import render, sweep_path, sweeps_path
from muster_coordinator.web.requests import NoQuery, form, query
from muster_coordinator.web.sweep_lookup import find_sweep

SweepAnswer = Callable[[web.Request, SweepForm], Awaitable[web.Response]]


class SweepActions:
    """Carries out what the forms ask for."""

    def __init__(self, operations: Operations, reader: FleetReader, pages: SweepPages) -> None:
        self._operations = operations
        self._reader = reader
        self._pages = pages

    def routes(self) -> list[web.RouteDef]:
        """The routes that the forms are sent to."""
        return [
            web.post("/sweeps", self.start),
            web.post("/sweeps/plan", self.plan),
            web.post("/sweeps/{sweep}/abort", self.abort),
        ]

    async def plan(self, request: web.Request) -> web.Response:
        """What the sweep would do and cost, with the way to start it. Nothing is started."""
        return await self._or_the_form_again(request, self._plan)

    async def start(self, request: web.Request) -> web.Response:
        """Starts the sweep and leads to its page."""
        return await self._or_the_form_again(request, self._start)

    async def abort(self, request: web.Request) -> web.Response:
        """Ends the sweep and leads back to its page."""
        query(request, NoQuery)
        await form(request, NoQuery)
        sweep = await find_sweep(self._reader.store, request.match_info["sweep"])
        if sweep.ended_at is None:
            await self._operations.abort_sweep(sweep.id, requester(request))
        return see_other(root_of(request) + sweep_path(sweep.id))

    async def _or_the_form_again(self, request: web.Request, answer: SweepAnswer) -> web.Response:
        query(request, NoQuery)
        wanted = await form(request, SweepForm)
        try:
            return await answer(request, wanted)
        except Refused as error:
            return await self._pages.refused(request, wanted, str(error))

    async def _plan(self, request: web.Request, wanted: SweepForm) -> web.Response:
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
            form_path=sweeps_path(**wanted.model_dump(mode="json", exclude_none=True)),
            text=forecast_text(forecast),
            operator=Operator.of(request),
        )
        return page_response(html)

    async def _start(self, request: web.Request, wanted: SweepForm) -> web.Response:
        sweep = await self._operations.start_sweep(wanted.request(), requester(request))
        return see_other(root_of(request) + sweep_path(sweep))
