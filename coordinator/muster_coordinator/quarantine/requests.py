"""What people ask for: hold, release, forget, and lifting the freeze of a mass event."""

from typing import NamedTuple

from muster.errors import Refused
from muster.model import ServiceState
from muster_coordinator.model.quarantine import FleetState, Hold, QuarantineRecord
from muster_coordinator.model.quarantine_events import HoldRequested, NodeForgotten, ReleaseRequested
from muster_coordinator.quarantine.desired import ARROWS, Rules, Step
from muster_coordinator.quarantine.mass_events import lifted
from muster_coordinator.quarantine.membership import forgotten


class Granted(NamedTuple):
    """What a request makes of a node's record: its story's note, and the step that it takes at once."""

    record: QuarantineRecord
    about: str
    text: str
    step: Step | None = None
    reason: str = ""


def grant(
    record: QuarantineRecord, event: HoldRequested | ReleaseRequested | NodeForgotten, rules: Rules, now: float
) -> Granted:
    """What comes of a request about one node; Refused when it is not valid."""
    match event:
        case HoldRequested():
            return hold(record, event, now)
        case ReleaseRequested():
            return release(record, event, rules, now)
        case NodeForgotten():
            return forget(record, event, now)


def hold(record: QuarantineRecord, event: HoldRequested, now: float) -> Granted:
    """Leaves a node as it is until it is released."""
    held = record.deciding(hold=Hold(by=event.by, reason=event.reason, at=now))
    return Granted(held, "held", f"held as it is by {event.by}: {event.reason}")


def release(record: QuarantineRecord, event: ReleaseRequested, rules: Rules, now: float) -> Granted:
    """Ends a hold, and lets a node come back: when it passed its tests, or at once when `untested`."""
    step = Step.RETURN if event.untested else Step.RETEST
    has_left, is_held = record.evidence.has_left, record.decision.hold is not None
    if has_left and not is_held:
        raise Refused(f"{record.node} has left the fleet: who comes under its name proves itself, or forget it")
    has_arrow = (record.state, step) in ARROWS and not has_left
    moves = has_arrow and (rules.decides or event.untested)
    if not is_held and not moves:
        raise Refused(_not_released(record) if has_arrow else _nothing_to_release(record))
    ignored_before = now if event.untested else record.decision.ignored_before
    released = record.deciding(hold=None, ignored_before=ignored_before)
    text = f"released by {event.by}: {event.reason}"
    reason = f"{event.by} has released it: {event.reason}"
    return Granted(released, "released", text, step if moves else None, reason)


def forget(record: QuarantineRecord, event: NodeForgotten, now: float) -> Granted:
    """Takes a silent node as one that has left for good."""
    if record.is_online:
        raise Refused(f"{event.node} is there: stop its agent first, or hold it to keep muster's hands off it")
    return Granted(forgotten(record, now), "forgotten", f"forgotten by {event.by}: {event.reason}")


def lift(fleet: FleetState) -> FleetState:
    """The fleet's state without the mass events that stand."""
    if not fleet.mass_events:
        raise Refused("nothing is frozen: nodes are taken out as the budget lets them")
    return lifted(fleet)


def _nothing_to_release(record: QuarantineRecord) -> str:
    if record.state is ServiceState.HELD:
        return f"{record.node} has work still, and only waits to go: release it untested to let pass what was found"
    return f"there is nothing to release {record.node} from: it is {record.state} and nobody holds it"


def _not_released(record: QuarantineRecord) -> str:
    return f"who only observes tests nothing: release {record.node} untested, or set another quarantine.mode"
