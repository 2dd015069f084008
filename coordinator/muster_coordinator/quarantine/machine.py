"""The quarantine as one machine: what is known about each node, and which decisions follow from it.

Every event changes what is known about a node, and then it is asked what should become of the node now. Nothing is
kept to be done later, so that nothing old can come out of a queue.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from muster.model import Name, ServiceState, Verdict, format_instant, parse_instant
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import OUT, Case
from muster_coordinator.model.charge import Charge
from muster_coordinator.model.quarantine_events import (
    Beginning,
    Command,
    Event,
    EvidenceChanged,
    FreezeLifted,
    HoldRequested,
    NodeDescribed,
    NodeForgotten,
    NodeHeard,
    NodeLongGone,
    NodeLost,
    ReleaseRequested,
    Renewed,
    Restored,
    TestEnded,
    TimePassed,
)
from muster_coordinator.model.quarantine_views import CaseView, QuarantineView
from muster_coordinator.quarantine import trials
from muster_coordinator.quarantine.accusing import charges_against, sighted
from muster_coordinator.quarantine.answers import Answers
from muster_coordinator.quarantine.cases import waits
from muster_coordinator.quarantine.deciding import Deciding
from muster_coordinator.quarantine.moves import Trigger
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.requests import Requests
from muster_coordinator.quarantine.switching import state_in_mode
from muster_coordinator.quarantine.view import case_view, view_of


class Quarantine:
    """The service states of all nodes, as `policy` and `settings` want them; `epoch` makes its ids unique."""

    def __init__(self, settings: QuarantineSettings, policy: Policy, epoch: int) -> None:
        self._settings = settings
        self._policy = policy
        self._deciding = Deciding(settings, policy, epoch)
        self._cases = self._deciding.cases
        self._telling = self._deciding.telling
        self._saying = self._deciding.saying
        self._answers = Answers(settings, self._deciding)
        self._requests = Requests(self._deciding)

    @property
    def cases(self) -> Mapping[str, Case]:
        """The case of every node, by name."""
        return self._cases.by_node

    def last_action(self, node: str) -> Action | None:
        """A node's last transition, with what came of it; None when there was none, or it counts no more."""
        return self._telling.latest(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case, with what people want to know besides; KeyError when there is none."""
        case = self.cases[node]
        wanted = self._deciding.testing.wanted(case)
        return case_view(case, self.last_action(node), self._settings, self._policy, rounds=wanted)

    def view(self) -> QuarantineView:
        """What is decided about the fleet as a whole."""
        deciding = self._deciding
        frozen = deciding.mass_events.standing.values()
        return view_of(self._settings, deciding.budget, self._cases.census, self.cases.values(), frozen)

    def begin(self, cases: Iterable[Case], actions: Iterable[Action]) -> Restored:
        """The event that begins a log: what is stored, with the latest transition of each node, and the rules."""
        rows = self._policy.rows
        return Restored(settings=self._settings, rows=rows, cases=tuple(cases), actions=tuple(actions))

    def renewal(self) -> Renewed:
        """The event with which a log begins anew, for another machine that goes on where this one is."""
        return Renewed(
            settings=self._settings,
            rows=self._policy.rows,
            cases=tuple(self.cases.values()),
            actions=self._telling.all_latest,
            earlier=self._telling.all_earlier,
            frozen=tuple(self._deciding.mass_events.standing.values()),
            let_pass=self._deciding.mass_events.lifted,
            ids=self._saying.ids,
        )

    def is_due(self, now: float) -> bool:
        """Whether nodes are looked at when time passes now: that belongs in the log even when nothing comes of it."""
        return self._cases.is_due(_as_logged(now))

    def handle(self, event: Event, now: float) -> list[Command]:
        """What is to be done about `event`; Refused when a request is not valid, and then nothing has changed."""
        now = _as_logged(now)
        match event:
            case Restored() | Renewed():
                self._begin(event, now)
            case NodeDescribed():
                self._describe(event, now)
            case NodeHeard(node=node):
                self._hear(node, now)
            case NodeLost(node=node):
                self._lose(node, now)
            case EvidenceChanged():
                self._weigh(event, now)
            case TestEnded():
                self._take_test(event, now)
            case NodeLongGone(node=node):
                self._deciding.erase(self._cases.known(node))
            case TimePassed():
                self._pass_time(now)
            case HoldRequested() | ReleaseRequested() | FreezeLifted() | NodeForgotten():
                self._requests.grant(event, now)
            case _:
                self._answers.take(event, now)
        return self._deciding.all_said()

    def _reconsider(self, case: Case, now: float) -> None:
        self._deciding.reconsider(case, now)

    # What becomes known

    def _describe(self, event: NodeDescribed, now: float) -> None:
        case = self._cases.get(event.node) or self._join(event.node, None, now)
        said = {"place": event.place, "own_checks": _own_checks(case, event), "patience_s": event.patience_s}
        self._reconsider(self._cases.change(case, **said), now)

    def _hear(self, node: str, now: float) -> None:
        case = self._cases.get(node)
        if case is not None and case.gone and case.state in OUT:
            case = self._take_back(case, now)
        elif case is None or case.gone:
            case = self._join(node, case, now)
        if not case.online and case.state is ServiceState.CORDONED:
            case = self._cases.change(case, may_return="it was away and is back")
        self._reconsider(self._cases.change(case, lost_at=None), now)

    def _join(self, node: str, before: Case | None, now: float) -> Case:
        """Takes a node in as a new one.

        Of one that had left, what people have said stays, how often it was out, and that it may be shut out still.
        """
        case = Case(node=node, since=now)
        if before is not None:
            kept = {name: getattr(before, name) for name in ("hold", "views", "taken_out", "closed_as")}
            case = case.model_copy(update={**kept, "listed": bool(before.views)})
        self._telling.forget(node)
        self._cases.put(case)
        if self._settings.keep_new_out:
            self._keep_out(case, now)
        return self.cases[node]

    def _take_back(self, case: Case, now: float) -> Case:
        """Takes a node in that had left while it was out: it stays out until it has proved itself.

        Whether it is the same machine nobody can tell by its name. Another one has to pass the same tests.
        """
        before, since = case.state, case.since if case.state is ServiceState.CORDONED else now
        case = self._cases.change(case, gone=False, state=ServiceState.CORDONED, since=since, trial=None)
        if case.hands_off is None:
            self._deciding.tell(case, before, "it had left while it was out, and has come again", now)
        return self.cases[case.node]

    def _keep_out(self, case: Case, now: float) -> None:
        """Has the actors keep a new node out, unless more would be out by that than the budget lets."""
        if self._deciding.budget.lets_keep_out(self._cases.census):
            case = self._cases.change(case, kept_out=True)
            self._deciding.tell(case, ServiceState.ACCEPTING, "it is new and not accepted yet", now)
        else:
            self._saying.note(case.node, "service", "it is new and not kept out: the budget has no room for that")

    def _lose(self, node: str, now: float) -> None:
        case = self._cases.known(node)
        if case.online:
            case = self._take_evidence(case, now, lost_at=now)
        self._reconsider(self._answers.leave(case), now)

    def _weigh(self, event: EvidenceChanged, now: float) -> None:
        case = self._cases.known(event.node)
        charges = tuple(map(_charge_as_logged, event.charges))
        sightings = sighted(case.sightings, charges)
        self._reconsider(self._take_evidence(case, now, charges=charges, sightings=sightings, fit=event.fit), now)

    def _take_evidence(self, case: Case, now: float, **known: Any) -> Case:
        """Takes in what speaks against a node now, and says of errors that are new and take it not out why."""
        before = {charge.key for charge in charges_against(case, now)}
        case = self._cases.change(case, **known)
        new = (charge for charge in charges_against(case, now) if charge.key not in before)
        for text in self._policy.spared(new):
            self._saying.note(case.node, "policy", text)
        return case

    def _take_test(self, event: TestEnded, now: float) -> None:
        case = self._cases.get(event.node)
        if case is None or not case.awaits(event.test):
            return
        if case.trial is not None and case.trial.test == event.test:
            self._judge(case, case.trial.waiting[0].check, event, now)
        else:
            self._reconsider(self._deciding.testing.note_opinion(case, event.test, event.verdict, now), now)

    def _judge(self, case: Case, check: str, event: TestEnded, now: float) -> None:
        self._saying.note(case.node, "test", f"{check}: {event.verdict}", event.test)
        is_touched = case.state is ServiceState.PROBATION and case.hands_off is None
        if event.verdict is Verdict.FAIL and is_touched:
            self._deciding.move(case, Trigger.RELAPSED, f"it has failed {check}", now)
        else:
            self._reconsider(self._deciding.testing.note(case, event.verdict, now), now)

    def _pass_time(self, now: float) -> None:
        self._deciding.take_waiting(now)
        for node in self._cases.due(now):
            self._answers.retry(node, now)
            self._reconsider(self.cases[node], now)

    # When a log begins

    def _begin(self, event: Beginning, now: float) -> None:
        self._cases.restore(event.cases)
        self._telling.restore(event.actions, self.cases)
        if isinstance(event, Renewed):
            self._deciding.go_on(event)
            for node in self.cases:
                self._cases.look_at(node, now)
        else:
            for case in [*self.cases.values()]:
                self._switch(case, now)
            self._deciding.recall()
            for case in [*self.cases.values()]:
                self._resume(case, now)

    def _resume(self, case: Case, now: float) -> None:
        """Goes on where the coordinator before this one ended, with what is known now."""
        case = self._cases.change(case, asked=trials.still_open(case.asked), held_because=self._held_because(case))
        if case.trial is not None:
            case = self._cases.change(case, trial=trials.resumed(case.trial))
        self._answers.resume(case.node)
        if self._is_shown_as_held(case):
            self._deciding.tell(case, ServiceState.HELD, "it does not wait for room any more", now)
        self._cases.look_at(case.node, now)

    def _is_shown_as_held(self, case: Case) -> bool:
        """Whether actors go on showing that a node is HELD, which is not so any more in this mode."""
        is_shown = case.announced and case.state is ServiceState.IN_SERVICE
        if not is_shown or case.gone or self._deciding.is_dry:
            return False
        latest = self._telling.latest(case.node)
        return latest is None or latest.transition.dry_run or latest.transition.after is ServiceState.HELD

    def _held_because(self, case: Case) -> str:
        """Why a node waits at the start: who had to go before has its turn by how bad it is, not by its name."""
        goes_now = self._deciding.acts and case.state not in OUT and waits(case)
        return case.held_because or ("others may be worse" if goes_now else "")

    def _switch(self, case: Case, now: float) -> None:
        """Does without what was decided about a node in another mode and does not count in this one."""
        if not self._deciding.acts:
            case = self._cases.change(case, held_because="")
        state = state_in_mode(case, self._settings.mode)
        if state is case.state:
            self._cases.change(case, dry_run=case.dry_run and self._deciding.is_dry)
            return
        self._saying.note(case.node, "service", f"{case.state} to {state}: the mode is {self._settings.mode} now")
        taken_out = case.taken_out if state is ServiceState.CORDONED else ()
        updates = {"dry_run": False, "held_because": "", "trial": None, "taken_out": taken_out}
        self._cases.change(case, state=state, since=now, **updates)


def _own_checks(case: Case, event: NodeDescribed) -> tuple[Name, ...]:
    """The checks that a node runs by itself. Out of service it also owes those that it announces no longer but most do.

    Otherwise a bad node would pass its probation by announcing nothing that it fails.
    """
    owed = set(case.own_checks) & set(event.usual_checks) if case.state in OUT else set()
    return (*event.own_checks, *sorted(owed.difference(event.own_checks)))


def _as_logged(moment: float) -> float:
    """A time in whole milliseconds: when a log is gone through again, all must be decided at the same times."""
    return float(parse_instant(format_instant(moment)))


def _charge_as_logged(charge: Charge) -> Charge:
    return charge.model_copy(update={"since": _as_logged(charge.since), "seen": _as_logged(charge.seen)})
