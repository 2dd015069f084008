"""What actors report: the state of nodes at their schedulers, and the outcome of transitions."""

from muster.transition import Effect
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    ActionEnded,
    AllActorsCalled,
    LogResumedByHand,
    NodeSurveyed,
    Note,
    QuarantineCommand,
)
from muster_coordinator.quarantine.actors import (
    Difference,
    after_outcome,
    after_survey,
    concerns_mode,
    diff,
    hold_after_resume,
)
from muster_coordinator.quarantine.desired import Rules, Step
from muster_coordinator.quarantine.event_result import NOTHING, EventResult
from muster_coordinator.quarantine.service_states import ServiceStates, note


class ActorIntake:
    """Takes in what actors report. With `corrects`, a scheduler that differs from the decision is corrected.

    A node that a person resumed at one scheduler is in service again. Without `resumes_everywhere` it stays as it is:
    the other schedulers keep it drained, and it counts as away.
    """

    def __init__(self, states: ServiceStates, rules: Rules, *, corrects: bool, resumes_everywhere: bool) -> None:
        self._states = states
        self._rules = rules
        self._corrects = corrects
        self._resumes_everywhere = resumes_everywhere

    def survey(self, event: NodeSurveyed, now: float) -> EventResult:
        """Takes in the state of a node at a scheduler. An actor that answers a survey can be retried at once."""
        node, actor = event.node.node, event.actor
        if node not in self._states.by_node:
            return NOTHING
        surveyed = after_survey(self._states.by_node[node], event)
        record = self._states.put(surveyed.record)
        commands: list[QuarantineCommand] = [note(record, about, text) for about, text in surveyed.notes]
        if self._corrects and not record.evidence.has_left:
            commands += self._correct(record, actor, now)
        latest = self._states.transitions.latest(node)
        is_waiting = latest is not None and latest.may_try(actor, now)
        if is_waiting and concerns_mode(self._states.by_node[node], latest, self._rules):
            commands += self._states.transitions.retry(node, (actor,))
        return EventResult(commands, node)

    def end_action(self, event: ActionEnded, now: float) -> EventResult:
        """Takes in the outcome of a transition at one actor."""
        states = self._states
        known = states.transitions.known(event.node, event.transition)
        if known is None:
            return NOTHING
        before = known.outcomes.get(event.actor)
        commands = [*states.transitions.note_outcome(event, now)]
        if before is None or (before.effect, before.detail) != (event.effect, event.detail):
            text = f"{event.actor}: {event.effect}: {event.detail}"
            commands.append(Note(node=event.node, about="action", text=text, cause=event.transition))
        if event.effect is Effect.DONE and event.node in states.by_node:
            states.put(after_outcome(states.by_node[event.node], known.transition, event.actor))
        self._note_uncordoned(event.node)
        states.look_at_retry(event.node)
        return EventResult(commands)

    def note_all_called(self, event: AllActorsCalled, _: float) -> EventResult:
        """Takes in that every actor was called once for a transition."""
        commands = [*self._states.transitions.note_all_called(event.node, event.transition)]
        self._note_uncordoned(event.node)
        return EventResult(commands)

    def _correct(self, record: QuarantineRecord, actor: str, now: float) -> list[QuarantineCommand]:
        """Corrects a scheduler that differs from the decision, unless a person made the difference."""
        match diff(record, self._states.transitions.latest(record.node), actor):
            case None:
                return []
            case Difference.RESUMED_BY_HAND:
                return self._respect_resume(record, actor, now)
            case Difference.MISSING:
                drift = note(record, "drift", f"{actor.capitalize()} state differs from the decision; reapplying")
                return [drift, *self._states.transitions.retry(record.node, (actor,))]
            case Difference.NEVER_CALLED:
                return self._states.announce(record, record.state, f"{actor} was not called for this decision yet", now)

    def _respect_resume(self, record: QuarantineRecord, actor: str, now: float) -> list[QuarantineCommand]:
        """Holds a node that a person resumed at one scheduler, and resumes it at the others if the settings say so."""
        if not self._resumes_everywhere and record.decision.hold is not None:
            return []
        hold = hold_after_resume(record, actor, now, everywhere=self._resumes_everywhere)
        record = self._states.put(record.with_decision(hold=hold))
        logged = LogResumedByHand(node=record.node, actor=actor, text=hold.reason)
        if not self._resumes_everywhere:
            return [logged, note(record, "service", f"stays {record.state}: {hold.reason}")]
        held = note(record, "held", f"hold by {hold.by}")
        return [logged, held, *self._states.step(record, Step.RETURN, hold.reason, now, by=hold.by)]

    def _note_uncordoned(self, node: str) -> None:
        """Notes that a node is in service again once every actor has uncordoned it."""
        if node in self._states.by_node and self._states.transitions.is_uncordoned(node):
            self._states.put(self._states.by_node[node].with_actor_status(shut_out_as=None))
