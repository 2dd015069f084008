"""What becomes known of nodes: online, silent or no longer listed; their checks and their findings."""

from muster.model import Name, ServiceState
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    BacklogDelivered,
    EvidenceChanged,
    EvidenceOutdated,
    NodeDescribed,
    NodeHeard,
    NodeLost,
    NodeNotListed,
)
from muster_coordinator.quarantine.actors import as_left
from muster_coordinator.quarantine.admission import Admission
from muster_coordinator.quarantine.backlogs import Backlogs
from muster_coordinator.quarantine.change import Change, note
from muster_coordinator.quarantine.membership import (
    departed_because,
    departure_news,
    described,
    has_left_in_service,
    heard,
    joined,
    taken_back,
)
from muster_coordinator.quarantine.policy import Policy, newly_spared, times_after
from muster_coordinator.quarantine.records import Records


class NodeIntake:
    """Says what each event changes about its node; None when it changes nothing. Only `backlogs` change here."""

    def __init__(self, records: Records, backlogs: Backlogs, admission: Admission, policy: Policy) -> None:
        self._records = records
        self._backlogs = backlogs
        self._admission = admission
        self._policy = policy

    def describe(self, event: NodeDescribed, now: float) -> Change:
        """Takes in what a node announces about itself."""
        record = self._records.by_node.get(event.node)
        change = self._join(event.node, None, now) if record is None else Change(record)
        after = described(change.record, event, now)
        news = departure_news(change.record, after)
        return change._replace(
            record=after, commands=(*change.commands, *(note(after, "policy", text) for text in news))
        )

    def hear(self, event: NodeHeard, now: float) -> Change:
        """Takes in that a node is online: for the first time, again, or still after a start."""
        self._backlogs.note_heard(event.node, now)
        record = self._records.by_node.get(event.node)
        if record is None or has_left_in_service(record):
            change = self._join(event.node, record, now)
        elif record.evidence.has_left:
            change = _take_back(record, now)
        else:
            change = Change(record)
        return change._replace(record=heard(change.record))

    def outdate(self, _: EvidenceOutdated, now: float) -> None:
        """Takes in that every node may have found something that the coordinator does not know."""
        records = self._records.by_node.values()
        self._backlogs.begin(record.node for record in records if not record.evidence.has_left)

    def take_delivery(self, event: BacklogDelivered, now: float) -> None:
        """Takes in that a node delivered some of its older runs."""
        self._backlogs.note_delivered(event.node, event.through, now)

    def take_evidence(self, event: EvidenceChanged, now: float) -> Change:
        """Takes in the findings that stand against a node."""
        record = self._records.known(event.node)
        if event.is_complete:
            self._backlogs.note_complete(event.node)
        elif not record.evidence.has_left:
            self._backlogs.note_incomplete(event.node, now)
        seen = times_after(record.evidence.seen, event.findings)
        after = record.with_evidence(
            findings=event.findings, seen=seen, is_fit=event.is_fit, unfit_because=event.unfit_because
        )
        return self._learn(record, after, now)

    def lose(self, event: NodeLost, now: float) -> Change:
        """Takes in that a node fell silent."""
        record = self._records.known(event.node)
        after = record.with_evidence(lost_at=now) if record.is_online else record
        return _leave_if_departed(self._learn(record, after, now))

    def drop_from_list(self, event: NodeNotListed, _: float) -> Change | None:
        """Takes in that a scheduler no longer lists a node."""
        record = self._records.by_node.get(event.node)
        if record is None or event.actor not in record.actors.observed:
            return None
        observed = {actor: seen for actor, seen in record.actors.observed.items() if actor != event.actor}
        return _leave_if_departed(Change(record.with_actor_status(observed=observed)))

    def _learn(self, before: QuarantineRecord, record: QuarantineRecord, now: float) -> Change:
        """Takes in evidence; the story says of each new error that does not require draining why."""
        spared = newly_spared(self._policy, before, record, now)
        return Change(record, tuple(note(record, "policy", text) for text in spared))

    def _join(self, node: Name, before: QuarantineRecord | None, now: float) -> Change:
        """A new node. Actors keep it out if the settings say so and the budget admits it."""
        record = joined(node, before, now)
        if not self._admission.keeps_new_out:
            return Change(record)
        if not self._admission.admits_new():
            return Change(record, (note(record, "service", f"New node not drained: {self._admission.budget_text}"),))
        record = record.with_decision(kept_out_as_new=True)
        return Change(record, transition_from=ServiceState.ACCEPTING, reason="new node, not accepted yet")


def _take_back(record: QuarantineRecord, now: float) -> Change:
    """A node that left while it was out is still out. Actors are called, unless muster leaves it alone."""
    back = taken_back(record, now)
    if back.left_alone_because is not None:
        return Change(back)
    return Change(back, transition_from=record.state, reason="it left while it was drained, and is back")


def _leave_if_departed(change: Change) -> Change:
    reason = departed_because(change.record)
    if reason is None:
        return change
    left = note(change.record, "left", reason)
    return change._replace(record=as_left(change.record), commands=(*change.commands, left))
