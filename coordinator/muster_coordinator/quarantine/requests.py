"""What people ask for, and what follows from it."""

from muster.errors import Refused
from muster.model import ServiceState
from muster_coordinator.model.case import Case, Hold
from muster_coordinator.model.quarantine_events import (
    Asked,
    FreezeLifted,
    HoldRequested,
    NodeForgotten,
    ReleaseRequested,
    Request,
    SaveRequest,
)
from muster_coordinator.quarantine.deciding import Deciding
from muster_coordinator.quarantine.moves import MOVES, Trigger


class Requests:
    """Does what people ask for, and writes down that they did; Refused when it is not valid."""

    def __init__(self, deciding: Deciding) -> None:
        self._deciding = deciding
        self._cases = deciding.cases
        self._saying = deciding.saying

    def grant(self, request: Request, now: float) -> None:
        """Does what a person asks for."""
        match request:
            case HoldRequested():
                self._hold(request, now)
            case ReleaseRequested():
                self._release(request, now)
            case FreezeLifted():
                self._lift(request)
            case NodeForgotten():
                self._forget(request, now)
        self._saying.say(SaveRequest(asked=Asked(id=self._saying.new_id("r"), at=now, request=request)))

    def _hold(self, event: HoldRequested, now: float) -> None:
        case = self._cases.known(event.node)
        self._cases.change(case, hold=Hold(by=event.by, reason=event.reason, at=now))
        self._saying.note(event.node, "held", f"held as it is by {event.by}: {event.reason}")

    def _release(self, event: ReleaseRequested, now: float) -> None:
        case = self._cases.known(event.node)
        trigger = Trigger.BROUGHT_BACK if event.untested else Trigger.RETURNING
        if case.gone and case.hold is None:
            raise Refused(f"{case.node} has left the fleet: who comes under its name proves itself, or forget it")
        can_move = (case.state, trigger) in MOVES and not case.gone
        moves = can_move and (self._deciding.acts or event.untested)
        if case.hold is None and not moves:
            raise Refused(_not_released(case) if can_move else _nothing_to_release(case))
        self._saying.note(event.node, "released", f"released by {event.by}: {event.reason}")
        case = self._cases.change(case, hold=None, absolved_at=now if event.untested else case.absolved_at)
        if moves:
            self._deciding.move(case, trigger, f"{event.by} has released it: {event.reason}", now, by=event.by)
        self._deciding.reconsider(self._cases.by_node[event.node], now)

    def _forget(self, event: NodeForgotten, now: float) -> None:
        case = self._cases.known(event.node)
        if case.online:
            raise Refused(f"{event.node} is there: stop its agent first, or hold it to keep muster's hands off it")
        self._saying.note(event.node, "forgotten", f"forgotten by {event.by}: {event.reason}")
        self._deciding.telling.forget(event.node)
        new = {"state": ServiceState.ACCEPTING, "since": now, "hold": None, "transition": None, "taken_out": ()}
        self._deciding.reconsider(self._cases.change(case, gone=True, **new), now)

    def _lift(self, event: FreezeLifted) -> None:
        lifted = [event.cause for event in self._deciding.mass_events.lift()]
        if not lifted:
            raise Refused("nothing is frozen: nodes are taken out as the budget lets them")
        for cause in lifted:
            for node in self._deciding.mass_events.nodes_with(cause):
                self._cases.change(self._cases.by_node[node], let_pass=cause, frozen_by=None)
        text = f"{event.by} lets nodes be taken out again in spite of {', '.join(lifted)}: {event.reason}"
        self._saying.alarm(text)


def _nothing_to_release(case: Case) -> str:
    if case.state is ServiceState.HELD:
        return f"{case.node} has work still, and only waits to go: release it untested to let pass what was found"
    return f"there is nothing to release {case.node} from: it is {case.state} and nobody holds it"


def _not_released(case: Case) -> str:
    return f"who only observes tests nothing: release {case.node} untested, or set another quarantine.mode"
