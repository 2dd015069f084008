"""Which tests are asked for: second opinions about what was found once, and those by which a node gets its work."""

from muster.model import Json, ServiceState, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.case import Case, Trial
from muster_coordinator.model.demand import Demand
from muster_coordinator.model.quarantine_events import LEAST_PARTNERS, StartTest
from muster_coordinator.quarantine import trials
from muster_coordinator.quarantine.cases import Cases
from muster_coordinator.quarantine.saying import Saying


class Testing:
    """Has the nodes of `cases` tested, as the settings want it."""

    def __init__(self, settings: QuarantineSettings, cases: Cases, saying: Saying) -> None:
        self._tests = settings.tests
        self._returning = settings.returning
        self._cases = cases
        self._saying = saying

    @property
    def precedes_work(self) -> bool:
        """Whether a new node has to pass tests before it is accepted."""
        return bool(self._tests)

    def wanted(self, case: Case) -> int:
        """How many rounds in a row the node must pass."""
        return 1 if case.state is ServiceState.ACCEPTING else self._returning.passes

    def ask_again(self, case: Case, demand: Demand, now: float) -> Case:
        """Asks for a second opinion about each run that has found something, and again when none has come."""
        for check in demand.unproven:
            run = next((charge.run for charge in case.charges if charge.check == check), None)
            if run is None:
                continue  # that a node is silent, nobody can be asked to find again
            question = case.asked.get(check)
            if _may_ask(case, check, run, now):
                test = self._saying.new_id("o")
                question = trials.next_question(question, run, test, now, trials.overdue_at(case, check, now))
                case = self._cases.change(case, asked={**case.asked, check: question})
                self._saying.note(case.node, "second_opinion", f"{check} is asked to find it again", run)
                self._start(case, test, check, {})
            if question is not None:
                self._look_at(case, question.again_at)
        return case

    def note_opinion(self, case: Case, test: str, verdict: Verdict, now: float) -> Case:
        """Takes in what a second opinion has said; when it has found it again, that is told as evidence."""
        check = next(check for check, question in case.asked.items() if question.test == test)
        if verdict is not Verdict.FAIL:
            self._saying.note(case.node, "second_opinion", f"{check} has not found it again: {verdict}", test)
        question = trials.answered(case.asked[check], now)
        return self._cases.change(case, asked={**case.asked, check: question})

    def note(self, case: Case, verdict: Verdict, now: float) -> Case:
        """Takes in what the test that was under way has said."""
        if case.trial is None:
            return case
        wanted = self.wanted(case)
        trial = trials.after_test(case.trial, verdict, now, pause_s=self._returning.pause_s, wanted=wanted)
        if case.trial.passed < trial.passed <= wanted:
            self._saying.note(case.node, "test", f"{trial.passed} of {wanted} rounds passed", case.trial.test)
        return self._cases.change(case, trial=trial)

    def go_on(self, case: Case, now: float) -> Case:
        """Goes on with the tests by which a node gets its work."""
        trial = case.trial or Trial(begun=now)
        if trial.test is not None and (_is_due(trial.overdue_at, now) or not case.online):
            trial = trials.interrupted(trial, now, self._returning.pause_s)
        if trial.test is not None:
            self._look_at(case, trial.overdue_at)
        elif now < trial.next_at:
            self._cases.look_at(case.node, trial.next_at)
        elif case.online and (trial.passed < self.wanted(case) or _is_in_doubt(case)):
            trial = self._start_next(case, trial, now)
        return self._cases.change(case, trial=trial)

    def _start_next(self, case: Case, trial: Trial, now: float) -> Trial:
        if not trial.waiting:
            sweep = self._returning.sweep if self._returning.partners and case.state is ServiceState.PROBATION else None
            trial = trial.model_copy(update={"waiting": trials.tests_of(case, self._tests, sweep)})
        if not trial.waiting:
            return trial.model_copy(update={"passed": self.wanted(case)})  # nothing that it could be tested with
        test = trial.waiting[0]
        trial = trials.next_test(trial, self._saying.new_id("p"), trials.overdue_at(case, test.check, now))
        self._look_at(case, trial.overdue_at)
        self._start(case, str(trial.test), test.check, test.params)
        return trial

    def _look_at(self, case: Case, moment: float | None) -> None:
        if moment is not None:
            self._cases.look_at(case.node, moment)

    def _start(self, case: Case, test: str, check: str, params: Json) -> None:
        partners = max(LEAST_PARTNERS, self._returning.partners)
        self._saying.say(StartTest(node=case.node, test=test, check=check, params=params, partners=partners))


def _may_ask(case: Case, check: str, run: str, now: float) -> bool:
    """Whether a second opinion about a run may be asked for now.

    A run of the node alone is, about each that has found something. A sweep takes the time of others: a node that finds
    something new with every run would keep them all busy. So there is one at a time, and the next only after a while.
    """
    question = case.asked.get(check)
    is_sweep = trials.overdue_at(case, check, now) is None
    if is_sweep and any(asked.again_at is None for asked in case.asked.values()):
        return False
    if question is None or _is_due(question.again_at, now):
        return True
    return question.run != run and not is_sweep


def _is_in_doubt(case: Case) -> bool:
    """Whether something keeps a node from its work that has passed its tests: they are what shows that it is over."""
    return case.demand is not None or (case.state is ServiceState.ACCEPTING and not case.fit)


def _is_due(moment: float | None, now: float) -> bool:
    return moment is not None and now >= moment
