"""What each route answers. A request that changes something is answered when the change has been stored."""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

import structlog
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from muster.errors import unknown
from muster.references import shipped
from muster.wire.messages import new_id
from muster_coordinator.events import (
    BaselineReset,
    Event,
    ReferenceRemoved,
    ReferenceSet,
    RunRequested,
    SweepAbortRequested,
    SweepRequested,
)
from muster_coordinator.history import history
from muster_coordinator.link import Link
from muster_coordinator.metrics import Figures
from muster_coordinator.paging import Page, make_cursor, read_cursor
from muster_coordinator.pipeline import Pipeline
from muster_coordinator.records import BaselineView, NodeView, ReferenceRecord
from muster_coordinator.reports.explanation import explain
from muster_coordinator.reports.exports import FORMS
from muster_coordinator.store import Store
from muster_coordinator.stream import Stream
from muster_coordinator.sweep_records import SweepRecord, SweepRequest
from muster_coordinator.web.listening import send_events
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import (
    ExplainQuery,
    ExportQuery,
    HistoryQuery,
    NewReference,
    NewRun,
    NewSweep,
    NoQuery,
    PageQuery,
    ReferenceQuery,
    RunQuery,
    body,
    query,
)

ROOT = "/api/v1"

Item = TypeVar("Item", bound=BaseModel)
Key = TypeVar("Key", str, int)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The parts that the routes speak to."""

    pipeline: Pipeline
    store: Store
    stream: Stream
    link: Link
    figures: Figures

    def routes(self) -> list[web.RouteDef]:
        """Every route; the docstring of its method says what it answers."""
        return [
            web.get(f"{ROOT}/fleet", self.fleet),
            web.get(f"{ROOT}/nodes", self.nodes),
            web.get(f"{ROOT}/nodes/{{node}}", self.node),
            web.get(f"{ROOT}/nodes/{{node}}/story", self.story),
            web.get(f"{ROOT}/nodes/{{node}}/history", self.history),
            web.post(f"{ROOT}/nodes/{{node}}/runs", self.start_run),
            web.get(f"{ROOT}/runs", self.runs),
            web.get(f"{ROOT}/runs/{{run}}", self.run),
            web.get(f"{ROOT}/sweeps", self.sweeps),
            web.post(f"{ROOT}/sweeps", self.start_sweep),
            web.post(f"{ROOT}/sweeps/plan", self.plan_sweep),
            web.get(f"{ROOT}/sweeps/{{sweep}}", self.sweep),
            web.delete(f"{ROOT}/sweeps/{{sweep}}", self.abort_sweep),
            web.get(f"{ROOT}/sweeps/{{sweep}}/explain", self.explain_sweep),
            web.get(f"{ROOT}/sweeps/{{sweep}}/export", self.export_sweep),
            web.get(f"{ROOT}/references", self.references),
            web.put(f"{ROOT}/references", self.set_reference),
            web.delete(f"{ROOT}/references", self.remove_reference),
            web.get(f"{ROOT}/baselines", self.baselines),
            web.delete(f"{ROOT}/baselines/{{baseline}}", self.reset_baseline),
            web.get(f"{ROOT}/events", self.events, allow_head=False),
            web.get("/healthz", self.healthz),
            web.get("/readyz", self.readyz),
            web.get("/metrics", self.metrics),
        ]

    async def fleet(self, request: web.Request) -> web.Response:
        """The fleet as a whole: its nodes by health and service state, which are lost, and what is wrong with many."""
        query(request, NoQuery)
        return _answer(self.pipeline.fleet.view(self.pipeline.clock()))

    async def nodes(self, request: web.Request) -> web.Response:
        """The nodes by name."""
        wanted = query(request, PageQuery)
        views = self.pipeline.fleet.nodes(self.pipeline.clock())
        return _answer(_page(views, lambda view: view.name, str, wanted))

    async def node(self, request: web.Request) -> web.Response:
        """One node."""
        query(request, NoQuery)
        return _answer(self._node(request))

    async def story(self, request: web.Request) -> web.Response:
        """How a node came to its state, the last step first."""
        wanted = query(request, PageQuery)
        return _answer(await self.store.story(self._node(request).name, wanted.limit, wanted.cursor))

    async def history(self, request: web.Request) -> web.Response:
        """What a node has measured over time, the latest first; a page may hold fewer points than its limit."""
        wanted, node = query(request, HistoryQuery), self._node(request).name
        return _answer(await history(self.store.database, wanted.filter(node), wanted.limit, wanted.cursor))

    async def runs(self, request: web.Request) -> web.Response:
        """Runs, the latest first."""
        wanted = query(request, RunQuery)
        return _answer(await self.store.runs(wanted.filter(), wanted.limit, wanted.cursor))

    async def run(self, request: web.Request) -> web.Response:
        """One run."""
        query(request, NoQuery)
        wanted = request.match_info["run"]
        run = await self.store.run(wanted)
        if run is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no run {wanted!r}; {ROOT}/runs lists those there are")
        return _answer(run)

    async def start_run(self, request: web.Request) -> web.Response:
        """Runs a check of a node now; answers with the id that the run will have."""
        query(request, NoQuery)
        node = self._node(request).name
        wanted = await body(request, NewRun)
        run = new_id()
        await self._handle(RunRequested(run, node, wanted.check, wanted.params))
        return web.json_response({"id": run}, status=HTTPStatus.ACCEPTED)

    async def sweeps(self, request: web.Request) -> web.Response:
        """Sweeps, the latest first."""
        wanted = query(request, PageQuery)
        return _answer(await self.store.sweeps(wanted.limit, wanted.cursor))

    async def start_sweep(self, request: web.Request) -> web.Response:
        """Starts a sweep; answers with it, and with its place in `Location`."""
        query(request, NoQuery)
        wanted = await body(request, NewSweep)
        sweep = new_id()
        await self._handle(SweepRequested(sweep, SweepRequest(**dict(wanted))))
        location = f"{ROOT}/sweeps/{sweep}"
        return await _answer_large(await self._sweep(sweep), HTTPStatus.CREATED, Location=location)

    async def plan_sweep(self, request: web.Request) -> web.Response:
        """What a sweep would do and cost; starts nothing."""
        query(request, NoQuery)
        wanted = await body(request, NewSweep)
        return _answer(self.pipeline.fleet.forecast(SweepRequest(**dict(wanted))))

    async def sweep(self, request: web.Request) -> web.Response:
        """One sweep as it stands."""
        query(request, NoQuery)
        return await _answer_large(await self._sweep(request.match_info["sweep"]))

    async def abort_sweep(self, request: web.Request) -> web.Response:
        """Ends a sweep now; what it has found is kept. Answers with it."""
        query(request, NoQuery)
        sweep = await self._sweep(request.match_info["sweep"])
        if sweep.ended_at is None:
            await self._handle(SweepAbortRequested(sweep.id, "aborted through the API"))
        return await _answer_large(await self._sweep(sweep.id), HTTPStatus.ACCEPTED)

    async def explain_sweep(self, request: web.Request) -> web.Response:
        """Why a sweep convicted, cleared or left open a node: its runs in order, in words and with the numbers."""
        wanted = query(request, ExplainQuery)
        sweep = await self._sweep(request.match_info["sweep"])
        return _answer(await asyncio.to_thread(explain, sweep, wanted.node, self.pipeline.fleet.places(sweep.nodes)))

    async def export_sweep(self, request: web.Request) -> web.Response:
        """A whole sweep as a file: `json`, `csv`, text as of `nccl-tests`, or the `matrix` of its pairs as SVG."""
        form = FORMS[query(request, ExportQuery).format]
        sweep = await self._sweep(request.match_info["sweep"])
        text = await asyncio.to_thread(form.made, sweep, self.pipeline.fleet.places(sweep.nodes))
        headers = {"Content-Disposition": f'attachment; filename="sweep-{sweep.id}.{form.suffix}"'}
        return web.Response(text=text, content_type=form.content_type, headers=headers)

    async def references(self, request: web.Request) -> web.Response:
        """References, first the shipped ones, then the operator's; of equally specific ones the last counts."""
        wanted = query(request, PageQuery)
        rows = shipped()
        before_all = [ReferenceRecord(number=number, reference=row) for number, row in enumerate(rows, -len(rows))]
        page = _page([*before_all, *self.pipeline.fleet.references()], lambda record: record.number, int, wanted)
        return _answer(Page(items=tuple(record.reference for record in page.items), next_cursor=page.next_cursor))

    async def set_reference(self, request: web.Request) -> web.Response:
        """Sets a reference for the fleet in the place of the operator's with the same check, metric and `when`."""
        query(request, NoQuery)
        reference = (await body(request, NewReference)).reference()
        await self._handle(ReferenceSet(reference))
        log.info("reference_set", **reference.model_dump(mode="json", exclude_none=True))
        return _answer(reference)

    async def remove_reference(self, request: web.Request) -> web.Response:
        """Removes a reference of the operator's; answers with what it was found by."""
        wanted = query(request, ReferenceQuery)
        await self._handle(ReferenceRemoved(wanted.key))
        log.info("reference_removed", **wanted.model_dump(mode="json"))
        return _answer(wanted)

    async def baselines(self, request: web.Request) -> web.Response:
        """What the fleet is compared by."""
        wanted = query(request, PageQuery)
        return _answer(_page(self.pipeline.fleet.baselines(), lambda view: view.id, str, wanted))

    async def reset_baseline(self, request: web.Request) -> web.Response:
        """Lets what is measured now count as normal in a baseline; answers with it."""
        query(request, NoQuery)
        baseline = self._baseline(request).id
        await self._handle(BaselineReset(baseline))
        log.info("baseline_reset", baseline=baseline)
        return _answer(self._baseline(request))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events `run`, `node`, `sweep` and `story`; `Last-Event-ID` catches up."""
        query(request, NoQuery)
        return await send_events(request, self.stream)

    async def healthz(self, _request: web.Request) -> web.Response:
        """That the process answers. Needs no token."""
        return web.json_response({"status": "ok"})

    async def readyz(self, _request: web.Request) -> web.Response:
        """That broker and database are there; 503 otherwise. Needs no token."""
        if not self.link.connected:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not connected to the broker")
        await self.store.check_writable()
        return web.json_response({"status": "ok"})

    async def metrics(self, _request: web.Request) -> web.Response:
        """Figures for Prometheus."""
        return web.Response(body=self.figures.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _handle(self, event: Event) -> None:
        await self.pipeline.feed(event).wait()

    def _node(self, request: web.Request) -> NodeView:
        name = request.match_info["node"]
        fleet, now = self.pipeline.fleet, self.pipeline.clock()
        view = fleet.node(name, now)
        if view is None:
            raise Problem(HTTPStatus.NOT_FOUND, unknown("node", name, (known.name for known in fleet.nodes(now))))
        return view

    def _baseline(self, request: web.Request) -> BaselineView:
        wanted = request.match_info["baseline"]
        for view in self.pipeline.fleet.baselines():
            if view.id == wanted:
                return view
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no baseline {wanted!r}; {ROOT}/baselines lists those there are")

    async def _sweep(self, sweep: str) -> SweepRecord:
        record = await self.store.sweep(sweep)
        if record is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"there is no sweep {sweep!r}; {ROOT}/sweeps lists those there are")
        return record


def _page(items: Sequence[Item], key: Callable[[Item], Key], kind: type[Key], wanted: PageQuery) -> Page[Item]:
    """A page of items in memory that are sorted by `key`, which is of this kind."""
    if wanted.cursor is not None:
        (after,) = read_cursor(wanted.cursor, [kind])
        items = items[bisect_right(items, after, key=key) :]
    more = len(items) > wanted.limit
    items = tuple(items[: wanted.limit])
    return Page(items=items, next_cursor=make_cursor(key(items[-1])) if more else None)


def _answer(data: BaseModel, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> web.Response:
    return _json(data.model_dump_json(), status, headers)


async def _answer_large(data: BaseModel, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> web.Response:
    """The same for what may be many megabytes, while others are answered."""
    return _json(await asyncio.to_thread(data.model_dump_json), status, headers)


def _json(text: str, status: HTTPStatus, headers: dict[str, str]) -> web.Response:
    return web.Response(text=text, status=status, content_type="application/json", headers=headers)
