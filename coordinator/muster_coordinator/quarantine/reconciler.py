"""The quarantine as a level-triggered reconciler: one event in, commands out.

An event changes what is known about a node. Then the node is reconciled: `evaluate_policy` says what its evidence
requires, `desired` which state it should have, `Admission` whether it may be cordoned now. Nothing is queued for later,
so no outdated decision can be carried out. Every decision is made from the records as they are at that moment.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from muster.alarm import AlarmKind
from muster.model import Name, ServiceState, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model import quarantine_events as events
from muster_coordinator.model.findings import as_stored
from muster_coordinator.model.quarantine import OUT, QuarantineRecord, Requirement, Wait
from muster_coordinator.model.quarantine_events import QuarantineCommand, QuarantineEvent
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine import alarm_deliveries, case_view, probation, requests
from muster_coordinator.quarantine.actor_intake import ActorIntake
from muster_coordinator.quarantine.actors import concerns_mode
from muster_coordinator.quarantine.admission import Admission
from muster_coordinator.quarantine.alarm_texts import node_of
from muster_coordinator.quarantine.alarms import Alarms
from muster_coordinator.quarantine.desired import ARROWS, Rules, Step, desired
from muster_coordinator.quarantine.evaluation import after_evaluation
from muster_coordinator.quarantine.event_result import NOTHING, EventResult
from muster_coordinator.quarantine.node_intake import NodeIntake
from muster_coordinator.quarantine.policy import Policy, evaluate_policy
from muster_coordinator.quarantine.records import Records
from muster_coordinator.quarantine.service_states import ServiceStates, note
from muster_coordinator.quarantine.starting import QuarantineStart
from muster_coordinator.quarantine.transitions import Transitions


class Reconciler:
    """Decides about the service states of all nodes by `policy` and `settings`; `epoch` makes its ids unique."""

    def __init__(self, settings: QuarantineSettings, policy: Policy, epoch: int) -> None:
        self._settings = settings
        self._policy = policy
        self._rules = Rules.of(settings)
        self._epoch, self._ids = epoch, 0
        self._now = 0.0  # the time of the last event
        self._records = Records()
        self._transitions = Transitions()
        self._admission = Admission(settings, self._records)
        self._states = ServiceStates(self._records, self._transitions, self._admission, self._rules, self._new_id)
        self._alarms = Alarms(settings, self._records, self._transitions, self._rules)
        self._start = QuarantineStart(self._states, self._admission, self._rules, settings.mode)
        nodes = NodeIntake(self._states, self._admission, policy, keep_new_out=settings.keep_new_out)
        actors = ActorIntake(
            self._states,
            self._rules,
            corrects=settings.mode == "enforce",
            resumes_everywhere=settings.resume_by_hand == "everywhere",
        )
        self._take: Mapping[type, Callable[[Any, float], EventResult]] = {
            events.Restored: self._restore,
            events.NodeDescribed: nodes.describe,
            events.NodeHeard: nodes.hear,
            events.NodeLost: nodes.lose,
            events.NodeNotListed: nodes.drop_from_list,
            events.EvidenceChanged: nodes.take_evidence,
            events.EvidenceOutdated: nodes.outdate,
            events.BacklogDelivered: nodes.take_delivery,
            events.NodeErased: self._erase,
            events.NodeSurveyed: actors.survey,
            events.ActionEnded: actors.end_action,
            events.AllActorsCalled: actors.note_all_called,
            events.AlarmTaken: self._note_alarm_taken,
            events.AlarmDelivered: self._note_alarm_delivered,
            events.TestEnded: self._end_test,
            events.HoldRequested: self._grant,
            events.ReleaseRequested: self._grant,
            events.NodeForgotten: self._grant,
            events.FreezeLifted: self._lift_freeze,
            events.TimePassed: self._pass_time,
        }

    @property
    def records(self) -> Mapping[str, QuarantineRecord]:
        """The record of every node, by name."""
        return self._records.by_node

    def latest_transition(self, node: str) -> TransitionRecord | None:
        """A node's last transition with its outcomes; None when there is none, or it no longer counts."""
        return self._transitions.latest(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case as the API serves it; KeyError when there is none."""
        record, waits_for = self.records[node], self.records[node].decision.waits_for
        text = "" if waits_for is None else self._admission.text_of(record, waits_for, self._now)
        latest = self._transitions.latest(node)
        return case_view.case_view(record, latest, self._admission.fleet, self._settings, self._policy, waits_for=text)

    def fleet_view(self) -> QuarantineView:
        """What is decided about the whole fleet."""
        return case_view.fleet_view(
            self._settings,
            self._records.census,
            self.records.values(),
            self._admission.fleet,
            alarms=self._alarms.standing(self._admission.fleet),
            catching_up=len(self._admission.catching_up),
        )

    def next_look(self, now: float) -> float | None:
        """When time alone may change a decision, at the earliest; None when only an event may."""
        moments = (self._records.next_deadline, self._admission.next_change(now))
        return min((moment for moment in moments if moment is not None), default=None)

    def handle(self, event: QuarantineEvent, now: float) -> list[QuarantineCommand]:
        """The commands that follow from `event`; Refused when a request is not valid, and then nothing has changed.

        The saves come first, so that changes are stored before an actor is called.
        """
        now = self._now = as_stored(now)
        commands, node = self._take[type(event)](event, now)
        if node is not None:
            commands = commands + self._reconcile(node, now)
        changed = self._records.take_changed()
        self._alarms.count({*(record.node for record in changed), *_nodes_with_news(commands)})
        if isinstance(event, events.TimePassed):
            commands = commands + self._raise_alarms(now)
        saves: list[QuarantineCommand] = [events.SaveRecord(record=record) for record in changed]
        if (fleet := self._admission.take_unsaved()) is not None:
            saves.append(events.SaveFleetState(state=fleet))
        return saves + commands

    # Events

    def _restore(self, event: events.Restored, now: float) -> EventResult:
        """Continues from what is stored."""
        commands, _ = self._start.restore(event, now)
        self._alarms.count(self.records)
        return EventResult([*commands, *alarm_deliveries.resent(self._admission.fleet)])

    def _note_alarm_taken(self, event: events.AlarmTaken, _: float) -> EventResult:
        self._admission.fleet = alarm_deliveries.after_taken(self._admission.fleet, event)
        return NOTHING

    def _note_alarm_delivered(self, event: events.AlarmDelivered, _: float) -> EventResult:
        self._admission.fleet = alarm_deliveries.after_delivered(self._admission.fleet, event)
        return NOTHING

    def _end_test(self, event: events.TestEnded, now: float) -> EventResult:
        """Takes in the result of a test or a second opinion. A node that fails in PROBATION is cordoned again."""
        record = self.records.get(event.node)
        if record is None or not record.awaits(event.test):
            return NOTHING
        on_probation = record.decision.probation
        if on_probation is None or on_probation.test != event.test:
            return self._take_tested(probation.after_opinion(record, event.test, event.verdict, now))
        check = on_probation.waiting[0].check
        result = note(record, "test", f"{check}: {event.verdict}", event.test)
        may_fail = record.state is ServiceState.PROBATION and record.left_alone_because is None
        if event.verdict is Verdict.FAIL and may_fail:
            return EventResult([result, *self._states.step(record, Step.FAIL, f"failed {check}", now)], event.node)
        commands, node = self._take_tested(probation.after_answer(record, event.verdict, self._rules, now))
        return EventResult([result, *commands], node)

    def _take_tested(self, tested: probation.Tested) -> EventResult:
        record = self._states.put(tested.record)
        for moment in tested.look_again_at:
            self._records.look_at(record.node, moment)
        return EventResult([*tested.commands], record.node)

    def _grant(
        self, event: events.HoldRequested | events.ReleaseRequested | events.NodeForgotten, now: float
    ) -> EventResult:
        """Carries out a person's request about a node. A hold leaves it as it is: nothing follows from it."""
        granted = requests.grant(self._records.known(event.node), event, self._rules, now)
        record = self._states.put(granted.record)
        commands: list[QuarantineCommand] = [note(record, granted.about, granted.text), self._asked(event, now)]
        if granted.step is not None:
            commands += self._states.step(record, granted.step, granted.reason, now, by=event.by)
        elif granted.calls_again:
            commands += self._states.announce(record, record.state, granted.reason, now, by=event.by)
        return EventResult(commands, None if isinstance(event, events.HoldRequested) else event.node)

    def _lift_freeze(self, event: events.FreezeLifted, now: float) -> EventResult:
        """Resumes draining in spite of mass events. Waiting nodes are cordoned with the next tick."""
        self._admission.fleet = requests.lift(self._admission.fleet)
        return EventResult([self._asked(event, now)])

    def _asked(self, request: events.QuarantineRequest, now: float) -> QuarantineCommand:
        return events.SaveRequest(asked=events.Asked(id=self._new_id("r"), at=now, request=request))

    def _erase(self, event: events.NodeErased, now: float) -> EventResult:
        """Forgets a node past retention."""
        record = self._records.known(event.node)
        self._transitions.erase(record.node)
        self._admission.catching_up.note_complete(record.node)
        self._records.remove(record.node)
        self._count_causes(record.decision.requirement, now=now)
        erased = note(record, "erased", "Deleted: away for longer than nodes are kept")
        return EventResult([erased, events.EraseNode(node=record.node)])

    def _pass_time(self, _: events.TimePassed, now: float) -> EventResult:
        """Cordons waiting nodes that are admitted now, and reconciles the nodes whose time has come."""
        commands: list[QuarantineCommand] = []
        self._admission.catching_up.pass_time(now)
        for record in self._admission.take_changed(now):
            commands += self._reconcile(record.node, now)
        for node in self._records.take_due(now):
            latest = self._transitions.latest(node)
            if latest is not None and concerns_mode(self.records[node], latest, self._rules):
                due = latest.due(now)
                commands += self._transitions.retry(node, due) if due else ()
            self._states.look_at_retry(node)
            commands += self._reconcile(node, now)
        return EventResult(commands)

    def _raise_alarms(self, now: float) -> list[QuarantineCommand]:
        """Raises and ends alarms with this tick."""
        fleet, news = self._alarms.look(self._admission.fleet, now)
        self._admission.fleet = alarm_deliveries.after_news(fleet, news)
        commands: list[QuarantineCommand] = []
        for alarm in news:
            node = node_of(alarm.subject) if alarm.kind is AlarmKind.ACTION else None
            if node is not None and node in self.records:
                commands.append(note(self.records[node], "alarm", alarm.text))
            commands.append(events.SendAlarm(alarm=alarm))
        return commands

    # Reconciling

    def _reconcile(self, node: str, now: float) -> list[QuarantineCommand]:
        """Brings a node to the state that it should have. A node that has just gone out may begin its tests at once."""
        commands = [*self._evaluate(self.records[node], now), *self._test(node, now)]
        record = self.records[node]
        target = desired(record, self._rules, now)
        self._records.look_at(node, target.look_again_at)
        if target.step is None:
            return commands
        if target.step is Step.CORDON:
            commands += self._cordon(record, target.reason, now)
        else:
            commands += self._states.step(record, target.step, target.reason, now)
        has_gone_out = self.records[node].state in OUT and self.records[node].state is not record.state
        return commands + self._reconcile(node, now) if has_gone_out else commands

    def _evaluate(self, record: QuarantineRecord, now: float) -> list[QuarantineCommand]:
        """Takes in what the policy requires of a node now; its story gets what is new."""
        result = evaluate_policy(self._policy, record, now)
        self._records.look_at(record.node, result.next_change)
        evaluated = after_evaluation(record, result, now)
        self._states.put(evaluated.record)
        before = record.decision.requirement
        if result.requirement != before:
            self._count_causes(before, result.requirement, now=now)
        return [*evaluated.notes]

    def _count_causes(self, *requirements: Requirement | None, now: float) -> None:
        """Counts the nodes with these causes, which may begin or end a mass event."""
        for cause in dict.fromkeys(requirement.cause for requirement in requirements if requirement is not None):
            self._admission.count_cause(cause, now)

    def _test(self, node: str, now: float) -> list[QuarantineCommand]:
        """Starts second opinions, and continues the tests of a node that is new or out."""
        commands, _ = self._take_tested(probation.second_opinions(self.records[node], self._rules, self._new_id, now))
        if probation.is_tested(self.records[node], self._rules):
            commands += self._take_tested(
                probation.continue_tests(self.records[node], self._rules, self._new_id, now)
            ).commands
        return commands

    def _cordon(self, record: QuarantineRecord, reason: str, now: float) -> list[QuarantineCommand]:
        """Cordons a node, or has it wait. A node that is catching up stays as it is: its fault may have cleared."""
        wait = self._admission.wait_of(record, now)
        if wait is None:
            return self._states.step(record, Step.CORDON, reason, now)
        text = self._admission.text_of(record, wait, now)
        is_news = record.decision.waits_for is not wait
        record = record.with_decision(waits_for=wait)
        if wait is Wait.CATCHING_UP:
            self._states.put(record)
            return []
        has_mass_event = wait is Wait.MASS_EVENT
        if (record.state, Step.WAIT) in ARROWS and not has_mass_event:
            return self._states.step(record, Step.WAIT, text, now)
        record = self._states.put(record)
        if has_mass_event:
            return [self._states.story(record, record.state, text, now)] if is_news else []
        is_held = record.state is ServiceState.HELD
        is_unannounced = is_held and not self._states.latest_leads_to(record.node, ServiceState.HELD)
        is_due = is_unannounced and self._admission.waits_long(record)
        return self._states.announce(record, record.state, text, now) if is_due else []

    def _new_id(self, kind: str) -> Name:
        """A new id; its first letter, `kind`, tells people what it is about."""
        self._ids += 1
        return f"{kind}{self._epoch}-{self._ids}"


def _nodes_with_news(commands: Iterable[QuarantineCommand]) -> Iterator[str]:
    """The nodes with a new transition or outcome, and those that are forgotten."""
    for command in commands:
        if isinstance(command, events.SaveTransition):
            yield command.record.transition.node
        elif isinstance(command, events.EraseNode):
            yield command.node
