"""Every page, and the methods that make them."""

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any, Literal

from aiohttp import web

from muster.errors import unknown
from muster.references import shipped
from muster_coordinator.model.acceptance_records import AcceptanceFilter
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.store.acceptance_reports import AcceptanceReports
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.views.pages.chart_range import ChartRange
from muster_coordinator.views.pages.fleet_facts import FleetFacts
from muster_coordinator.views.pages.fleet_page import fleet_page
from muster_coordinator.views.pages.help_page import CONDITIONS, SERVICES
from muster_coordinator.views.pages.measurements import Measurements, measurements
from muster_coordinator.views.pages.node_page import node_page
from muster_coordinator.web.operations import Operations
from muster_coordinator.web.pages.acceptance_pages import AcceptancePages
from muster_coordinator.web.pages.account import Operator
from muster_coordinator.web.pages.event_pages import EventPages
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.measurement_reader import MeasurementReader
from muster_coordinator.web.pages.node_actions import DONE, NodeActions
from muster_coordinator.web.pages.node_table_page import NodeTablePage
from muster_coordinator.web.pages.quarantine_pages import QuarantinePages
from muster_coordinator.web.pages.response import ROOT, page_response, root_of
from muster_coordinator.web.pages.shared_page import SharedPage
from muster_coordinator.web.pages.static_files import static_routes
from muster_coordinator.web.pages.sweep_actions import SweepActions
from muster_coordinator.web.pages.sweep_pages import SweepPages
from muster_coordinator.web.pages.templates import render
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import NoQuery, Request, query

REST = 10.0
"""How much longer than it takes the coordinator rests before it makes the text for open pages again. With 10,000 nodes
it takes 0.2 s, so those who look at the page have it every two seconds while the fleet changes.
"""

MOST_RUNS = 15
MOST_ACCEPTANCES = 3
MOST_STEPS = 50
"""Of the story of a node."""


class FleetPageQuery(Request):
    """What of the page is wanted: a page that is open follows the map by itself, and asks for the `text` again."""

    part: Literal["text"] | None = None


class NodePageQuery(Request):
    """The time that the charts show, and what a form on the page has done."""

    range: ChartRange = ChartRange.DAY
    done: Literal["held", "released", "returned", "run"] | None = None


class Pages:
    """Makes the pages of what `reader` reads."""

    def __init__(self, reader: FleetReader) -> None:
        self._reader = reader
        self._operations = Operations(reader.pipeline)
        self._fleet = SharedPage(partial(self._make_fleet, with_map=True))
        self._fleet_text = SharedPage(partial(self._make_fleet, with_map=False), rest=REST)
        self._acceptances = AcceptanceReports(reader.store.database)
        self._measurements = MeasurementReader(reader.store)

    def routes(self) -> list[web.RouteDef]:
        """All pages, and the files that they load."""
        sweeps = SweepPages(self._reader)
        return [
            web.get("/", self.fleet),
            web.get("/nodes/{node}", self.node),
            web.get("/help", self.help),
            *NodeTablePage(self._reader).routes(),
            *sweeps.routes(),
            *QuarantinePages(self._reader, self._operations).routes(),
            *EventPages(self._reader).routes(),
            *AcceptancePages(self._reader).routes(),
            *NodeActions(self._operations).routes(),
            *SweepActions(self._operations, self._reader, sweeps).routes(),
            *static_routes(),
        ]

    async def fleet(self, request: web.Request) -> web.Response:
        """The whole fleet, the worst first."""
        is_whole = query(request, FleetPageQuery).part is None
        return page_response(await (self._fleet if is_whole else self._fleet_text).get())

    async def node(self, request: web.Request) -> web.Response:
        """One node: why it is as it is, what it measured, its story and its last runs."""
        wanted = query(request, NodePageQuery)
        name, fleet, store = request.match_info["node"], self._reader.pipeline.fleet, self._reader.store
        if not fleet.remembers(name):
            raise Problem(HTTPStatus.NOT_FOUND, unknown("node", name, fleet.names))
        story = await store.story(name, MOST_STEPS, None)
        runs = await store.runs(RunFilter(node=name), MOST_RUNS, None)
        at = self._reader.pipeline.clock()
        view = fleet.node(name, at)
        accepted = await self._acceptances.page(AcceptanceFilter(node=name), MOST_ACCEPTANCES, None)
        page = node_page(
            name,
            at=at,
            is_current=self._reader.is_current,
            view=view,
            measured=None if view is None else await self._measured(view, wanted.range, at),
            case=fleet.case(name),
            runs=runs.items,
            story=story.items,
        )
        values: dict[str, Any] = {
            "acceptances": accepted.items,
            "done": DONE.get(wanted.done or "", ""),
            "operator": Operator.of(request),
        }
        html = await asyncio.to_thread(render, "node", root=root_of(request), fleet=fleet.name, page=page, **values)
        return page_response(html)

    async def help(self, request: web.Request) -> web.Response:
        """Keys, and what the forms and words of the pages mean."""
        query(request, NoQuery)
        values = {"fleet": self._reader.pipeline.fleet.name, "conditions": CONDITIONS, "services": SERVICES}
        return page_response(render("help", root=root_of(request), **values))

    async def _measured(self, view: NodeView, range: ChartRange, at: float) -> Measurements:
        fleet = self._reader.pipeline.fleet
        measured = await self._measurements.read(view.name, [*view.checks], range, at)
        references = [*shipped(), *(record.reference for record in fleet.references())]
        return measurements(view, measured, references, fleet.baselines(view.name))

    async def _make_fleet(self, *, with_map: bool) -> str:
        # In a thread: a page of 10,000 nodes takes half a second, nearly all of it the map.
        return await asyncio.to_thread(rendered, await self._reader.facts(), with_map=with_map)


def rendered(facts: FleetFacts, *, with_map: bool = True) -> str:
    """The page of the fleet with these facts, or all of it but the map."""
    return render("fleet", root=ROOT, fleet=facts.fleet.name, page=fleet_page(facts), with_map=with_map)
