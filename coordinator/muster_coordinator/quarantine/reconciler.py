"""The quarantine as a level-triggered reconciler: one event in, commands out.

An event changes what is known about a node. Then the node is reconciled: `evaluate_policy` says what its evidence
requires, `desired` which state it should have, `admit` whether it may be cordoned now. Nothing is kept to be done
later, so nothing old can come out of a queue; whatever is asked again is asked of the records as they are then.
"""

from collections.abc import Mapping

from muster.model import Action, Json, Name, ServiceState, Verdict, format_instant
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Effect, Transition
from muster_coordinator.model import quarantine_events as events
from muster_coordinator.model.quarantine import OUT, FleetState, QuarantineRecord, Requirement, Wait
from muster_coordinator.model.quarantine_events import Alarm, Command, Event, Note
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine import actors, case_view, membership, probation, requests, starting
from muster_coordinator.quarantine.actors import Difference, Transitions, concerns_mode, reaches_actors
from muster_coordinator.quarantine.admission import Limits, Rate, admit, fleet_state_after, wait_text
from muster_coordinator.quarantine.desired import ARROWS, Rules, Step, desired, needs_person, retest_at
from muster_coordinator.quarantine.policy import Policy, evaluate_policy, standing_findings, times_after
from muster_coordinator.quarantine.records import Records


class Reconciler:
    """Decides about the service states of all nodes, as `policy` and `settings` want; `epoch` makes its ids unique."""

    def __init__(self, settings: QuarantineSettings, policy: Policy, epoch: int) -> None:
        self._settings = settings
        self._policy = policy
        self._rules = Rules.of(settings)
        self._limits = Limits(settings.limits)
        self._rate = Rate(settings.limits.per_minute)
        self._records = Records()
        self._transitions = Transitions()
        self._fleet = self._saved_fleet = FleetState()
        self._epoch, self._ids = epoch, 0
        self._admitted_at: tuple[object, ...] = ()  # what the nodes that wait were last admitted by
        self._dry = " (dry run)" if self._rules.is_dry else ""

    @property
    def records(self) -> Mapping[str, QuarantineRecord]:
        """The record of every node, by name."""
        return self._records.by_node

    def latest_transition(self, node: str) -> TransitionRecord | None:
        """A node's last transition, with what came of it; None when there was none, or it counts no more."""
        return self._transitions.latest(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case as the API serves it; KeyError when there is none."""
        record = self.records[node]
        waits_for = "" if record.decision.waits_for is None else self._wait_text(record, record.decision.waits_for)
        latest = self._transitions.latest(node)
        return case_view.case_view(record, latest, self._fleet, self._settings, self._policy, waits_for)

    def fleet_view(self) -> QuarantineView:
        """What is decided about the fleet as a whole."""
        return case_view.fleet_view(self._settings, self._records.census, self.records.values(), self._fleet)

    def handle(self, event: Event, now: float) -> list[Command]:
        """What is to be done about `event`; Refused when a request is not valid, and then nothing has changed.

        What changed is stored before anybody is told.
        """
        now = round(now, 3)  # as times are stored, so that a restart compares the same times
        commands = self._take(event, now)
        saves: list[Command] = [events.SaveRecord(record=record) for record in self._records.take_changed()]
        if self._fleet != self._saved_fleet:
            self._saved_fleet = self._fleet
            saves.append(events.SaveFleetState(state=self._fleet))
        return saves + commands

    def _take(self, event: Event, now: float) -> list[Command]:
        match event:
            case events.Restored():
                return self._start(event, now)
            case events.NodeDescribed(node=node):
                known = node in self.records
                commands = [] if known else self._join(node, now)
                self._put(membership.described(self.records[node], event))
                return commands + self._reconcile(node, now)
            case events.NodeHeard(node=node):
                return self._hear(node, now)
            case events.NodeLost(node=node):
                return self._lose(node, now)
            case events.EvidenceChanged(node=node, findings=findings, is_fit=is_fit):
                record = self._records.known(node)
                seen = times_after(record.evidence.seen, findings)
                commands = self._learn(record, record.knowing(findings=findings, seen=seen, is_fit=is_fit), now)
                return commands + self._reconcile(node, now)
            case events.TestEnded():
                return self._end_test(event, now)
            case events.NodeErased(node=node):
                return self._erase(self._records.known(node), now)
            case events.TimePassed():
                return self._pass_time(now)
            case events.HoldRequested() | events.ReleaseRequested() | events.NodeForgotten() | events.FreezeLifted():
                return self._grant(event, now)
            case events.NodeSurveyed():
                return self._survey(event, now)
            case events.NodeNotListed(node=node, actor=actor):
                return self._drop_from_list(node, actor, now)
            case events.ActionEnded():
                return self._end_action(event, now)
            case events.AllTold(node=node, transition=transition):
                told = self._transitions.note_told(node, transition)
                self._note_let_in(node)
                return [*told]

    # Nodes

    def _hear(self, node: str, now: float) -> list[Command]:
        record = self.records.get(node)
        commands: list[Command] = []
        if record is not None and record.evidence.has_left and record.state in OUT:
            before, record = record.state, self._put(membership.taken_back(record, now))
            if record.hands_off is None:
                reason = "it had left while it was out, and has come again"
                commands = self._announce(record, before, reason, now)
        elif record is None or record.evidence.has_left:
            commands = self._join(node, now)
        self._put(membership.heard(self.records[node]))
        return commands + self._reconcile(node, now)

    def _join(self, node: str, now: float) -> list[Command]:
        """Takes a node in as a new one; actors keep it out where that is wanted and the budget has room."""
        record = self._put(membership.joined(node, self.records.get(node), now))
        if not self._settings.keep_new_out:
            return []
        if not self._limits.lets_keep_out(self._records.census):
            return [_note(record, "service", "it is new and not kept out: the budget has no room for that")]
        record = self._put(record.deciding(kept_out_as_new=True))
        return self._announce(record, ServiceState.ACCEPTING, "it is new and not accepted yet", now)

    def _lose(self, node: str, now: float) -> list[Command]:
        record = self._records.known(node)
        commands = self._learn(record, record.knowing(lost_at=now), now) if record.is_online else []
        return commands + self._leave_if_unlisted(node) + self._reconcile(node, now)

    def _drop_from_list(self, node: str, actor: str, now: float) -> list[Command]:
        record = self.records.get(node)
        if record is None or actor not in record.actors.observed:
            return []
        observed = {name: seen for name, seen in record.actors.observed.items() if name != actor}
        self._put(record.acting(observed=observed))
        return self._leave_if_unlisted(node) + self._reconcile(node, now)

    def _leave_if_unlisted(self, node: str) -> list[Command]:
        record = self.records[node]
        if not membership.is_unlisted(record):
            return []
        self._put(actors.as_left(record))
        return [_note(record, "left", "it is silent, and no scheduler lists it any more")]

    def _learn(self, before: QuarantineRecord, record: QuarantineRecord, now: float) -> list[Command]:
        """Takes in what speaks against a node, and says of errors that are new and never drain it why."""
        known = {finding.key for finding in standing_findings(before, now)}
        new = (finding for finding in standing_findings(record, now) if finding.key not in known)
        notes: list[Command] = [_note(record, "policy", text) for text in self._policy.not_draining(new)]
        self._put(record)
        return notes

    def _erase(self, record: QuarantineRecord, now: float) -> list[Command]:
        requirement = record.decision.requirement
        self._transitions.erase(record.node)
        self._records.remove(record.node)
        alarms = [] if requirement is None else self._count_cause(requirement.cause, now)
        note = _note(record, "erased", "it was away for so long that it is remembered no more")
        return [note, *alarms, events.EraseNode(node=record.node)]

    # Tests

    def _end_test(self, event: events.TestEnded, now: float) -> list[Command]:
        record = self.records.get(event.node)
        if record is None or not record.awaits(event.test):
            return []
        on_probation = record.decision.probation
        if on_probation is None or on_probation.test != event.test:
            return self._take_tested(probation.after_opinion(record, event.test, event.verdict, now), now)
        check = on_probation.waiting[0].check
        notes: list[Command] = [_note(record, "test", f"{check}: {event.verdict}", event.test)]
        may_fail = record.state is ServiceState.PROBATION and record.hands_off is None
        if event.verdict is Verdict.FAIL and may_fail:
            return notes + self._move(record, Step.FAIL, f"it has failed {check}", now)
        return notes + self._take_tested(probation.after_answer(record, event.verdict, self._rules, now), now)

    def _take_tested(self, tested: probation.Tested, now: float) -> list[Command]:
        record = self._put(tested.record)
        return [*tested.commands, *self._reconcile(record.node, now)]

    # People

    def _grant(
        self,
        event: events.HoldRequested | events.ReleaseRequested | events.NodeForgotten | events.FreezeLifted,
        now: float,
    ) -> list[Command]:
        if isinstance(event, events.FreezeLifted):
            self._fleet, text = requests.lift(self._fleet, event)
            commands: list[Command] = [self._alarm(text)]
        else:
            commands = self._grant_for_node(event, now)
        asked = events.Asked(id=self._new_id("r"), at=now, request=event)
        return [*commands, events.SaveRequest(asked=asked)]

    def _grant_for_node(
        self, event: events.HoldRequested | events.ReleaseRequested | events.NodeForgotten, now: float
    ) -> list[Command]:
        record = self._records.known(event.node)
        match event:
            case events.HoldRequested():
                granted = requests.hold(record, event, now)
            case events.ReleaseRequested():
                granted = requests.release(record, event, self._rules, now)
            case events.NodeForgotten():
                granted = requests.forget(record, event, now)
        record = self._put(granted.record)
        commands: list[Command] = [_note(record, granted.about, granted.text)]
        if granted.step is not None:
            commands += self._move(record, granted.step, granted.reason, now, by=event.by)
        return commands if isinstance(event, events.HoldRequested) else commands + self._reconcile(event.node, now)

    # Actors

    def _survey(self, event: events.NodeSurveyed, now: float) -> list[Command]:
        node, actor = event.node.node, event.actor
        if node not in self.records:
            return []
        survey = actors.after_survey(self.records[node], event)
        record = self._put(survey.record)
        commands: list[Command] = [_note(record, about, text) for about, text in survey.notes]
        if self._settings.mode == "enforce" and not record.evidence.has_left:
            commands += self._correct(record, actor, now)
        latest = self._transitions.latest(node)
        if latest is not None and concerns_mode(self.records[node], latest, self._rules):
            if latest.may_try(actor, now):
                commands += self._transitions.retry(node, (actor,))
        return commands + self._reconcile(node, now)

    def _correct(self, record: QuarantineRecord, actor: str, now: float) -> list[Command]:
        """Has an actor brought to what was decided, unless a person decided otherwise there."""
        match actors.diff(record, self._transitions.latest(record.node), actor):
            case None:
                return []
            case Difference.RESUMED_BY_HAND:
                hold = actors.hold_after_resume(actor, now)
                note = _note(record, "held", f"held as it is, since {hold.by} has let it in again")
                record = self._put(record.deciding(hold=hold))
                return [note, *self._move(record, Step.RETURN, f"{hold.by} has let it in again", now, by=hold.by)]
            case Difference.MISSING:
                note = _note(record, "drift", f"{actor} has it otherwise than decided, and is told again")
                return [note, *self._transitions.retry(record.node, (actor,))]
            case Difference.UNTOLD:
                return self._announce(record, record.state, f"{actor} was never told so", now)

    def _end_action(self, event: events.ActionEnded, now: float) -> list[Command]:
        known = self._transitions.known(event.node, event.transition)
        if known is None:
            return []
        before = known.outcomes.get(event.actor)
        commands = [*self._transitions.note_outcome(event, now)]
        if before is None or (before.effect, before.detail) != (event.effect, event.detail):
            text = f"{event.actor}: {event.effect}: {event.detail}"
            commands.append(Note(node=event.node, about="action", text=text, cause=event.transition))
        if event.effect is Effect.DONE and event.node in self.records:
            self._put(actors.after_outcome(self.records[event.node], known.transition, event.actor))
        self._note_let_in(event.node)
        self._look_at_retry(event.node)
        return commands

    def _note_let_in(self, node: str) -> None:
        """Notes that a node is in service again once no actor has still to do something for that."""
        if node in self.records and self._transitions.is_let_in(node):
            self._put(self.records[node].acting(shut_out_as=None))

    def _look_at_retry(self, node: str) -> None:
        latest = self._transitions.latest(node)
        if latest is not None and concerns_mode(self.records[node], latest, self._rules):
            self._records.look_at(node, latest.next_try)

    # Time and starts

    def _pass_time(self, now: float) -> list[Command]:
        commands = self._admit_waiting(now)
        for node in self._records.take_due(now):
            latest = self._transitions.latest(node)
            if latest is not None and concerns_mode(self.records[node], latest, self._rules):
                due = latest.due(now)
                commands += self._transitions.retry(node, due) if due else ()
            self._look_at_retry(node)
            commands += self._reconcile(node, now)
        return commands

    def _admit_waiting(self, now: float) -> list[Command]:
        """Cordons nodes that wait, the worst first.

        The answer depends on the records, the mass events and whether the rate has room, and on nothing else. While
        none of these changes, 1,000 nodes that wait cost nothing.
        """
        if self._admitted_at == (self._records.version, self._fleet, self._rate.has_room(now)):
            return []
        commands: list[Command] = []
        for waiting in self._records.in_order():
            record = self.records[waiting.node]  # the node before it may have changed it
            if _may_go(record) and self._admit_alone(record, now) is not record.decision.waits_for:
                commands += self._reconcile(record.node, now)
        self._admitted_at = (self._records.version, self._fleet, self._rate.has_room(now))
        return commands

    def _start(self, event: events.Restored, now: float) -> list[Command]:
        self._records.restore(event.records)
        self._transitions.restore(event.transitions, event.records)
        self._fleet = self._saved_fleet = event.fleet
        commands: list[Command] = []
        for record in event.records:
            switched = self._put(starting.in_mode(record, self._rules, now))
            if switched.state is not record.state:
                text = f"{record.state} to {switched.state}: the mode is {self._settings.mode} now"
                commands.append(_note(record, "service", text))
        for moment in sorted(moment for record in self.records.values() for moment in record.decision.cordoned_at):
            self._rate.note(moment)
        self._recall_mass_events()
        for node in [*self.records]:
            commands += self._resume(node, now)
        return commands

    def _recall_mass_events(self) -> None:
        """Takes over the mass events that are stored and still shared, and those that the present settings see."""
        fleet = self._fleet
        stored = {*(event.cause for event in fleet.mass_events), *fleet.lifted}
        for cause in sorted({*self._records.nodes_by_cause, *stored}):
            nodes = self._records.nodes_with(cause)
            at = max(nodes.values(), default=0.0)
            members = self._records.census.members
            fleet = fleet_state_after(fleet, cause, nodes, members, self._settings.mass_event, at)
        self._fleet = fleet

    def _resume(self, node: str, now: float) -> list[Command]:
        """Goes on with a node where the coordinator before this one ended."""
        record = self._put(starting.resumed(self.records[node], self._rules))
        latest = self._transitions.latest(node)
        is_ours = latest is not None and concerns_mode(record, latest, self._rules)
        commands = [*self._transitions.resume(node)] if is_ours else []
        if starting.shows_outdated_hold(record, self._transitions.latest(node), self._rules):
            commands += self._announce(record, ServiceState.HELD, "it does not wait for room any more", now)
        self._records.look_at(node, now)
        return commands

    # Deciding

    def _reconcile(self, node: str, now: float) -> list[Command]:
        """Does what follows from all that is known about a node now."""
        commands = self._evaluate(self.records[node], now)
        tested = probation.second_opinions(self.records[node], self._rules, self._new_id, now)
        commands += self._look_again(tested)
        if probation.is_tested(self.records[node], self._rules):
            commands += self._look_again(probation.go_on(self.records[node], self._rules, self._new_id, now))
        record = self.records[node]
        target = desired(record, self._rules, now)
        self._records.look_at(node, target.look_again_at)
        if target.step is Step.CORDON:
            return commands + self._cordon(record, target.reason, now)
        return commands if target.step is None else commands + self._move(record, target.step, target.reason, now)

    def _look_again(self, tested: probation.Tested) -> list[Command]:
        record = self._put(tested.record)
        for moment in tested.look_again_at:
            self._records.look_at(record.node, moment)
        return [*tested.commands]

    def _evaluate(self, record: QuarantineRecord, now: float) -> list[Command]:
        """Notes what the policy requires of a node now, and says so when that is new."""
        result = evaluate_policy(self._policy, record, now)
        self._records.look_at(record.node, result.next_change)
        commands: list[Command] = []
        before = record.decision
        if result.requirement != before.requirement:
            record = self._put(_required(record, result.requirement, now))
            causes = {it.cause: None for it in (before.requirement, result.requirement) if it is not None}
            commands += [alarm for cause in causes for alarm in self._count_cause(cause, now)]
            if _gist(result.requirement) != _gist(before.requirement):
                data: Json = {} if result.requirement is None else result.requirement.model_dump(mode="json")
                commands.append(_note(record, "policy", _required_text(result.requirement), data=data))
        if result.upcoming != before.upcoming:
            self._put(record.deciding(upcoming=result.upcoming))
            if result.upcoming is not None:
                data = result.upcoming.model_dump(mode="json")
                commands.append(_note(record, "policy", result.upcoming.text, data=data))
        return commands

    def _count_cause(self, cause: str, now: float) -> list[Command]:
        """Counts the nodes with a cause; raises an alarm when that begins or ends a mass event."""
        before = {event.cause for event in self._fleet.mass_events}
        nodes, members = self._records.nodes_with(cause), self._records.census.members
        self._fleet = fleet_state_after(self._fleet, cause, nodes, members, self._settings.mass_event, now)
        stands = any(event.cause == cause for event in self._fleet.mass_events)
        if stands and cause not in before:
            return [self._alarm(f"{len(nodes)} nodes have {cause}: none is taken out")]
        if not stands and cause in before:
            return [self._alarm(f"few nodes have {cause} by now: nodes may go again")]
        return []

    def _cordon(self, record: QuarantineRecord, reason: str, now: float) -> list[Command]:
        """Cordons a node, or has it wait."""
        wait = self._admit(record, now)
        if wait is None:
            return self._move(record, Step.CORDON, reason, now)
        text = self._wait_text(record, wait)
        if (record.state, Step.WAIT) in ARROWS and not self._fleet.mass_events:
            return self._move(record, Step.WAIT, text, now, wait=wait)
        is_news = record.decision.waits_for is not wait
        record = self._put(record.deciding(waits_for=wait))
        if self._fleet.mass_events:
            return [self._story(record, record.state, text)] if is_news else []
        is_untold = record.state is ServiceState.HELD and not self._transitions.is_told(record.node, ServiceState.HELD)
        return self._announce(record, record.state, text, now) if is_untold and self._waits_long(record) else []

    def _admit(self, record: QuarantineRecord, now: float) -> Wait | None:
        """Why a node may not be cordoned now; None when it may. Nodes that are worse and may go are cordoned first."""
        wait = self._admit_alone(record, now)
        if wait is not None:
            return wait
        ahead = self._records.before(record)
        is_behind = any(_may_go(other) and self._admit_alone(other, now) is None for other in ahead)
        return Wait.ORDER if is_behind else None

    def _admit_alone(self, record: QuarantineRecord, now: float) -> Wait | None:
        return admit(record, self._records.census, self._limits, self._rate, self._fleet, now)

    def _waits_long(self, record: QuarantineRecord) -> bool:
        """Whether a node waits for room, or behind more nodes than go in a minute."""
        has_no_room = self._limits.no_room(record, self._records.census) is not None
        return has_no_room or self._records.waiting > self._rate.per_minute

    def _wait_text(self, record: QuarantineRecord, wait: Wait) -> str:
        return wait_text(wait, record, self._records.census, self._settings.limits, self._fleet)

    def _move(
        self,
        record: QuarantineRecord,
        step: Step,
        reason: str,
        now: float,
        by: str | None = None,
        wait: Wait | None = None,
    ) -> list[Command]:
        """Brings a node to the state that the step leads to, and tells whom that concerns."""
        before, after = record.state, ARROWS[record.state, step]
        cordoned_at = record.decision.cordoned_at
        is_pretended = self._rules.is_dry and record.actors.shut_out_as is not None
        if after is ServiceState.CORDONED and not is_pretended:
            cordoned_at = (*cordoned_at, now)
        retest_checks = record.decision.retest_checks
        if step is Step.CORDON:
            self._rate.note(now)
            retest_checks = _checks_that_found(record)
        record = self._put(
            record.deciding(
                state=after,
                since=now,
                dry_run=self._rules.is_dry,
                waits_for=wait,
                probation=None,
                retest_because=None,
                cordoned_at=cordoned_at,
                retest_checks=retest_checks,
            )
        )
        if self._concerns_actors(record, step):
            commands = self._announce(record, before, reason, now, by)
        else:
            commands = [self._story(record, before, reason, now=now)]
        if after is ServiceState.CORDONED and needs_person(cordoned_at, self._rules.returning):
            commands += self._call_person(self.records[record.node])
        return commands + self._reconcile(record.node, now) if after in OUT else commands

    def _concerns_actors(self, record: QuarantineRecord, step: Step) -> bool:
        """Whether actors hear of a step: not of a node that waits for its turn only and goes soon."""
        if step is Step.WAIT:
            return self._waits_long(record)
        return step is not Step.CLEAR or self._transitions.is_told(record.node, ServiceState.HELD)

    def _announce(
        self, record: QuarantineRecord, before: ServiceState, reason: str, now: float, by: str | None = None
    ) -> list[Command]:
        """Stores a transition into the node's present state, and tells the actors where the mode lets it."""
        commands = self._warn_of_exhaustion(reason) if record.state is ServiceState.HELD else []
        requirement = record.decision.requirement
        transition = Transition(
            id=self._new_id("t"),
            node=record.node,
            before=before,
            after=record.state,
            reason=reason,
            at=now,
            codes=() if requirement is None else requirement.codes,
            action=Action.NONE if requirement is None else requirement.action,
            by=by,
            dry_run=self._rules.is_dry,
        )
        is_shut_out = transition.is_out and self._rules.decides and not self._rules.is_dry
        to_actors = reaches_actors(record, transition, self._rules)
        shut_out_as = record.state if is_shut_out else record.actors.shut_out_as
        record = self._put(record.acting(transition=transition.id, shut_out_as=shut_out_as))
        story = self._story(record, before, reason, transition.id, now)
        return [*commands, story, *self._transitions.add(transition, to_actors=to_actors)]

    def _story(
        self, record: QuarantineRecord, before: ServiceState, reason: str, id: Name | None = None, now: float = 0.0
    ) -> Note:
        state, returning = record.state, self._rules.returning
        step = f"stays {state}" if before is state else f"{before} to {state}"
        comes_back = state is ServiceState.CORDONED and not needs_person(record.decision.cordoned_at, returning)
        at = retest_at(record, returning)
        back = f"; it may be tested from {format_instant(at)} on" if comes_back and at > now else ""
        return _note(record, "service", f"{step}{self._dry}: {reason}{back}", id)

    def _warn_of_exhaustion(self, reason: str) -> list[Command]:
        """Says that the budget is used up: when the first node has to wait for long, not for each that follows."""
        is_known = any(self._transitions.is_told(it.node, ServiceState.HELD) for it in self._records.in_order())
        return [] if is_known else [self._alarm(f"nodes that should go stay in service: {reason}")]

    def _call_person(self, record: QuarantineRecord) -> list[Command]:
        text = f"it was out {len(record.decision.cordoned_at)} times: it stays out until somebody releases it"
        return [_note(record, "service", text, record.actors.transition), self._alarm(f"{record.node}: {text}")]

    def _alarm(self, text: str) -> Alarm:
        return Alarm(text=f"{text}{self._dry}")

    def _put(self, record: QuarantineRecord) -> QuarantineRecord:
        """Takes a record. Where no transition counts any more, none is retried."""
        if record.actors.transition is None:
            self._transitions.supersede(record.node)
        return self._records.put(record)

    def _new_id(self, kind: str) -> Name:
        """An id for what is asked for; `kind` says to people what it is."""
        self._ids += 1
        return f"{kind}{self._epoch}-{self._ids}"


def _may_go(record: QuarantineRecord) -> bool:
    """Whether a node must be cordoned as soon as it is admitted."""
    return record.is_proven and record.hands_off is None


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


def _checks_that_found(record: QuarantineRecord) -> tuple[Name, ...]:
    """The checks that found what the node is cordoned for."""
    codes = () if record.decision.requirement is None else record.decision.requirement.codes
    return tuple(dict.fromkeys(finding.check for finding in record.evidence.findings if finding.code in codes))


def _gist(requirement: Requirement | None) -> tuple[object, ...]:
    return () if requirement is None else (requirement.row, requirement.cause, requirement.is_proven)


def _required_text(requirement: Requirement | None) -> str:
    if requirement is None:
        return "nothing asks for it to go any more"
    found = ", ".join(requirement.codes)
    proof = "" if requirement.is_proven else f"; {', '.join(requirement.unproven)} must find it once more"
    return f"row {requirement.row} asks for it to go because of {found}{proof}: {requirement.reason}"


def _note(
    record: QuarantineRecord, about: str, text: str, cause: str | None = None, *, data: Json | None = None
) -> Note:
    return Note(node=record.node, about=about, text=text, cause=cause, data=data or {})
