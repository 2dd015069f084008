"""How nodes join the fleet, leave it and come back."""

from collections import defaultdict
from collections.abc import Iterable

from muster.model import Name, ServiceState
from muster_coordinator.model.quarantine import OUT, ActorStatus, NodeDecision, QuarantineRecord
from muster_coordinator.model.quarantine_events import NodeDescribed
from muster_coordinator.quarantine.actors import as_left


def joined(node: Name, before: QuarantineRecord | None, now: float) -> QuarantineRecord:
    """A new node. If one of its name left before, its hold, its cordons and what actors keep out still count."""
    new = QuarantineRecord(node=node, decision=NodeDecision(since=now))
    if before is None:
        return new
    observed, shut_out_as = before.actors.observed, before.actors.shut_out_as
    kept = {name: getattr(before.decision, name) for name in ("hold", "cordoned_at", "failed_at", "rehearsed_at")}
    return QuarantineRecord(
        node=node,
        decision=new.decision.model_copy(update=kept),
        actors=ActorStatus(observed=observed, was_listed=bool(observed), shut_out_as=shut_out_as),
    )


def taken_back(record: QuarantineRecord, now: float) -> QuarantineRecord:
    """A node that left while it was out and is heard again: it stays out until it passes its tests.

    A name does not tell whether it is the same machine. Another machine must pass the same tests.
    """
    since = record.decision.since if record.state is ServiceState.CORDONED else now
    record = record.with_evidence(has_left=False)
    return record.with_decision(state=ServiceState.CORDONED, since=since, probation=None)


def described(record: QuarantineRecord, event: NodeDescribed, now: float) -> QuarantineRecord:
    """The record with what a node announces about itself.

    A node that is out must also pass the checks that it no longer announces but most nodes run. Otherwise a bad node
    could pass its probation by no longer announcing the checks that it fails.
    """
    owed = set(record.evidence.own_checks) & set(event.usual_checks) if record.state in OUT else set()
    own_checks = (*event.own_checks, *sorted(owed.difference(event.own_checks)))
    if event.departure != record.evidence.departure:
        record = record.with_evidence(departure=event.departure, departure_at=now)
    return record.with_evidence(domain=event.domain, own_checks=own_checks, silent_after_s=event.silent_after_s)


def heard(record: QuarantineRecord) -> QuarantineRecord:
    """The record of a node that is online. If it was silent and is CORDONED, it may be retested."""
    if not record.is_online and record.state is ServiceState.CORDONED:
        record = record.with_decision(retest_because="it was away and is back")
    return record.with_evidence(lost_at=None)


def departure_news(before: QuarantineRecord, after: QuarantineRecord) -> tuple[str, ...]:
    """What its agent announces about its departure now; nothing if that is not new."""
    was, departure = before.evidence.departure, after.evidence.departure
    if was == departure:
        return ()
    return (f"Leaving: {departure}" if departure else f"No longer leaving: {was}",)


def departed_because(record: QuarantineRecord) -> str | None:
    """Why a silent node has left: it announced that, or its scheduler dropped it; None when it has not.

    As long as a scheduler lists it, it may come back.
    """
    if record.evidence.has_left or record.is_online or record.actors.observed:
        return None
    if record.evidence.departure is not None:
        return f"Silent, as announced: {record.evidence.departure}"
    return "Silent, and no scheduler lists it any more" if record.actors.was_listed else None


def forgotten(record: QuarantineRecord, now: float) -> QuarantineRecord:
    """The record of a silent node that a person removed for good: if it is heard again, it is a new node."""
    drains: dict[str, tuple[float, ...]] = {"cordoned_at": (), "failed_at": (), "rehearsed_at": ()}
    return as_left(record.with_decision(state=ServiceState.ACCEPTING, since=now, hold=None, **drains))


def has_left_in_service(record: QuarantineRecord) -> bool:
    """Whether a node left the fleet while it was not out of service, and was not heard again."""
    return record.evidence.has_left and record.state not in OUT


def past_retention(records: Iterable[QuarantineRecord], before: float, left_before: float) -> set[str]:
    """The nodes past retention."""
    return {record.node for record in records if record.is_long_gone(before, left_before)}


def listed_by_actor(records: Iterable[QuarantineRecord]) -> dict[str, set[str]]:
    """By actor, the nodes that its scheduler had at the last survey."""
    listed: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        for actor in record.actors.observed:
            listed[actor].add(record.node)
    return listed
