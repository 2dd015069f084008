"""The quarantine as a level-triggered reconciler: one event in, commands out.

An event changes what is known about a node: a function over its record returns a `Change`. Then the node is reconciled:
`evaluate_policy` says what its evidence requires, `desired` which state it should have, `Admission` whether it may be
cordoned now. Nothing is queued for later, so no outdated decision can be carried out. Every decision is made from the
records as they are at that moment.
"""

from collections.abc import Callable, Mapping, Set
from typing import Any

from muster.model import Name, ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Effect
from muster_coordinator.model import quarantine_events as events
from muster_coordinator.model.findings import as_stored
from muster_coordinator.model.quarantine import OUT, FleetState, QuarantineRecord, Requirement
from muster_coordinator.model.quarantine_events import QuarantineCommand, QuarantineEvent
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine import (
    actors,
    alarm_deliveries,
    case_view,
    mass_events,
    probation,
    requests,
    starting,
)
from muster_coordinator.quarantine.admission import Admission
from muster_coordinator.quarantine.alarms import Alarms
from muster_coordinator.quarantine.backlogs import Backlogs
from muster_coordinator.quarantine.change import Change, note
from muster_coordinator.quarantine.desired import Rules, StateStep, desired
from muster_coordinator.quarantine.evaluation import after_evaluation
from muster_coordinator.quarantine.ids import Ids
from muster_coordinator.quarantine.membership import has_left_in_service
from muster_coordinator.quarantine.node_intake import NodeIntake
from muster_coordinator.quarantine.policy import Policy, evaluate_policy
from muster_coordinator.quarantine.records import Records
from muster_coordinator.quarantine.service_states import ServiceStates
from muster_coordinator.quarantine.transitions import Transitions


class Reconciler:
    """Decides about the service states of all nodes by `policy` and `settings`; `epoch` makes its ids unique."""

    def __init__(self, settings: QuarantineSettings, policy: Policy, epoch: int) -> None:
        self._settings = settings
        self._policy = policy
        self._rules = Rules.of(settings)
        self._ids = Ids(epoch)
        self._now = 0.0  # the time of the last event
        self._records = Records()
        self._transitions = Transitions()
        self._backlogs = Backlogs()
        self._fleet = self._saved_fleet = FleetState()
        self._admission = Admission(settings, self._records, self._backlogs, self._rules)
        self._admitted_by: tuple[object, ...] = ()  # what the waiting nodes were last admitted by
        self._states = ServiceStates(self._records, self._transitions, self._admission, self._rules, self._ids)
        self._alarms = Alarms(settings, self._records, self._transitions, self._rules)
        nodes = NodeIntake(self._records, self._backlogs, self._admission, policy)
        self._take: Mapping[type, Callable[[Any, float], Change | list[QuarantineCommand] | None]] = {
            events.Restored: self._restore,
            events.NodeDescribed: nodes.describe,
            events.NodeHeard: nodes.hear,
            events.NodeLost: nodes.lose,
            events.NodeNotListed: nodes.drop_from_list,
            events.EvidenceChanged: nodes.take_evidence,
            events.EvidenceOutdated: nodes.outdate,
            events.BacklogDelivered: nodes.take_delivery,
            events.NodeErased: self._erase,
            events.NodeSurveyed: self._survey,
            events.ActionEnded: self._end_action,
            events.AllActorsCalled: self._note_all_called,
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

    def awaits(self, node: str, run: str) -> bool:
        """Whether the run is the test that was requested from the node."""
        record = self.records.get(node)
        return record is not None and record.awaits(run)

    def has_left_in_service(self, node: str) -> bool:
        """Whether the node left the fleet while it was not out of service, and was not heard again."""
        record = self.records.get(node)
        return record is not None and has_left_in_service(record)

    @property
    def failed(self) -> Mapping[str, Set[str]]:
        """By actor, the nodes whose latest transition it has failed to carry out."""
        return self._transitions.failed

    @property
    def pending(self) -> Set[str]:
        """The nodes whose latest transition the actors have not all carried out yet."""
        return self._transitions.pending

    def latest_transition(self, node: str) -> TransitionRecord | None:
        """A node's last transition with its outcomes; None when there is none, or it no longer counts."""
        return self._transitions.latest(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case as the API serves it; KeyError when there is none."""
        record, wait = self.records[node], self.records[node].decision.waits_for
        text = "" if wait is None else self._admission.text_of(record, wait, self._fleet.mass_events, self._now)
        latest = self._transitions.latest(node)
        return case_view.case_view(record, latest, self._fleet, self._settings, self._policy, waits_for=text)

    def fleet_view(self) -> QuarantineView:
        """What is decided about the whole fleet."""
        return case_view.fleet_view(
            self._settings,
            self._records.census,
            self._fleet,
            alarms=self._alarms.standing(self._fleet),
            catching_up=len(self._backlogs.catching_up),
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
        taken = self._take[type(event)](event, now)
        commands = self._apply(taken, now) if isinstance(taken, Change) else taken or []
        changed = self._records.take_changed()
        self._alarms.count_changed(changed, commands)
        if isinstance(event, events.TimePassed):
            self._fleet, alarms = self._alarms.look(self._fleet, now)
            commands += alarms
        saves: list[QuarantineCommand] = [events.SaveRecord(record=record) for record in changed]
        if self._fleet != self._saved_fleet:
            self._saved_fleet = self._fleet
            saves.append(events.SaveFleetState(state=self._fleet))
        return saves + commands

    # Events: the change of a node, which is applied and reconciled, or commands; None when nothing follows

    def _restore(self, event: events.Restored, now: float) -> list[QuarantineCommand]:
        """Takes over what is stored. Every node is reconciled with the first tick."""
        self._records.restore(event.records)
        self._transitions.restore(event.transitions, event.records)
        commands: list[QuarantineCommand] = []
        for record in event.records:
            switched = starting.switch_mode(record, self._rules, self._settings.mode, now)
            commands += self._states.apply(switched, now)
        self._fleet = self._saved_fleet = event.fleet
        self._admission.restore()
        for cause in sorted({*self._records.nodes_by_cause, *mass_events.causes_of(event.fleet)}):
            self._count_cause(cause, max(self._records.nodes_with(cause).values(), default=0.0))
        self._backlogs.begin(record.node for record in event.records if not record.evidence.has_left)
        for record in [*self.records.values()]:
            latest = self._transitions.latest(record.node)
            if actors.concerns_mode(record, latest, self._rules):
                commands += self._transitions.resume(record.node)
            commands += self._states.apply(starting.resume(record, latest, self._rules), now)
            self._records.look_at(record.node, now)
        self._alarms.count(self.records)
        return [*commands, *alarm_deliveries.resent(self._fleet)]

    def _end_test(self, event: events.TestEnded, now: float) -> Change | None:
        record = self.records.get(event.node)
        if record is None or not record.awaits(event.test):
            return None
        return probation.after_test(record, event, self._rules, now)

    def _erase(self, event: events.NodeErased, now: float) -> list[QuarantineCommand]:
        """Forgets a node past retention."""
        record = self._records.known(event.node)
        self._transitions.erase(record.node)
        self._backlogs.note_complete(record.node)
        self._records.remove(record.node)
        self._count_causes(record.decision.requirement, now=now)
        erased = note(record, "erased", "Deleted: away for longer than nodes are kept")
        return [erased, events.EraseNode(node=record.node)]

    def _survey(self, event: events.NodeSurveyed, now: float) -> list[QuarantineCommand] | None:
        """Takes in the state of a node at a scheduler, and corrects it if it differs from the decision."""
        node = event.node.node
        if node not in self.records:
            return None
        commands = self._states.apply(actors.after_survey(self.records[node], event), now)
        record, latest = self.records[node], self._transitions.latest(node)
        return commands + self._apply(actors.correct(record, latest, event.actor, self._rules, now), now)

    def _end_action(self, event: events.ActionEnded, now: float) -> list[QuarantineCommand] | None:
        """Takes in the outcome of a transition at one actor."""
        known = self._transitions.known(event.node, event.transition)
        if known is None:
            return None
        commands = [*self._transitions.note_outcome(event, now)]
        record = self.records.get(event.node)
        if record is not None and event.effect is Effect.DONE:
            commands += self._states.apply(Change(actors.after_outcome(record, known.transition, event.actor)), now)
        self._note_uncordoned(event.node, now)
        self._look_at_retry(event.node)
        return commands

    def _note_all_called(self, event: events.AllActorsCalled, now: float) -> list[QuarantineCommand]:
        commands = [*self._transitions.note_all_called(event.node, event.transition)]
        self._note_uncordoned(event.node, now)
        return commands

    def _note_uncordoned(self, node: str, now: float) -> None:
        """Notes that a node is in service again once every actor has uncordoned it."""
        record = self.records.get(node)
        if record is not None and self._transitions.is_uncordoned(node):
            self._states.apply(Change(record.with_actor_status(shut_out_as=None)), now)

    def _look_at_retry(self, node: str) -> None:
        """Schedules a look at a node for the next retry of an actor."""
        latest = self._transitions.latest(node)
        if latest is not None and actors.concerns_mode(self.records[node], latest, self._rules):
            self._records.look_at(node, latest.next_try)

    def _note_alarm_taken(self, event: events.AlarmTaken, _: float) -> None:
        self._fleet = alarm_deliveries.after_taken(self._fleet, event)

    def _note_alarm_delivered(self, event: events.AlarmDelivered, _: float) -> None:
        self._fleet = alarm_deliveries.after_delivered(self._fleet, event)

    def _grant(
        self, event: events.HoldRequested | events.ReleaseRequested | events.NodeForgotten, now: float
    ) -> Change | list[QuarantineCommand]:
        """Carries out a person's request about a node. A hold leaves it as it is: nothing follows from it."""
        change = requests.grant(self._records.known(event.node), event, self._rules, now)
        change = change._replace(commands=(*change.commands, self._asked(event, now)))
        return self._states.apply(change, now) if isinstance(event, events.HoldRequested) else change

    def _lift_freeze(self, event: events.FreezeLifted, now: float) -> list[QuarantineCommand]:
        """Resumes draining in spite of mass events. Waiting nodes are cordoned with the next tick."""
        self._fleet = requests.lift(self._fleet)
        return [self._asked(event, now)]

    def _asked(self, request: events.QuarantineRequest, now: float) -> QuarantineCommand:
        return events.SaveRequest(asked=events.Asked(id=self._ids.new("r"), at=now, request=request))

    def _pass_time(self, _: events.TimePassed, now: float) -> list[QuarantineCommand]:
        """Cordons waiting nodes that are admitted now, and reconciles the nodes whose time has come."""
        self._backlogs.pass_time(now)
        commands = self._admit_waiting(now)
        for node in self._records.take_due(now):
            latest = self._transitions.latest(node)
            if latest is not None and actors.concerns_mode(self.records[node], latest, self._rules):
                due = latest.due(now)
                commands += self._transitions.retry(node, due) if due else ()
            self._look_at_retry(node)
            commands += self._reconcile(node, now)
        return commands

    def _admit_waiting(self, now: float) -> list[QuarantineCommand]:
        """Reconciles the nodes that may be cordoned now, or wait for something else than before; the worst first.

        While nothing changes that this depends on, 1,000 waiting nodes cost nothing.
        """
        commands: list[QuarantineCommand] = []
        if self._admitted_by == self._admission.basis(self._fleet.mass_events, now):
            return commands
        for record in self._records.in_order():
            if self._admission.has_changed(record, self._fleet.mass_events, now):
                commands += self._reconcile(record.node, now)
        self._admitted_by = self._admission.basis(self._fleet.mass_events, now)
        return commands

    # Reconciling

    def _apply(self, change: Change, now: float) -> list[QuarantineCommand]:
        """Applies a change, and reconciles its node."""
        return self._states.apply(change, now) + self._reconcile(change.record.node, now)

    def _reconcile(self, node: Name, now: float) -> list[QuarantineCommand]:
        """Brings a node to the state that it should have. A node that has just gone out may begin its tests at once."""
        commands = [*self._evaluate(self.records[node], now), *self._test(node, now)]
        record = self.records[node]
        target = desired(record, self._rules, now)
        self._records.look_at(node, target.look_again_at)
        if target.step is None:
            return commands
        if target.step is StateStep.CORDON:
            change = self._admit(record, target.reason, now)
        else:
            change = Change(record, step=target.step, reason=target.reason)
        commands += self._states.apply(change, now)
        has_gone_out = self.records[node].state in OUT and self.records[node].state is not record.state
        return commands + self._reconcile(node, now) if has_gone_out else commands

    def _evaluate(self, record: QuarantineRecord, now: float) -> list[QuarantineCommand]:
        """Takes in what the policy requires of a node now; its story gets what is new."""
        change = after_evaluation(record, evaluate_policy(self._policy, record, now), now)
        commands = self._states.apply(change, now)
        before, after = record.decision.requirement, change.record.decision.requirement
        if after != before:
            self._count_causes(before, after, now=now)
        return commands

    def _count_causes(self, *requirements: Requirement | None, now: float) -> None:
        """Counts the nodes with these causes."""
        for cause in dict.fromkeys(requirement.cause for requirement in requirements if requirement is not None):
            self._count_cause(cause, now)

    def _count_cause(self, cause: str, now: float) -> None:
        """Counts the nodes with a cause again, which may begin or end a mass event."""
        nodes, members = self._records.nodes_with(cause), self._records.census.members
        settings = self._settings.mass_event
        self._fleet = mass_events.fleet_state_after(self._fleet, cause, nodes, members, settings=settings, now=now)

    def _test(self, node: Name, now: float) -> list[QuarantineCommand]:
        """Starts second opinions, and continues the tests of a node that is new or out."""
        opinions = probation.second_opinions(self.records[node], self._rules, self._ids, now)
        commands = self._states.apply(opinions, now)
        record = self.records[node]
        if probation.is_tested(record, self._rules):
            commands += self._states.apply(probation.continue_tests(record, self._rules, self._ids, now), now)
        return commands

    def _admit(self, record: QuarantineRecord, reason: str, now: float) -> Change:
        """Cordons a node, or has it wait."""
        shows_held = self._transitions.is_latest_state(record.node, ServiceState.HELD)
        return self._admission.admit(record, reason, self._fleet.mass_events, now, shows_held=shows_held)
