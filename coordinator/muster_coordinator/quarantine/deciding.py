"""What is to become of a node, and saying so."""

from muster.model import Action as Advice
from muster.model import ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Transition
from muster_coordinator.model.case import OUT, Case
from muster_coordinator.model.demand import Demand, Prospect
from muster_coordinator.model.quarantine_events import Command, EraseNode, Renewed, SaveCase
from muster_coordinator.quarantine import repeaters
from muster_coordinator.quarantine.accusing import accused_of
from muster_coordinator.quarantine.budget import Budget
from muster_coordinator.quarantine.cases import Cases
from muster_coordinator.quarantine.mass_event import MassEvents
from muster_coordinator.quarantine.moves import MOVES, Trigger
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.saying import Saying
from muster_coordinator.quarantine.telling import Telling
from muster_coordinator.quarantine.testing import Testing
from muster_coordinator.quarantine.waiting import Waiting

Reason = tuple[Trigger, str]


class Deciding:
    """Decides about the nodes of `cases`. What is to be done about it gathers until `all_said` takes it."""

    def __init__(self, settings: QuarantineSettings, policy: Policy, epoch: int) -> None:
        self.cases = Cases()
        self.telling = Telling()
        self.mass_events = MassEvents(settings.mass_event)
        self.acts = settings.mode != "observe"
        self.is_dry = settings.mode == "dry-run"
        self.saying = Saying(epoch, mark=" (dry run)" if self.is_dry else "")
        self.budget = Budget(settings.limits)
        self.testing = Testing(settings, self.cases, self.saying)
        self._waiting = Waiting(self.cases, self.budget, self.mass_events)
        self._returning = settings.returning
        self._policy = policy

    def all_said(self) -> list[Command]:
        """Everything that is to be done since this was asked last; what has changed is stored before all else."""
        return [*(SaveCase(case=case) for case in self.cases.changed()), *self.saying.take()]

    def recall(self) -> None:
        """Counts what the cases that were taken over tell of the time before: who was taken out, and who accused."""
        self._recall_rate()
        let_pass = {case.let_pass for case in self.cases.by_node.values() if case.let_pass is not None}
        frozen = {case.frozen_by for case in self.cases.by_node.values() if case.frozen_by is not None}
        self.mass_events.restore(self._accused(), let_pass, frozen, self.cases.census.members)

    def go_on(self, event: Renewed) -> None:
        """Counts the same when there was no time before, only another log."""
        self._recall_rate()
        self.mass_events.go_on(self._accused(), event.frozen, event.let_pass)
        self.telling.keep_telling(event.earlier)
        self.saying.ids = event.ids

    def _recall_rate(self) -> None:
        for moment in sorted(moment for case in self.cases.by_node.values() for moment in case.taken_out):
            self.budget.spend(moment)

    def _accused(self) -> list[tuple[str, str, float]]:
        """Each node of which something is asked, with the cause and since when it has that."""
        return [
            (case.node, case.demand.cause, case.cause_since)
            for case in self.cases.by_node.values()
            if case.demand is not None and case.cause_since is not None
        ]

    def reconsider(self, case: Case, now: float) -> None:
        """Does what follows from all that is known about a node now."""
        case = self._accuse(case, now)
        if self._is_on_trial(case):
            case = self.testing.go_on(case, now)
        reason = self._reason_to_move(case, now)
        if reason is not None:
            self.move(case, *reason, now)

    def take_waiting(self, now: float) -> None:
        """Takes those out who wait for it, the worst first, as far as there is room now."""
        for case in self._waiting.worst_first(now):
            self.reconsider(case, now)

    def move(self, case: Case, trigger: Trigger, reason: str, now: float, by: str | None = None) -> None:
        """Brings a node to the state that the trigger leads to from where it is, and tells whom it concerns."""
        after = MOVES[case.state, trigger]
        updates: dict[str, object] = {"state": after, "since": now, "trial": None, "may_return": None}
        updates |= {"dry_run": self.is_dry, "held_because": reason if after is ServiceState.HELD else ""}
        if after is ServiceState.CORDONED and not (self.is_dry and case.closed_as is not None):
            updates["taken_out"] = (*case.taken_out, now)  # a dry run takes nobody out who is out in earnest
        if trigger is Trigger.ACCUSED:
            self.budget.spend(now)
            updates["accusers"] = _accusers(case)
        moved = self.cases.change(case, **updates)
        if self._concerns_actors(moved, trigger):
            self.tell(moved, case.state, reason, now, by=by)
        else:
            self._tell_story(moved, case.state, reason, now)
        if after is ServiceState.CORDONED and repeaters.needs_a_person(moved.taken_out, self._returning):
            self._call_a_person(self.cases.by_node[case.node])
        if after is ServiceState.PROBATION or after is ServiceState.CORDONED:
            self.reconsider(self.cases.by_node[case.node], now)

    def erase(self, case: Case) -> None:
        """Does without a node that is long gone."""
        self.saying.note(case.node, "erased", "it was away for so long that it is remembered no more")
        if case.demand is not None:
            self._count_out(case.node, case.demand.cause)
        self.telling.forget_all(case.node)
        self.cases.remove(case)
        self.saying.say(EraseNode(node=case.node))

    def tell(self, case: Case, before: ServiceState, reason: str, now: float, by: str | None = None) -> None:
        """Writes a transition into the node's present state down, and tells the actors unless we only observe."""
        if case.state is ServiceState.HELD:
            self._warn_of_exhaustion(reason)
        demand = case.demand
        transition = Transition(
            id=self.saying.new_id("t"),
            node=case.node,
            before=before,
            after=case.state,
            reason=reason,
            at=now,
            codes=() if demand is None else demand.codes,
            action=Advice.NONE if demand is None else demand.action,
            by=by,
            dry_run=self.is_dry,
        )
        is_closed = transition.is_out and self.acts and not self.is_dry
        self.cases.change(case, transition=transition.id, closed_as=case.state if is_closed else case.closed_as)
        self._tell_story(case, before, reason, now, transition.id)
        self.saying.say(*self.telling.tell(transition, to_actors=self.reaches_actors(case, transition)))

    def reaches_actors(self, case: Case, transition: Transition) -> bool:
        """Whether actors are told of it: who only observes tells nothing, but leaves nobody shut out or announced."""
        is_let_in = case.closed_as is not None and not transition.is_out
        is_taken_back = transition.before is ServiceState.HELD and transition.after is ServiceState.IN_SERVICE
        return self.acts or is_let_in or is_taken_back

    def _tell_story(
        self, case: Case, before: ServiceState, reason: str, now: float, transition: str | None = None
    ) -> None:
        back = repeaters.told(case, self._returning, now)
        step = f"stays {case.state}" if before is case.state else f"{before} to {case.state}"
        self.saying.note(case.node, "service", f"{step}{self.saying.mark}: {reason}{back}", transition)

    def _concerns_actors(self, case: Case, trigger: Trigger) -> bool:
        """Whether actors must hear of a move: not of a node that waits for its turn only, which goes soon."""
        if trigger is Trigger.NO_ROOM:
            return self._waiting.is_long(case)
        return trigger is not Trigger.ABSOLVED or self.telling.is_told(case.node, ServiceState.HELD)

    def _wait_on(self, case: Case, reason: str, now: float) -> None:
        """Notes why a node still has to wait, and tells everybody when it will not go soon after all."""
        is_news = case.held_because != reason
        case = self.cases.change(case, held_because=reason)
        is_known = case.state is not ServiceState.HELD or self.telling.is_told(case.node, ServiceState.HELD)
        if self.mass_events.refusal():
            if is_news:
                self._tell_story(case, case.state, reason, now)
        elif not is_known and self._waiting.is_long(case):
            self.tell(case, case.state, reason, now)

    def _warn_of_exhaustion(self, reason: str) -> None:
        """Tells that the budget is used up: when the first node has to wait for long, not for each that follows."""
        if not any(self.telling.is_told(case.node, ServiceState.HELD) for case in self.cases.held()):
            self.saying.alarm(f"nodes that should go stay in service: {reason}")

    def _call_a_person(self, case: Case) -> None:
        text = f"it was out {len(case.taken_out)} times: it stays out until somebody releases it"
        self.saying.note(case.node, "service", text, case.transition)
        self.saying.alarm(f"{case.node}: {text}")

    # What it is accused of

    def _accuse(self, case: Case, now: float) -> Case:
        demand, prospect, look_at = accused_of(case, self._policy, now)
        if look_at is not None:
            self.cases.look_at(case.node, look_at)
        if demand != case.demand:
            case = self._note_demand(case, demand, now)
        if prospect != case.prospect:
            case = self._note_prospect(case, prospect)
        if demand is not None and self._may_be_asked(case):
            case = self.testing.ask_again(case, demand, now)
        return case

    def _may_be_asked(self, case: Case) -> bool:
        return self.acts and case.online and case.state not in OUT and case.hands_off is None

    def _note_demand(self, case: Case, demand: Demand | None, now: float) -> Case:
        before = case.demand
        waits_on = demand is not None and (demand.is_proven or case.state is ServiceState.HELD)
        is_same = demand is not None and before is not None and demand.cause == before.cause
        since = case.cause_since if is_same and case.cause_since is not None else now
        case = self.cases.change(
            case,
            demand=demand,
            accused_at=None if demand is None else case.accused_at or now,
            cause_since=None if demand is None else since,
            let_pass=case.let_pass if is_same else None,
            frozen_by=case.frozen_by if is_same else None,
            held_because=case.held_because if waits_on else "",
        )
        if before is not None and not is_same:
            self._count_out(case.node, before.cause)
        if demand is not None:
            case = self._count_in(case, demand.cause, since, now)
        if _gist(demand) != _gist(before):
            data = {} if demand is None else demand.model_dump(mode="json")
            self.saying.note(case.node, "policy", _told(demand), data=data)
        return case

    def _note_prospect(self, case: Case, prospect: Prospect | None) -> Case:
        if prospect is not None:
            self.saying.note(case.node, "policy", prospect.told, data=prospect.model_dump(mode="json"))
        return self.cases.change(case, prospect=prospect)

    def _count_in(self, case: Case, cause: str, since: float, now: float) -> Case:
        event = self.mass_events.note(case.node, cause, since, self.cases.census.members, now)
        if event is not None:
            self.saying.alarm(f"{event.nodes} nodes have {event.cause}: none is taken out")
            self._change_all_with(cause, frozen_by=cause)
        elif cause in self.mass_events.standing:
            self.cases.change(case, frozen_by=cause)
        elif self.mass_events.is_lifted(cause):
            self.cases.change(case, let_pass=cause)
        return self.cases.by_node[case.node]

    def _count_out(self, node: str, cause: str) -> None:
        was_lifted = self.mass_events.is_lifted(cause)
        over = self.mass_events.forget(node, cause, self.cases.census.members)
        if over is not None:
            self.saying.alarm(f"few nodes have {over.cause} by now: nodes may go again")
            self._change_all_with(cause, frozen_by=None)
        if was_lifted and not self.mass_events.is_lifted(cause):
            self._change_all_with(cause, let_pass=None)

    def _change_all_with(self, cause: str, **changes: str | None) -> None:
        for node in self.mass_events.nodes_with(cause):
            self.cases.change(self.cases.by_node[node], **changes)

    # Where that leads

    def _reason_to_move(self, case: Case, now: float) -> Reason | None:
        if not self._may_move(case):
            return None
        match case.state:
            case ServiceState.ACCEPTING:
                return self._reason_to_admit(case) if case.demand is None else self._reason_to_go(case, now)
            case ServiceState.IN_SERVICE | ServiceState.HELD:
                return self._reason_to_go(case, now)
            case ServiceState.CORDONED:
                return self._reason_to_return(case, now)
            case ServiceState.PROBATION:
                return self._reason_to_release(case)

    def _may_move(self, case: Case) -> bool:
        """Whether it is ours to say; that it was accepted is said of every node that nobody holds."""
        if case.state is ServiceState.ACCEPTING and case.demand is None:
            may_be_let_in = self.acts or case.closed_as is None  # what actors keep out, they must be told to let in
            return not case.gone and case.hold is None and may_be_let_in
        return not case.gone and case.hands_off is None and self.acts

    def _reason_to_admit(self, case: Case) -> Reason | None:
        if not case.fit:
            return None
        if self.acts and self.testing.precedes_work and not self._has_passed(case):
            return None
        return Trigger.ACCEPTED, "it has been examined and is healthy"

    def _reason_to_go(self, case: Case, now: float) -> Reason | None:
        demand = case.demand
        if demand is None or not demand.is_proven:
            return self._reason_to_wait_no_more(case)
        refusal = self._waiting.refusal(case, now)
        if refusal is None:
            return Trigger.ACCUSED, demand.reason
        if (case.state, Trigger.NO_ROOM) in MOVES and not self.mass_events.refusal():
            return Trigger.NO_ROOM, refusal
        self._wait_on(case, refusal, now)
        return None

    def _reason_to_wait_no_more(self, case: Case) -> Reason | None:
        """Of a node that is HELD: one that waits goes on waiting while what asks for it is looked for again."""
        if case.state is not ServiceState.HELD or case.held_because:
            return None
        what = "nothing" if case.demand is None else "nothing that is proven"
        return Trigger.ABSOLVED, f"{what} asks for it to go any more"

    def _reason_to_return(self, case: Case, now: float) -> Reason | None:
        why = case.may_return or (None if case.demand is not None else "nothing stands against it any more")
        if why is None or not case.online or case.leaving is not None:
            return None
        if repeaters.needs_a_person(case.taken_out, self._returning):
            return None
        back_at = repeaters.back_at(case, self._returning)
        if now < back_at:
            self.cases.look_at(case.node, back_at)
            return None
        return Trigger.RETURNING, why

    def _reason_to_release(self, case: Case) -> Reason | None:
        if not self._has_passed(case) or case.demand is not None:
            return None
        wanted = self.testing.wanted(case)
        return Trigger.PROVED, f"it has passed its tests {'once' if wanted == 1 else f'{wanted} times in a row'}"

    def _is_on_trial(self, case: Case) -> bool:
        """Whether it is being tested, so that it may get work."""
        if not self.acts or case.gone or case.hands_off is not None:
            return False
        has_begun = case.trial is not None and case.demand is None  # its own tests may have found that it is not fit
        is_new = case.state is ServiceState.ACCEPTING and self.testing.precedes_work and (case.fit or has_begun)
        return is_new or case.state is ServiceState.PROBATION

    def _has_passed(self, case: Case) -> bool:
        return case.trial is not None and case.trial.passed >= self.testing.wanted(case)


def _accusers(case: Case) -> tuple[str, ...]:
    """The checks that found what the node has to go for."""
    codes = () if case.demand is None else case.demand.codes
    return tuple(dict.fromkeys(charge.check for charge in case.charges if charge.code in codes))


def _gist(demand: Demand | None) -> tuple[object, ...]:
    return () if demand is None else (demand.row, demand.cause, demand.is_proven)


def _told(demand: Demand | None) -> str:
    if demand is None:
        return "nothing asks for it to go any more"
    found = ", ".join(demand.codes)
    proof = "" if demand.is_proven else f"; {', '.join(demand.unproven)} must find it once more"
    return f"row {demand.row} asks for it to go because of {found}{proof}: {demand.reason}"
