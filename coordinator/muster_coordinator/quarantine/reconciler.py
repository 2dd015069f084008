"""The quarantine as a level-triggered reconciler: one event in, commands out.

An event changes what is known about a node. Then the node is reconciled: `evaluate_policy` says what its evidence
requires, `desired` which state it should have, `Admission` whether it may be cordoned now. Nothing is kept to be done
later, so nothing old can come out of a queue; whatever is asked again is asked of the records as they are then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from muster.alarm import AlarmKind
from muster.model import Json, Name, ServiceState, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model import quarantine_events as events
from muster_coordinator.model.findings import as_stored
from muster_coordinator.model.quarantine import OUT, QuarantineRecord, Requirement, Wait
from muster_coordinator.model.quarantine_events import Command, Event
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine import case_view, probation, requests
from muster_coordinator.quarantine.actor_intake import ActorIntake
from muster_coordinator.quarantine.actors import concerns_mode
from muster_coordinator.quarantine.admission import Admission
from muster_coordinator.quarantine.alarms import Alarms
from muster_coordinator.quarantine.desired import ARROWS, Rules, Step, desired
from muster_coordinator.quarantine.folded import NOTHING, Folded
from muster_coordinator.quarantine.node_intake import NodeIntake
from muster_coordinator.quarantine.policy import Policy, evaluate_policy
from muster_coordinator.quarantine.records import Records
from muster_coordinator.quarantine.service_states import ServiceStates, note
from muster_coordinator.quarantine.starting import Start
from muster_coordinator.quarantine.transitions import Transitions


class Reconciler:
    """Decides about the service states of all nodes, as `policy` and `settings` want; `epoch` makes its ids unique."""

    def __init__(self, settings: QuarantineSettings, policy: Policy, epoch: int) -> None:
        self._settings = settings
        self._policy = policy
        self._rules = Rules.of(settings)
        self._epoch, self._ids = epoch, 0
        self._records = Records()
        self._transitions = Transitions()
        self._admission = Admission(settings, self._records)
        self._states = ServiceStates(self._records, self._transitions, self._admission, self._rules, self._new_id)
        self._alarms = Alarms(settings, self._records, self._transitions, self._rules)
        self._start = Start(self._states, self._admission, self._rules, settings.mode)
        nodes = NodeIntake(self._states, self._admission, policy, keep_new_out=settings.keep_new_out)
        actors = ActorIntake(
            self._states,
            self._rules,
            corrects=settings.mode == "enforce",
            resumes_everywhere=settings.resume_by_hand == "everywhere",
        )
        self._take: Mapping[type, Callable[[Any, float], Folded]] = {
            events.Restored: self._restore,
            events.NodeDescribed: nodes.describe,
            events.NodeHeard: nodes.hear,
            events.NodeLost: nodes.lose,
            events.NodeNotListed: nodes.drop_from_list,
            events.EvidenceChanged: nodes.take_evidence,
            events.NodeErased: self._erase,
            events.NodeSurveyed: actors.survey,
            events.ActionEnded: actors.end_action,
            events.AllTold: actors.note_told,
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
        """A node's last transition, with what came of it; None when there was none, or it counts no more."""
        return self._transitions.latest(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case as the API serves it; KeyError when there is none."""
        record, waits_for = self.records[node], self.records[node].decision.waits_for
        text = "" if waits_for is None else self._admission.text_of(record, waits_for)
        latest = self._transitions.latest(node)
        return case_view.case_view(record, latest, self._admission.fleet, self._settings, self._policy, waits_for=text)

    def fleet_view(self) -> QuarantineView:
        """What is decided about the fleet as a whole."""
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

    def handle(self, event: Event, now: float) -> list[Command]:
        """What is to be done about `event`; Refused when a request is not valid, and then nothing has changed.

        What changed is stored before anybody is told.
        """
        now = as_stored(now)
        commands, node = self._take[type(event)](event, now)
        if node is not None:
            commands = commands + self._reconcile(node, now)
        changed = self._records.take_changed()
        self._alarms.count({*(record.node for record in changed), *_nodes_with_news(commands)})
        if isinstance(event, events.TimePassed):
            commands = commands + self._raise_alarms(now)
        saves: list[Command] = [events.SaveRecord(record=record) for record in changed]
        if (fleet := self._admission.take_unsaved()) is not None:
            saves.append(events.SaveFleetState(state=fleet))
        return saves + commands

    # Events

    def _restore(self, event: events.Restored, now: float) -> Folded:
        """Goes on with what is stored."""
        restored = self._start.restore(event, now)
        self._alarms.count(self.records)
        return restored

    def _end_test(self, event: events.TestEnded, now: float) -> Folded:
        """Takes in what a test or a second opinion said. A node in PROBATION that failed is cordoned again."""
        record = self.records.get(event.node)
        if record is None or not record.awaits(event.test):
            return NOTHING
        on_probation = record.decision.probation
        if on_probation is None or on_probation.test != event.test:
            return self._take_tested(probation.after_opinion(record, event.test, event.verdict, now))
        check = on_probation.waiting[0].check
        said = note(record, "test", f"{check}: {event.verdict}", event.test)
        may_fail = record.state is ServiceState.PROBATION and record.hands_off is None
        if event.verdict is Verdict.FAIL and may_fail:
            return Folded([said, *self._states.step(record, Step.FAIL, f"it has failed {check}", now)], event.node)
        commands, node = self._take_tested(probation.after_answer(record, event.verdict, self._rules, now))
        return Folded([said, *commands], node)

    def _take_tested(self, tested: probation.Tested) -> Folded:
        record = self._states.put(tested.record)
        for moment in tested.look_again_at:
            self._records.look_at(record.node, moment)
        return Folded([*tested.commands], record.node)

    def _grant(
        self, event: events.HoldRequested | events.ReleaseRequested | events.NodeForgotten, now: float
    ) -> Folded:
        """Does what a person asked for about a node. A hold leaves it as it is: nothing follows from it."""
        granted = requests.grant(self._records.known(event.node), event, self._rules, now)
        record = self._states.put(granted.record)
        commands: list[Command] = [note(record, granted.about, granted.text), self._asked(event, now)]
        if granted.step is not None:
            commands += self._states.step(record, granted.step, granted.reason, now, by=event.by)
        return Folded(commands, None if isinstance(event, events.HoldRequested) else event.node)

    def _lift_freeze(self, event: events.FreezeLifted, now: float) -> Folded:
        """Lets draining go on in spite of mass events. The nodes that wait are cordoned with the next tick."""
        self._admission.fleet = requests.lift(self._admission.fleet)
        return Folded([self._asked(event, now)])

    def _asked(self, request: events.Request, now: float) -> Command:
        return events.SaveRequest(asked=events.Asked(id=self._new_id("r"), at=now, request=request))

    def _erase(self, event: events.NodeErased, now: float) -> Folded:
        """Forgets a node past retention."""
        record = self._records.known(event.node)
        self._transitions.erase(record.node)
        self._admission.catching_up.note_complete(record.node)
        self._records.remove(record.node)
        self._count_causes(record.decision.requirement, now=now)
        erased = note(record, "erased", "it was away for so long that it is remembered no more")
        return Folded([erased, events.EraseNode(node=record.node)])

    def _pass_time(self, _: events.TimePassed, now: float) -> Folded:
        """Cordons nodes that waited and may go now, and looks at the nodes whose time has come."""
        commands: list[Command] = []
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
        return Folded(commands)

    def _raise_alarms(self, now: float) -> list[Command]:
        """Says which alarms begin or end with this tick."""
        self._admission.fleet, news = self._alarms.look(self._admission.fleet, now)
        said: list[Command] = []
        for alarm in news:
            if alarm.kind is AlarmKind.ACTION and alarm.subject in self.records:
                said.append(note(self.records[alarm.subject], "alarm", alarm.text))
            said.append(events.SendAlarm(alarm=alarm))
        return said

    # What follows from what is known

    def _reconcile(self, node: str, now: float) -> list[Command]:
        """Brings a node to the state that it should have. One that is out is looked at once more: it may be tested."""
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

    def _evaluate(self, record: QuarantineRecord, now: float) -> list[Command]:
        """Notes what the policy requires of a node now, and says so when that is new."""
        result = evaluate_policy(self._policy, record, now)
        self._records.look_at(record.node, result.next_change)
        commands: list[Command] = []
        before = record.decision
        if result.causes != before.causes and not _keeps_causes(record):
            record = self._states.put(record.deciding(causes=result.causes))
        if result.requirement != before.requirement:
            record = self._states.put(_required(record, result.requirement, now))
            self._count_causes(before.requirement, result.requirement, now=now)
            if _gist(result.requirement) != _gist(before.requirement):
                data: Json = {} if result.requirement is None else result.requirement.model_dump(mode="json")
                commands.append(note(record, "policy", _required_text(result.requirement), data=data))
        if result.upcoming != before.upcoming:
            self._states.put(record.deciding(upcoming=result.upcoming))
            if result.upcoming is not None:
                data = result.upcoming.model_dump(mode="json")
                commands.append(note(record, "policy", result.upcoming.text, data=data))
        return commands

    def _count_causes(self, *requirements: Requirement | None, now: float) -> None:
        """Counts the nodes with these causes, which may begin or end a mass event."""
        for cause in dict.fromkeys(requirement.cause for requirement in requirements if requirement is not None):
            self._admission.count_cause(cause, now)

    def _test(self, node: str, now: float) -> list[Command]:
        """Asks for second opinions, and goes on with the tests of a node that is new or out."""
        commands, _ = self._take_tested(probation.second_opinions(self.records[node], self._rules, self._new_id, now))
        if probation.is_tested(self.records[node], self._rules):
            commands += self._take_tested(probation.go_on(self.records[node], self._rules, self._new_id, now)).commands
        return commands

    def _cordon(self, record: QuarantineRecord, reason: str, now: float) -> list[Command]:
        """Cordons a node, or has it wait. One that is catching up stays as it is: what it waits for may be over."""
        wait = self._admission.wait_of(record, now)
        if wait is None:
            return self._states.step(record, Step.CORDON, reason, now)
        text = self._admission.text_of(record, wait)
        is_news = record.decision.waits_for is not wait
        record = record.deciding(waits_for=wait)
        if wait is Wait.CATCHING_UP:
            self._states.put(record)
            return []
        has_mass_event = wait is Wait.MASS_EVENT
        if (record.state, Step.WAIT) in ARROWS and not has_mass_event:
            return self._states.step(record, Step.WAIT, text, now)
        record = self._states.put(record)
        if has_mass_event:
            return [self._states.story(record, record.state, text, now)] if is_news else []
        is_untold = record.state is ServiceState.HELD and not self._states.is_told(record.node, ServiceState.HELD)
        tells = is_untold and self._admission.waits_long(record)
        return self._states.announce(record, record.state, text, now) if tells else []

    def _new_id(self, kind: str) -> Name:
        """An id for what is asked for; `kind` says to people what it is."""
        self._ids += 1
        return f"{kind}{self._epoch}-{self._ids}"


def _nodes_with_news(commands: Iterable[Command]) -> Iterator[str]:
    """The nodes of which a transition or its outcome is new, or that are forgotten."""
    for command in commands:
        if isinstance(command, events.SaveTransition):
            yield command.record.transition.node
        elif isinstance(command, events.EraseNode):
            yield command.node


def _required(record: QuarantineRecord, requirement: Requirement | None, now: float) -> QuarantineRecord:
    """The record with what the policy requires now.

    A HELD node waits on while what it was held for is looked for again; any other node waits only for what is proven.
    """
    before = record.decision
    if requirement is None:
        return record.deciding(requirement=None, required_since=None, cause_since=None, waits_for=None)
    has_same_cause = before.requirement is not None and before.requirement.cause == requirement.cause
    is_waiting = requirement.is_proven or record.state is ServiceState.HELD
    return record.deciding(
        requirement=requirement,
        required_since=before.required_since or now,
        cause_since=before.cause_since if has_same_cause and before.cause_since is not None else now,
        waits_for=before.waits_for if is_waiting else None,
    )


def _keeps_causes(record: QuarantineRecord) -> bool:
    """Whether its causes stay as they are: those of a node that is out are what it was cordoned for."""
    return record.state in OUT and bool(record.decision.causes)


def _gist(requirement: Requirement | None) -> tuple[object, ...]:
    return () if requirement is None else (requirement.row, requirement.cause, requirement.is_proven)


def _required_text(requirement: Requirement | None) -> str:
    if requirement is None:
        return "nothing asks for it to go any more"
    found = ", ".join(requirement.codes)
    proof = "" if requirement.is_proven else f"; {', '.join(requirement.unproven)} must find it once more"
    return f"row {requirement.row} asks for it to go because of {found}{proof}: {requirement.reason}"
