"""The routes about acceptance reports."""

from http import HTTPStatus

from aiohttp import hdrs

from muster_coordinator.model.acceptance_records import AcceptanceRecord, AcceptanceSummary
from muster_coordinator.store.paging import Page
from muster_coordinator.web.acceptance import AcceptanceApi
from muster_coordinator.web.acceptance_requests import AcceptanceQuery, NewAcceptance
from muster_coordinator.web.guard import ACCEPTANCE
from muster_coordinator.web.route import Route

ACCEPTANCE_ROUTES: tuple[Route[AcceptanceApi], ...] = (
    Route(
        name="list_acceptances",
        method=hdrs.METH_GET,
        path=ACCEPTANCE,
        handler=AcceptanceApi.list,
        query=AcceptanceQuery,
        answers=Page[AcceptanceSummary],
    ),
    Route(
        name="send_acceptance",
        method=hdrs.METH_POST,
        path=ACCEPTANCE,
        handler=AcceptanceApi.send,
        body=NewAcceptance,
        status=HTTPStatus.CREATED,
        answers=AcceptanceSummary,
        sends={"Location": "The path of the acceptance"},
    ),
    Route(
        name="get_acceptance",
        method=hdrs.METH_GET,
        path=f"{ACCEPTANCE}/{{report}}",
        handler=AcceptanceApi.report,
        answers=AcceptanceRecord,
    ),
)
