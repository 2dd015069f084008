"""Routes about acceptance reports: nodes and jobs send them, people and programs read them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

from aiohttp import web

from muster.acceptance import contradictions
from muster.errors import Refused
from muster_coordinator.model.acceptance_records import AcceptanceRecord, acceptance_record
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.store.acceptance_reports import AcceptanceReports
from muster_coordinator.web.acceptance_requests import AcceptanceQuery, NewAcceptance
from muster_coordinator.web.answers import answer, answer_large
from muster_coordinator.web.guard import ACCEPTANCE, named_requester
from muster_coordinator.web.large_bodies import LargeBodies
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import NoQuery, body, query

MOST_BYTES = 8 << 20
"""Of a report. A run takes two to three kilobytes, so it has about 3,000 of them; reading it takes a fifth of a second
in which nothing else is answered.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceApi:
    """The parts of the coordinator that the routes use."""

    pipeline: Pipeline
    reports: AcceptanceReports
    note_stored: Callable[[AcceptanceRecord], None]
    bodies: LargeBodies = field(default_factory=partial(LargeBodies, MOST_BYTES))

    async def send(self, request: web.Request) -> web.Response:
        """Stores a report that `muster check run` has made, up to 8 MiB. Returns what it came to.

        A report that is there already stays as it is. One whose verdicts do not follow from its runs is refused.
        """
        query(request, NoQuery)
        async with self.bodies.taken(request) as taken:
            sent = await body(taken, NewAcceptance)
            record = self._record(sent, named_requester(request, sent.by).name)
        stored = await self.reports.add(record)
        self.note_stored(record)
        return answer(stored, HTTPStatus.CREATED, Location=f"{ACCEPTANCE}/{stored.id}")

    def _record(self, sent: NewAcceptance, by: str) -> AcceptanceRecord:
        """The record of a report. Raises Refused if the report contradicts itself."""
        if wrong := next(contradictions(sent.report), None):
            raise Refused(f"field 'report': {wrong}; send the file as `muster check run` has written it")
        return acceptance_record(sent.report, received_at=self.pipeline.clock(), sent_by=by)

    async def list(self, request: web.Request) -> web.Response:
        """The acceptances, the latest received first."""
        wanted = query(request, AcceptanceQuery)
        return answer(await self.reports.page(wanted.filter(), wanted.limit, wanted.cursor))

    async def report(self, request: web.Request) -> web.Response:
        """One acceptance, with its report."""
        query(request, NoQuery)
        return await answer_large(await find_acceptance(self.reports, request.match_info["report"]))


async def find_acceptance(reports: AcceptanceReports, id: str) -> AcceptanceRecord:
    """The acceptance with this id. Raises a Problem if there is none."""
    found = await reports.get(id)
    if found is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"unknown acceptance {id!r}; /acceptance lists them")
    return found
