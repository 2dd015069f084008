"""Routes about service states: the nodes out of service and why, and the decisions of people about them."""

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar

from aiohttp import web

from muster.errors import unknown
from muster.model import ServiceState
from muster_coordinator.model.audit import Requester
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_views import BudgetView, CaseView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.store.store import Store
from muster_coordinator.web.answers import LOOKED_AT, answer, in_slices, page
from muster_coordinator.web.guard import named_requester
from muster_coordinator.web.operations import Operations
from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import Decision, NoQuery, PageQuery, Release, TransitionQuery, body, query

D = TypeVar("D", bound=Decision)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineApi:
    """The parts of the coordinator that the routes use."""

    pipeline: Pipeline
    store: Store
    poller: ActorPoller

    async def cases(self, request: web.Request) -> web.Response:
        """The nodes that are not plainly in service: away, new, to be drained, on hold, or with a failed action."""
        wanted = query(request, PageQuery)
        fleet = self.pipeline.fleet

        def of_interest(records: Iterable[QuarantineRecord]) -> Iterable[str]:
            return (record.node for record in records if _is_of_interest(record, fleet.latest_transition(record.node)))

        found = await in_slices(fleet.quarantine_records(), LOOKED_AT, of_interest)
        known = {*fleet.names}  # a node may have been forgotten between two slices
        return answer(page([name for name in found if name in known], str, str, wanted, self._known))

    async def case(self, request: web.Request) -> web.Response:
        """The decisions about one node, and the evidence for them."""
        query(request, NoQuery)
        return answer(self._case(request))

    async def budget(self, request: web.Request) -> web.Response:
        """The number of nodes that are away and may be away, waiting nodes, mass events, and the state of actors."""
        query(request, NoQuery)
        return self._budget()

    async def history(self, request: web.Request) -> web.Response:
        """Requests of people (`Asked`) and decisions (`TransitionRecord`), the latest first."""
        wanted = query(request, TransitionQuery)
        if wanted.node is not None and not self.pipeline.fleet.remembers(wanted.node):
            raise self._unknown(wanted.node)
        return answer(await self.store.decisions(wanted.node, wanted.limit, wanted.cursor))

    async def hold(self, request: web.Request) -> web.Response:
        """Keeps a node as it is, in service or out, until it is released. Returns its case."""
        said, who = await self._decision(request, Decision)
        node = self._case(request).node
        await self._operations.hold(node, who, said.reason)
        return answer(self._case(request))

    async def release(self, request: web.Request) -> web.Response:
        """Ends a hold. A drained node returns to service after it has passed its tests, or at once if `untested`."""
        said, who = await self._decision(request, Release)
        node = self._case(request).node
        await self._operations.release(node, who, said.reason, untested=said.untested)
        return answer(self._case(request))

    async def forget(self, request: web.Request) -> web.Response:
        """Removes a silent node from the fleet until it is heard again. Returns the budget."""
        said, who = await self._decision(request, Decision)
        node = self._case(request).node
        await self._operations.forget(node, who, said.reason)
        return self._budget()

    async def unfreeze(self, request: web.Request) -> web.Response:
        """Lifts a mass-event freeze: the nodes themselves are faulty. Returns the budget."""
        said, who = await self._decision(request, Decision)
        await self._operations.unfreeze(who, said.reason)
        return self._budget()

    async def _decision(self, request: web.Request, kind: type[D]) -> tuple[D, Requester]:
        """The decision in the body, and who has made it; the route takes no query."""
        query(request, NoQuery)
        said = await body(request, kind)
        return said, named_requester(request, said.by)

    @property
    def _operations(self) -> Operations:
        return Operations(self.pipeline)

    def _budget(self) -> web.Response:
        fleet, poller = self.pipeline.fleet, self.poller
        unheard = poller.unheard(fleet.is_present)
        return answer(BudgetView(quarantine=fleet.quarantine_view(), actors=poller.actors, unheard=unheard))

    def _case(self, request: web.Request) -> CaseView:
        return self._known(request.match_info["node"])

    def _known(self, node: str) -> CaseView:
        case = self.pipeline.fleet.case(node)
        if case is None:
            raise self._unknown(node)
        return case

    def _unknown(self, node: str) -> Problem:
        return Problem(HTTPStatus.NOT_FOUND, unknown("node", node, self.pipeline.fleet.names))


def _is_of_interest(record: QuarantineRecord, latest: TransitionRecord | None) -> bool:
    is_required = record.decision.requirement is not None or record.decision.upcoming is not None
    is_failed = latest is not None and bool(latest.failed)
    is_out_of_the_ordinary = record.is_away or record.left_alone_because is not None or is_required or is_failed
    has_left = record.evidence.has_left
    return not has_left and (is_out_of_the_ordinary or record.state is not ServiceState.IN_SERVICE)
