"""Every route of the API. The server, the OpenAPI document and docs/reference/api.md are made from this table."""

from functools import cache
from http import HTTPStatus
from typing import Any

from aiohttp import hdrs
from prometheus_client import CONTENT_TYPE_LATEST

from muster.model import Run
from muster.references import Reference
from muster_coordinator.model.audit import AuditEntry
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.history import HistoryPoint
from muster_coordinator.model.nodes import FleetView, NodeView, StoryEntry
from muster_coordinator.model.quarantine_events import Decided
from muster_coordinator.model.quarantine_views import BudgetView, CaseView
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.store.paging import Page
from muster_coordinator.sweeps.forecast import Forecast
from muster_coordinator.views.sweeps.explained import Explanation
from muster_coordinator.views.sweeps.export_format import ExportFormat
from muster_coordinator.views.sweeps.exports import FORMS
from muster_coordinator.web.acceptance_routes import ACCEPTANCE_ROUTES
from muster_coordinator.web.answers import RequestedRun, Working
from muster_coordinator.web.handlers import ROOT, Api
from muster_coordinator.web.openapi import openapi_document
from muster_coordinator.web.quarantine import QuarantineApi
from muster_coordinator.web.requests import (
    AuditQuery,
    ChangeRequest,
    Decision,
    ExplainQuery,
    ExportQuery,
    HistoryQuery,
    NewReference,
    NewRun,
    NewSweep,
    PageQuery,
    ReferenceQuery,
    Release,
    RemovedReference,
    RunQuery,
    TransitionQuery,
)
from muster_coordinator.web.route import EVENTS, JSON, Route
from muster_coordinator.web.viewer_routes import NODE_LIST_ROUTES, SESSION_ROUTES, VIEWER_ROUTES

GET, POST, PUT, DELETE = hdrs.METH_GET, hdrs.METH_POST, hdrs.METH_PUT, hdrs.METH_DELETE
ACCEPTED, CREATED = HTTPStatus.ACCEPTED, HTTPStatus.CREATED
NOT_FOUND, REFUSED = HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY
AMBIGUOUS = HTTPStatus.CONFLICT
"""Several sweeps begin with the id in the path."""

NODE, SWEEP, QUARANTINE = f"{ROOT}/nodes/{{node}}", f"{ROOT}/sweeps/{{sweep}}", f"{ROOT}/quarantine"

FLEET_ROUTES: tuple[Route[Api], ...] = (
    Route(name="get_fleet", method=GET, path=f"{ROOT}/fleet", handler=Api.fleet, answers=FleetView),
    Route(name="get_node", method=GET, path=NODE, handler=Api.node, answers=NodeView),
    Route(
        name="get_node_story",
        method=GET,
        path=f"{NODE}/story",
        handler=Api.story,
        query=PageQuery,
        answers=Page[StoryEntry],
    ),
    Route(
        name="get_node_history",
        method=GET,
        path=f"{NODE}/history",
        handler=Api.history,
        query=HistoryQuery,
        answers=Page[HistoryPoint],
    ),
    Route(
        name="start_run",
        method=POST,
        path=f"{NODE}/runs",
        handler=Api.start_run,
        body=NewRun,
        status=ACCEPTED,
        answers=RequestedRun,
    ),
    Route(name="list_runs", method=GET, path=f"{ROOT}/runs", handler=Api.runs, query=RunQuery, answers=Page[Run]),
    Route(name="get_run", method=GET, path=f"{ROOT}/runs/{{run}}", handler=Api.run, answers=Run),
    Route(
        name="list_sweeps",
        method=GET,
        path=f"{ROOT}/sweeps",
        handler=Api.sweeps,
        query=PageQuery,
        answers=Page[SweepRecord],
    ),
    Route(
        name="start_sweep",
        method=POST,
        path=f"{ROOT}/sweeps",
        handler=Api.start_sweep,
        body=NewSweep,
        status=CREATED,
        answers=SweepRecord,
        sends={"Location": "The path of the new sweep"},
    ),
    Route(
        name="plan_sweep",
        method=POST,
        path=f"{ROOT}/sweeps/plan",
        handler=Api.plan_sweep,
        body=NewSweep,
        answers=Forecast,
    ),
    Route(name="get_sweep", method=GET, path=SWEEP, handler=Api.sweep, answers=SweepRecord, errors=(AMBIGUOUS,)),
    Route(
        name="abort_sweep",
        method=DELETE,
        path=SWEEP,
        handler=Api.abort_sweep,
        query=ChangeRequest,
        status=ACCEPTED,
        answers=SweepRecord,
        errors=(AMBIGUOUS,),
    ),
    Route(
        name="explain_sweep",
        method=GET,
        path=f"{SWEEP}/explain",
        handler=Api.explain_sweep,
        query=ExplainQuery,
        answers=Explanation,
        errors=(REFUSED, AMBIGUOUS),
    ),
    Route(
        name="export_sweep",
        method=GET,
        path=f"{SWEEP}/export",
        handler=Api.export_sweep,
        query=ExportQuery,
        answers={
            form.content_type: SweepRecord if form is FORMS[ExportFormat.JSON] else None for form in FORMS.values()
        },
        sends={"Content-Disposition": "A name for the file"},
        errors=(REFUSED, AMBIGUOUS),
    ),
    Route(
        name="list_references",
        method=GET,
        path=f"{ROOT}/references",
        handler=Api.references,
        query=PageQuery,
        answers=Page[Reference],
    ),
    Route(
        name="set_reference",
        method=PUT,
        path=f"{ROOT}/references",
        handler=Api.set_reference,
        body=NewReference,
        answers=Reference,
    ),
    Route(
        name="remove_reference",
        method=DELETE,
        path=f"{ROOT}/references",
        handler=Api.remove_reference,
        query=RemovedReference,
        answers=ReferenceQuery,
        errors=(REFUSED,),
    ),
    Route(
        name="list_baselines",
        method=GET,
        path=f"{ROOT}/baselines",
        handler=Api.baselines,
        query=PageQuery,
        answers=Page[BaselineView],
    ),
    Route(
        name="reset_baseline",
        method=DELETE,
        path=f"{ROOT}/baselines/{{baseline}}",
        handler=Api.reset_baseline,
        query=ChangeRequest,
        answers=BaselineView,
    ),
    Route(
        name="list_audit",
        method=GET,
        path=f"{ROOT}/audit",
        handler=Api.audit,
        query=AuditQuery,
        answers=Page[AuditEntry],
    ),
    Route(
        name="listen_to_events",
        method=GET,
        path=f"{ROOT}/events",
        handler=Api.events,
        reads={"Last-Event-ID": "The id of the last event that arrived; later events are sent first"},
        answers={EVENTS: None},
    ),
    Route(name="get_openapi", method=GET, path=f"{ROOT}/openapi.json", handler=Api.openapi, answers={JSON: None}),
    Route(name="check_alive", method=GET, path="/healthz", handler=Api.healthz, query=None, answers=Working),
    Route(name="check_ready", method=GET, path="/readyz", handler=Api.readyz, query=None, answers=Working),
    Route(
        name="get_metrics",
        method=GET,
        path="/metrics",
        handler=Api.metrics,
        query=None,
        answers={CONTENT_TYPE_LATEST.partition(";")[0]: None},
    ),
)

QUARANTINE_ROUTES: tuple[Route[QuarantineApi], ...] = (
    Route(
        name="list_cases",
        method=GET,
        path=QUARANTINE,
        handler=QuarantineApi.cases,
        query=PageQuery,
        answers=Page[CaseView],
    ),
    Route(name="get_budget", method=GET, path=f"{QUARANTINE}/budget", handler=QuarantineApi.budget, answers=BudgetView),
    Route(
        name="list_decisions",
        method=GET,
        path=f"{QUARANTINE}/history",
        handler=QuarantineApi.history,
        query=TransitionQuery,
        answers=Page[Decided],
        errors=(NOT_FOUND,),
    ),
    Route(
        name="lift_freeze",
        method=POST,
        path=f"{QUARANTINE}/unfreeze",
        handler=QuarantineApi.unfreeze,
        body=Decision,
        answers=BudgetView,
    ),
    Route(name="get_case", method=GET, path=f"{NODE}/case", handler=QuarantineApi.case, answers=CaseView),
    Route(
        name="hold_node",
        method=POST,
        path=f"{NODE}/hold",
        handler=QuarantineApi.hold,
        body=Decision,
        answers=CaseView,
    ),
    Route(
        name="release_node",
        method=POST,
        path=f"{NODE}/release",
        handler=QuarantineApi.release,
        body=Release,
        answers=CaseView,
    ),
    Route(
        name="forget_node",
        method=POST,
        path=f"{NODE}/forget",
        handler=QuarantineApi.forget,
        body=Decision,
        answers=BudgetView,
    ),
)

ROUTES: tuple[Route[Any], ...] = (
    *FLEET_ROUTES,
    *NODE_LIST_ROUTES,
    *VIEWER_ROUTES,
    *QUARANTINE_ROUTES,
    *ACCEPTANCE_ROUTES,
    *SESSION_ROUTES,
)


@cache
def openapi_text() -> str:
    """The OpenAPI document of all routes as JSON. Making it takes longer than most requests."""
    return openapi_document(ROUTES)
