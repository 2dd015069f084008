"""What actors report: how their schedulers have the nodes, and what came of transitions."""

from muster.transition import Effect
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    ActionEnded,
    AllTold,
    Command,
    LogResumedByHand,
    NodeSurveyed,
    Note,
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
from muster_coordinator.quarantine.folded import NOTHING, Folded
from muster_coordinator.quarantine.service_states import ServiceStates, note


class ActorIntake:
    """Takes in what actors report. With `corrects`, an actor whose scheduler differs is told again.

    A node that a person resumed at one scheduler is in service again. Without `resumes_everywhere` it stays as it is:
    the other schedulers keep it out, and it counts as away.
    """

    def __init__(self, states: ServiceStates, rules: Rules, *, corrects: bool, resumes_everywhere: bool) -> None:
        self._states = states
        self._rules = rules
        self._corrects = corrects
        self._resumes_everywhere = resumes_everywhere

    def survey(self, event: NodeSurveyed, now: float) -> Folded:
        """Takes in how a scheduler has a node. An actor that waits to be told again is there, so it is told at once."""
        node, actor = event.node.node, event.actor
        if node not in self._states.by_node:
            return NOTHING
        surveyed = after_survey(self._states.by_node[node], event)
        record = self._states.put(surveyed.record)
        commands: list[Command] = [note(record, about, text) for about, text in surveyed.notes]
        if self._corrects and not record.evidence.has_left:
            commands += self._correct(record, actor, now)
        latest = self._states.transitions.latest(node)
        is_waiting = latest is not None and latest.may_try(actor, now)
        if is_waiting and concerns_mode(self._states.by_node[node], latest, self._rules):
            commands += self._states.transitions.retry(node, (actor,))
        return Folded(commands, node)

    def end_action(self, event: ActionEnded, now: float) -> Folded:
        """Takes in what came of a transition at one actor."""
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
        self._note_let_in(event.node)
        states.look_at_retry(event.node)
        return Folded(commands)

    def note_told(self, event: AllTold, _: float) -> Folded:
        """Takes in that every actor was told a transition once."""
        commands = [*self._states.transitions.note_told(event.node, event.transition)]
        self._note_let_in(event.node)
        return Folded(commands)

    def _correct(self, record: QuarantineRecord, actor: str, now: float) -> list[Command]:
        """Has an actor brought to what was decided, unless a person decided otherwise there."""
        match diff(record, self._states.transitions.latest(record.node), actor):
            case None:
                return []
            case Difference.RESUMED_BY_HAND:
                return self._respect_resume(record, actor, now)
            case Difference.MISSING:
                drift = note(record, "drift", f"{actor} has it otherwise than decided, and is told again")
                return [drift, *self._states.transitions.retry(record.node, (actor,))]
            case Difference.UNTOLD:
                return self._states.announce(record, record.state, f"{actor} was never told so", now)

    def _respect_resume(self, record: QuarantineRecord, actor: str, now: float) -> list[Command]:
        """Holds a node that a person resumed at one scheduler, and lets it in at the others where that is wanted."""
        if not self._resumes_everywhere and record.decision.hold is not None:
            return []
        hold = hold_after_resume(record, actor, now, everywhere=self._resumes_everywhere)
        record = self._states.put(record.deciding(hold=hold))
        logged = LogResumedByHand(node=record.node, actor=actor, text=hold.reason)
        if not self._resumes_everywhere:
            return [logged, note(record, "service", f"stays {record.state}: {hold.reason}")]
        held = note(record, "held", f"held as it is by {hold.by}")
        return [logged, held, *self._states.step(record, Step.RETURN, hold.reason, now, by=hold.by)]

    def _note_let_in(self, node: str) -> None:
        """Notes that a node is in service again once no actor has still to do something for that."""
        if node in self._states.by_node and self._states.transitions.is_let_in(node):
            self._states.put(self._states.by_node[node].acting(shut_out_as=None))
