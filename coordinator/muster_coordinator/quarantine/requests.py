"""Requests of people: hold, release, forget, and lifting the freeze of a mass event."""

from muster.errors import Refused
from muster.model import ServiceState
from muster.transition import Mark
from muster_coordinator.model.quarantine import OUT, FleetState, Hold, QuarantineRecord
from muster_coordinator.model.quarantine_events import HoldRequested, NodeForgotten, ReleaseRequested
from muster_coordinator.quarantine.change import Change, note
from muster_coordinator.quarantine.desired import ARROWS, Rules, StateStep
from muster_coordinator.quarantine.mass_events import lifted
from muster_coordinator.quarantine.membership import forgotten


def grant(
    record: QuarantineRecord, event: HoldRequested | ReleaseRequested | NodeForgotten, rules: Rules, now: float
) -> Change:
    """Grants a request about one node; Refused when it is not valid."""
    match event:
        case HoldRequested():
            return hold(record, event, now)
        case ReleaseRequested():
            return release(record, event, rules, now)
        case NodeForgotten():
            return forget(record, event, now)


def hold(record: QuarantineRecord, event: HoldRequested, now: float) -> Change:
    """Leaves a node as it is until it is released."""
    held = record.with_decision(hold=Hold(by=event.by, reason=event.reason, at=now))
    return Change(held, (note(held, "held", f"hold by {event.by}: {event.reason}"),))


def release(record: QuarantineRecord, event: ReleaseRequested, rules: Rules, now: float) -> Change:
    """Ends a hold, and returns a node to service: when it passed its tests, or at once when `untested`."""
    step = StateStep.RETURN if event.untested else StateStep.RETEST
    has_left, is_held = record.evidence.has_left, record.decision.hold is not None
    if has_left and not is_held:
        forget = f"or run `muster node forget {record.node}`"
        raise Refused(f"{record.node} has left the fleet: a node that joins under its name is tested first, {forget}")
    has_arrow = (record.state, step) in ARROWS and not has_left
    takes_step = has_arrow and (rules.decides or event.untested)
    if not is_held and not takes_step:
        raise Refused(_not_released(record) if has_arrow else _nothing_to_release(record))
    ignored_before = now if event.untested else record.decision.ignored_before
    released = record.with_decision(hold=None, ignored_before=ignored_before)
    text = f"released by {event.by}: {event.reason}"
    story = note(released, "released", text)
    if takes_step:
        return Change(released, (story,), step=step, reason=text, by=event.by)
    again_as = record.state if is_undone(record) else None
    return Change(released, (story,), transition_from=again_as, reason=text, by=event.by)


def is_undone(record: QuarantineRecord) -> bool:
    """Whether a node is out, and a person resumed it at a scheduler."""
    return record.state in OUT and any(seen.mark is Mark.UNDONE for seen in record.actors.observed.values())


def forget(record: QuarantineRecord, event: NodeForgotten, now: float) -> Change:
    """Removes a silent node from the fleet for good."""
    if record.is_online:
        raise Refused(f"{event.node} is online: stop its agent first, or hold the node so that muster leaves it alone")
    return Change(forgotten(record, now), (note(record, "forgotten", f"forgotten by {event.by}: {event.reason}"),))


def lift(fleet: FleetState) -> FleetState:
    """The fleet's state without the mass events that stand."""
    if not fleet.mass_events:
        raise Refused("nothing is frozen: there is no mass event")
    return lifted(fleet)


def _nothing_to_release(record: QuarantineRecord) -> str:
    if record.state is ServiceState.HELD:
        return f"{record.node} is still in service: to keep it there in spite of its faults, release it with --untested"
    return f"{record.node} is {record.state} and has no hold; nothing to release"


def _not_released(record: QuarantineRecord) -> str:
    return f"in observe mode no node is tested: release {record.node} with --untested, or change quarantine.mode"
