"""What becomes known of nodes: online, silent or no longer listed; their checks and their findings."""

from muster.model import ServiceState
from muster_coordinator.model.quarantine import OUT, QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    BacklogDelivered,
    EvidenceChanged,
    EvidenceOutdated,
    NodeDescribed,
    NodeHeard,
    NodeLost,
    NodeNotListed,
    QuarantineCommand,
)
from muster_coordinator.quarantine.actors import as_left
from muster_coordinator.quarantine.admission import Admission
from muster_coordinator.quarantine.event_result import NOTHING, EventResult
from muster_coordinator.quarantine.membership import described, heard, is_unlisted, joined, taken_back
from muster_coordinator.quarantine.policy import Policy, newly_spared, times_after
from muster_coordinator.quarantine.service_states import ServiceStates, note


class NodeIntake:
    """Takes in what becomes known of nodes. With `keep_new_out`, actors keep a new node out until it is accepted."""

    def __init__(self, states: ServiceStates, admission: Admission, policy: Policy, *, keep_new_out: bool) -> None:
        self._states = states
        self._admission = admission
        self._policy = policy
        self._keep_new_out = keep_new_out

    def describe(self, event: NodeDescribed, now: float) -> EventResult:
        """Takes in what a node announces about itself."""
        commands = [] if event.node in self._states.by_node else self._join(event.node, now)
        self._states.put(described(self._states.by_node[event.node], event))
        return EventResult(commands, event.node)

    def hear(self, event: NodeHeard, now: float) -> EventResult:
        """Takes in that a node is online: for the first time, again, or still after a start."""
        self._admission.catching_up.note_heard(event.node, now)
        record = self._states.by_node.get(event.node)
        commands: list[QuarantineCommand] = []
        if record is None or (record.evidence.has_left and record.state not in OUT):
            commands = self._join(event.node, now)
        elif record.evidence.has_left:
            commands = self._take_back(record, now)
        self._states.put(heard(self._states.by_node[event.node]))
        return EventResult(commands, event.node)

    def outdate(self, _: EvidenceOutdated, now: float) -> EventResult:
        """Takes in that every node may have found something that the coordinator does not know."""
        records = self._states.by_node.values()
        self._admission.catching_up.begin(record.node for record in records if not record.evidence.has_left)
        return NOTHING

    def take_delivery(self, event: BacklogDelivered, now: float) -> EventResult:
        """Takes in that a node delivered some of its older runs."""
        self._admission.catching_up.note_delivered(event.node, event.through, now)
        return NOTHING

    def lose(self, event: NodeLost, now: float) -> EventResult:
        """Takes in that a node fell silent."""
        record = self._states.records.known(event.node)
        notes = self._learn(record, record.with_evidence(lost_at=now), now) if record.is_online else []
        return EventResult(notes + self._leave_if_unlisted(event.node), event.node)

    def take_evidence(self, event: EvidenceChanged, now: float) -> EventResult:
        """Takes in the findings that stand against a node."""
        record = self._states.records.known(event.node)
        if event.is_complete:
            self._admission.catching_up.note_complete(event.node)
        elif not record.evidence.has_left:
            self._admission.catching_up.note_incomplete(event.node, now)
        seen = times_after(record.evidence.seen, event.findings)
        after = record.with_evidence(
            findings=event.findings, seen=seen, is_fit=event.is_fit, unfit_because=event.unfit_because
        )
        return EventResult(self._learn(record, after, now), event.node)

    def drop_from_list(self, event: NodeNotListed, now: float) -> EventResult:
        """Takes in that a scheduler no longer lists a node."""
        record = self._states.by_node.get(event.node)
        if record is None or event.actor not in record.actors.observed:
            return NOTHING
        observed = {actor: seen for actor, seen in record.actors.observed.items() if actor != event.actor}
        self._states.put(record.with_actor_status(observed=observed))
        return EventResult(self._leave_if_unlisted(event.node), event.node)

    def _learn(self, before: QuarantineRecord, record: QuarantineRecord, now: float) -> list[QuarantineCommand]:
        """Takes in evidence; the story says of each new error that does not require draining why."""
        self._states.put(record)
        return [note(record, "policy", text) for text in newly_spared(self._policy, before, record, now)]

    def _join(self, node: str, now: float) -> list[QuarantineCommand]:
        """Takes a node in as a new one; actors keep it out if the settings say so and the budget has room."""
        record = self._states.put(joined(node, self._states.by_node.get(node), now))
        if not self._keep_new_out:
            return []
        if not self._admission.lets_keep_out():
            return [note(record, "service", "new node, not kept out: the budget has no room")]
        record = self._states.put(record.with_decision(kept_out_as_new=True))
        return self._states.announce(record, ServiceState.ACCEPTING, "new node, not accepted yet", now)

    def _take_back(self, record: QuarantineRecord, now: float) -> list[QuarantineCommand]:
        """Takes a node that left while it was out as still out; actors are called unless muster leaves it alone."""
        before, record = record.state, self._states.put(taken_back(record, now))
        if record.left_alone_because is not None:
            return []
        reason = "it left while it was drained, and is back"
        return self._states.announce(record, before, reason, now)

    def _leave_if_unlisted(self, node: str) -> list[QuarantineCommand]:
        record = self._states.by_node[node]
        if not is_unlisted(record):
            return []
        self._states.put(as_left(record))
        return [note(record, "left", "Silent, and no scheduler lists it any more")]
