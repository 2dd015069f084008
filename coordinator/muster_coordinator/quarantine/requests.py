"""Requests of people: hold, release, forget, and lifting the freeze of a mass event."""

from typing import NamedTuple

from muster.errors import Refused
from muster.model import ServiceState
from muster.transition import Mark
from muster_coordinator.model.quarantine import OUT, FleetState, Hold, QuarantineRecord
from muster_coordinator.model.quarantine_events import HoldRequested, NodeForgotten, ReleaseRequested
from muster_coordinator.quarantine.desired import ARROWS, Rules, Step
from muster_coordinator.quarantine.mass_events import lifted
from muster_coordinator.quarantine.membership import forgotten


class Granted(NamedTuple):
    """The record after a request, the entry of its story, and the step that the node takes at once.

    `calls_again`: the node keeps its state, and actors are called for it again.
    """

    record: QuarantineRecord
    about: str
    text: str
    step: Step | None = None
    reason: str = ""
    calls_again: bool = False


def grant(
    record: QuarantineRecord, event: HoldRequested | ReleaseRequested | NodeForgotten, rules: Rules, now: float
) -> Granted:
    """Grants a request about one node; Refused when it is not valid."""
    match event:
        case HoldRequested():
            return hold(record, event, now)
        case ReleaseRequested():
            return release(record, event, rules, now)
        case NodeForgotten():
            return forget(record, event, now)


def hold(record: QuarantineRecord, event: HoldRequested, now: float) -> Granted:
    """Leaves a node as it is until it is released."""
    held = record.with_decision(hold=Hold(by=event.by, reason=event.reason, at=now))
    return Granted(held, "held", f"hold by {event.by}: {event.reason}")


def release(record: QuarantineRecord, event: ReleaseRequested, rules: Rules, now: float) -> Granted:
    """Ends a hold, and returns a node to service: when it passed its tests, or at once when `untested`."""
    step = Step.RETURN if event.untested else Step.RETEST
    has_left, is_held = record.evidence.has_left, record.decision.hold is not None
    if has_left and not is_held:
        forget = f"or run `muster node forget {record.node}`"
        raise Refused(f"{record.node} has left the fleet: a node that joins under its name is tested first, {forget}")
    has_arrow = (record.state, step) in ARROWS and not has_left
    changes_state = has_arrow and (rules.decides or event.untested)
    if not is_held and not changes_state:
        raise Refused(_not_released(record) if has_arrow else _nothing_to_release(record))
    ignored_before = now if event.untested else record.decision.ignored_before
    released = record.with_decision(hold=None, ignored_before=ignored_before)
    text = f"released by {event.by}: {event.reason}"
    calls_again = not changes_state and is_undone(record)
    return Granted(released, "released", text, step if changes_state else None, reason=text, calls_again=calls_again)


def is_undone(record: QuarantineRecord) -> bool:
    """Whether a node is out, and a person resumed it at a scheduler."""
    return record.state in OUT and any(seen.mark is Mark.UNDONE for seen in record.actors.observed.values())


def forget(record: QuarantineRecord, event: NodeForgotten, now: float) -> Granted:
    """Removes a silent node from the fleet for good."""
    if record.is_online:
        raise Refused(f"{event.node} is online: stop its agent first, or hold the node so that muster leaves it alone")
    return Granted(forgotten(record, now), "forgotten", f"forgotten by {event.by}: {event.reason}")


def lift(fleet: FleetState) -> FleetState:
    """The fleet's state without the mass events that stand."""
    if not fleet.mass_events:
        raise Refused("nothing is frozen: there is no mass event")
    return lifted(fleet)


def _nothing_to_release(record: QuarantineRecord) -> str:
    if record.state is ServiceState.HELD:
        return f"{record.node} is still in service: to keep it there in spite of its faults, release it with --untested"
    return f"nothing to release {record.node} from: it is {record.state}, and there is no hold"


def _not_released(record: QuarantineRecord) -> str:
    return f"in observe mode no node is tested: release {record.node} with --untested, or change quarantine.mode"
