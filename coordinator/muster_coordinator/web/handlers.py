"""The methods that answer the routes. A request that changes something is answered when the change has been stored."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from muster.errors import unknown
from muster.references import shipped
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.model.references import ReferenceRecord
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.metrics import CoordinatorMetrics
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.runtime.stream import Stream
from muster_coordinator.store.audit_log import read_audit
from muster_coordinator.store.disk_budget import DiskUse
from muster_coordinator.store.history import history, require_measured, stepped_history
from muster_coordinator.store.store import Store
from muster_coordinator.views.sweeps.explanation import explain
from muster_coordinator.views.sweeps.exports import FORMS
from muster_coordinator.web.answers import (
    RequestedRun,
    Working,
    answer,
    answer_large,
    database_use,
    page,
)
from muster_coordinator.web.guard import requester
from muster_coordinator.web.operations import Operations
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.readiness import Readiness
from muster_coordinator.web.requests import (
    AuditQuery,
    ChangeRequest,
    ExplainQuery,
    ExportQuery,
    HistoryQuery,
    NewReference,
    NewRun,
    NewSweep,
    NoQuery,
    PageQuery,
    RemovedReference,
    RunQuery,
    body,
    query,
)
from muster_coordinator.web.server_sent_events import send_events
from muster_coordinator.web.sweep_lookup import find_sweep

ROOT = "/api/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The parts of the coordinator that the routes use."""

    pipeline: Pipeline
    store: Store
    stream: Stream
    link: CoordinatorLink
    figures: CoordinatorMetrics
    readiness: Readiness
    disk: DiskUse
    document: Callable[[], str]

    async def fleet(self, request: web.Request) -> web.Response:
        """The fleet: nodes by health and service state, lost nodes, findings about many; and the database's size."""
        query(request, NoQuery)
        view = self.pipeline.fleet.view(self.pipeline.clock())
        return answer(view.model_copy(update={"database": database_use(self.disk)}))

    async def node(self, request: web.Request) -> web.Response:
        """One node."""
        query(request, NoQuery)
        return answer(self._node(request))

    async def story(self, request: web.Request) -> web.Response:
        """The story of a node, the latest step first; also of a node that was forgotten."""
        wanted, node = query(request, PageQuery), request.match_info["node"]
        if not self.pipeline.fleet.remembers(node):
            raise self._unknown(node)
        return answer(await self.store.story(node, wanted.limit, wanted.cursor))

    async def history(self, request: web.Request) -> web.Response:
        """The measurements of a node over time, the latest first; a page may hold fewer points than its limit."""
        wanted, node = query(request, HistoryQuery), self._node(request)
        conditions, database = wanted.filter(node.name), self.store.database
        if wanted.step_s is None:
            found = await history(database, conditions, wanted.limit, wanted.cursor)
        else:
            ended = replace(conditions, until=wanted.until or self.pipeline.clock())
            found = await stepped_history(database, ended, wanted.step_s, wanted.limit, wanted.cursor)
        if not found.items and wanted.cursor is None:
            await require_measured(database, conditions, node.checks)
        return answer(found)

    async def runs(self, request: web.Request) -> web.Response:
        """Runs, the latest first."""
        wanted = query(request, RunQuery)
        return answer(await self.store.runs(wanted.filter(), wanted.limit, wanted.cursor))

    async def run(self, request: web.Request) -> web.Response:
        """One run."""
        query(request, NoQuery)
        wanted = request.match_info["run"]
        run = await self.store.run(wanted)
        if run is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"no run {wanted!r}; {ROOT}/runs lists runs")
        return answer(run)

    async def start_run(self, request: web.Request) -> web.Response:
        """Runs a check of a node now. Returns the id that the run will have."""
        query(request, NoQuery)
        node = self._node(request).name
        wanted = await body(request, NewRun)
        who = requester(request, wanted.by)
        run = await self._operations.start_run(node, wanted.check, wanted.params, who)
        return answer(RequestedRun(id=run), HTTPStatus.ACCEPTED)

    async def sweeps(self, request: web.Request) -> web.Response:
        """Sweeps, the latest first."""
        wanted = query(request, PageQuery)
        return answer(await self.store.sweeps(wanted.limit, wanted.cursor))

    async def start_sweep(self, request: web.Request) -> web.Response:
        """Starts a sweep. Returns it, and its path in `Location`."""
        query(request, NoQuery)
        wanted = await body(request, NewSweep)
        sweep = await self._operations.start_sweep(wanted.request(), requester(request, wanted.by))
        location = f"{ROOT}/sweeps/{sweep}"
        return await answer_large(await self._sweep(sweep), HTTPStatus.CREATED, Location=location)

    async def plan_sweep(self, request: web.Request) -> web.Response:
        """The plan and cost of a sweep; starts nothing."""
        query(request, NoQuery)
        wanted = await body(request, NewSweep)
        return answer(self.pipeline.fleet.forecast(wanted.request()))

    async def sweep(self, request: web.Request) -> web.Response:
        """One sweep in its present state. Its id may be cut to a unique prefix; 409 if several sweeps have it."""
        query(request, NoQuery)
        return await answer_large(await self._sweep(request.match_info["sweep"]))

    async def abort_sweep(self, request: web.Request) -> web.Response:
        """Ends a sweep now; its results so far are kept. Returns the sweep."""
        who = requester(request, query(request, ChangeRequest).by)
        sweep = await self._sweep(request.match_info["sweep"])
        if sweep.ended_at is None:
            await self._operations.abort_sweep(sweep.id, who)
        return await answer_large(await self._sweep(sweep.id), HTTPStatus.ACCEPTED)

    async def explain_sweep(self, request: web.Request) -> web.Response:
        """Why a sweep convicted or cleared a node, or left it inconclusive: its runs in order, with the numbers."""
        wanted = query(request, ExplainQuery)
        sweep = await self._sweep(request.match_info["sweep"])
        return answer(await asyncio.to_thread(explain, sweep, wanted.node, self.pipeline.fleet.places(sweep.nodes)))

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
        records = [*before_all, *self.pipeline.fleet.references()]
        return answer(page(records, lambda record: record.number, int, wanted, lambda record: record.reference))

    async def set_reference(self, request: web.Request) -> web.Response:
        """Sets a reference for the fleet in place of the operator's with the same check, metric and `when`."""
        query(request, NoQuery)
        wanted = await body(request, NewReference)
        who = requester(request, wanted.by)
        reference = wanted.reference(who.name or None)
        await self._operations.set_reference(reference, who)
        return answer(reference)

    async def remove_reference(self, request: web.Request) -> web.Response:
        """Removes a reference of the operator. Returns the key by which it was found."""
        wanted = query(request, RemovedReference)
        await self._operations.remove_reference(wanted.key, requester(request, wanted.by))
        return answer(wanted.reference())

    async def baselines(self, request: web.Request) -> web.Response:
        """The baselines that nodes are compared with."""
        wanted = query(request, PageQuery)
        return answer(page(self.pipeline.fleet.baselines(), lambda view: view.id, str, wanted, lambda view: view))

    async def reset_baseline(self, request: web.Request) -> web.Response:
        """Resets a baseline: the present values count as normal. Returns the baseline."""
        who = requester(request, query(request, ChangeRequest).by)
        baseline = self._baseline(request).id
        await self._operations.reset_baseline(baseline, who)
        return answer(self._baseline(request))

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events `run`, `node`, `gone`, `case`, `sweep`, `group`, `alarm`; `Last-Event-ID` catches up.

        The event `reset` says that later events than that are no longer remembered.
        """
        query(request, NoQuery)
        last_id = request.headers.get("Last-Event-ID")
        return await send_events(request, lambda *of_client: self.stream.listen(last_id, *of_client))

    async def audit(self, request: web.Request) -> web.Response:
        """The changes that people and programs have made through the API and the pages, the latest first."""
        wanted = query(request, AuditQuery)
        return answer(await read_audit(self.store.database, wanted.subject, wanted.limit, wanted.cursor))

    async def openapi(self, request: web.Request) -> web.Response:
        """The whole API as an OpenAPI 3.1 document."""
        query(request, NoQuery)
        return web.Response(text=self.document(), content_type="application/json")

    async def healthz(self, _request: web.Request) -> web.Response:
        """Whether the coordinator works; 503 if storing hangs. Needs no token."""
        if self.pipeline.is_stuck:
            detail = f"storing has hung for {self.pipeline.stuck_s:.0f} s; restart the coordinator"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail)
        return answer(Working())

    async def readyz(self, _request: web.Request) -> web.Response:
        """Whether broker and database are available; 503 otherwise. Needs no token."""
        if not self.link.connected:
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "not connected to the broker, or not subscribed")
        await self.readiness.check()
        return answer(Working())

    async def metrics(self, _request: web.Request) -> web.Response:
        """Metrics for Prometheus."""
        return web.Response(body=self.figures.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    @property
    def _operations(self) -> Operations:
        return Operations(self.pipeline)

    def _node(self, request: web.Request) -> NodeView:
        view = self._present(request.match_info["node"])
        if view is None:
            raise self._unknown(request.match_info["node"])
        return view

    def _present(self, name: str) -> NodeView | None:
        return self.pipeline.fleet.node(name, self.pipeline.clock())

    def _unknown(self, node: str) -> Problem:
        return Problem(HTTPStatus.NOT_FOUND, unknown("node", node, self.pipeline.fleet.names))

    def _baseline(self, request: web.Request) -> BaselineView:
        wanted = request.match_info["baseline"]
        for view in self.pipeline.fleet.baselines():
            if view.id == wanted:
                return view
        raise Problem(HTTPStatus.NOT_FOUND, f"no baseline {wanted!r}; run `muster baseline list`")

    async def _sweep(self, id: str) -> SweepRecord:
        return await find_sweep(self.store, id)
