"""Between the quarantine and the rest of the fleet: what happens to nodes it is told, what it decides is carried out.

Every event that has led to anything is written into a log together with the decisions, from which they follow again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from muster.check import Scope
from muster.errors import Refused
from muster.model import Name, Run, ServiceState, Verdict
from muster_coordinator import events as fleet
from muster_coordinator.definitions import are_alike, different, usual_scope
from muster_coordinator.events import Announce, RunRequested, SaveNode, SweepRequested
from muster_coordinator.localize.strategy import Strategy
from muster_coordinator.orders import Orders
from muster_coordinator.quarantine.actions import Action
from muster_coordinator.quarantine.case import OUT, Case
from muster_coordinator.quarantine.events import (
    Beginning,
    Command,
    Event,
    Note,
    SaveAction,
    SaveCase,
    StartTest,
    Step,
    TestEnded,
    TimePassed,
    step_of,
)
from muster_coordinator.quarantine.machine import Quarantine
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.testing import LEAST_PARTNERS
from muster_coordinator.quarantine.view import CaseView, QuarantineView
from muster_coordinator.roster import Roster
from muster_coordinator.run_orders import order_run
from muster_coordinator.sweep_records import SweepRecord, SweepRequest
from muster_coordinator.sweeping import Sweeping
from muster_coordinator.sweeps.neighbours import draw_partners
from muster_coordinator.sweeps.recovery import RESTARTED

TEST_OF = "test of "
"""How the origin of a sweep begins that tests the node named behind it."""

LOG_S = 86_400.0
"""How long a log goes on before it begins anew: only up to a beginning can it be removed when it is old."""


class Quarantining:
    """Lets `quarantine` decide about the nodes of `roster`, which are tested by runs and in sweeps.

    `changes` counts by service state how often a node has come to it since the start.
    """

    def __init__(self, quarantine: Quarantine, roster: Roster, orders: Orders, sweeping: Sweeping) -> None:
        self.changes: Counter[ServiceState] = Counter()
        self._quarantine = quarantine
        self._roster = roster
        self._orders = orders
        self._sweeping = sweeping
        self._sweeps: dict[str, str] = {}  # the node of each sweep that was asked for as a test
        self._ended: list[TestEnded] = []
        self._log_begun = 0.0
        self._looks: list[Step] = []  # of the log, written with the next decision: without one they are of no use
        self._unheard: dict[str, list[StartTest]] = {}  # tests of who was there and was not heard of since the start

    @property
    def cases(self) -> Mapping[str, Case]:
        """The case of every node, by name."""
        return self._quarantine.cases

    def listed(self) -> dict[str, set[str]]:
        """By actor, the nodes of which it has said how its scheduler has them."""
        listed: defaultdict[str, set[str]] = defaultdict(set)
        for case in self.cases.values():
            for actor in case.views:
                listed[actor].add(case.node)
        return listed

    def has_left(self, node: str) -> bool:
        """Whether a node has left the fleet while it was not out of service, and nobody has come under its name yet."""
        case = self.cases.get(node)
        return case is not None and case.gone and case.state not in OUT

    def last_action(self, node: str) -> Action | None:
        """A node's last transition, with what came of it; None when there was none, or it counts no more."""
        return self._quarantine.last_action(node)

    def case_view(self, node: str) -> CaseView:
        """A node's case as people see it; KeyError when there is none."""
        return self._quarantine.case_view(node)

    def view(self) -> QuarantineView:
        """What is decided about the fleet as a whole."""
        return self._quarantine.view()

    def long_gone(self, event: fleet.RetentionEnded) -> set[str]:
        """The nodes that need be remembered no more."""
        return {case.node for case in self.cases.values() if case.is_long_gone(event.before, event.left_before)}

    def restore(self, cases: Iterable[Case], actions: Iterable[Action], now: float) -> list[fleet.Command]:
        """Takes over what is stored; of nodes that have no case yet, the service state is all that is known."""
        self._unheard = {name: [] for name, node in self._roster.nodes.items() if node.online}
        known = {case.node: case for case in cases}
        for name, node in self._roster.nodes.items():
            case = known.setdefault(name, Case(node=name, state=node.service, since=node.first_seen))
            node.dry_run, node.left = case.dry_run, case.gone
            node.evidence.date_as(case.charges)
        begun = self._begin_log(self._quarantine.begin(known.values(), actions), now)
        self._roster.report_all(without={name for name in self._roster.nodes if self.has_left(name)})
        return [*self._end_old_tests(now), *begun, *self.settle(now)]

    def _end_old_tests(self, now: float) -> list[fleet.Command]:
        """Ends the sweeps that the coordinator before this one had begun as tests: their nodes are tested anew."""
        plans = [sweep.plan for sweep in self._sweeping.running.values()]
        old = [plan.id for plan in plans if plan.origin.startswith(TEST_OF)]
        return [command for sweep in old for command in self._sweeping.abort(sweep, RESTARTED, now)]

    def hear(self, node: str, now: float) -> list[fleet.Command]:
        """Notes a sign of life. An order that was sent before it would have been lost: neither of us was connected."""
        return [command for wanted in self._unheard.pop(node, ()) for command in self._start(wanted, now)]

    def lose(self, node: str) -> None:
        """Does without a node that is lost; what it was to be tested with says nothing any more."""
        unheard = self._unheard.pop(node, ())
        self._ended += [TestEnded(node=node, test=it.test, verdict=Verdict.UNKNOWN) for it in unheard]

    def awaits(self, node: str, run: str) -> bool:
        """Whether the run is the test that the coordinator has asked the node for."""
        case = self.cases.get(node)
        return case is not None and case.awaits(run)

    def note_run(self, run: Run) -> None:
        """Notes a run, which may be the test that its node was asked for."""
        if self.awaits(run.node, run.id):
            self._ended.append(TestEnded(node=run.node, test=run.id, verdict=run.verdict))

    def tick(self, now: float) -> list[fleet.Command]:
        """Lets time pass, also when a clock was set back."""
        begun = self._renew(now) if abs(now - self._log_begun) >= LOG_S else []
        is_due = self._quarantine.is_due(now)
        decided = self.handle(TimePassed(), now)
        if is_due and not decided:
            self._looks.append(step_of(TimePassed(), (), now))
        return [*begun, *decided]

    def settle(self, now: float) -> list[fleet.Command]:
        """Lets the quarantine know what has happened since it was told last."""
        self._note_sweeps()
        ended, self._ended = self._ended, []
        return [command for event in [*self._roster.take_news(), *ended] for command in self.handle(event, now)]

    def handle(self, event: Event, now: float) -> list[fleet.Command]:
        """What is to be done about `event`; Refused when a request is not valid, and then nothing has changed."""
        said = self._quarantine.handle(event, now)
        return self._decided(event, said, now) if said else []

    def _renew(self, now: float) -> list[fleet.Command]:
        """Has the log begin anew, and another machine with it: just so the log is gone through again."""
        event = self._quarantine.renewal()
        self._quarantine = Quarantine(event.settings, Policy(event.rows), self._orders.epoch)
        return self._begin_log(event, now)

    def _begin_log(self, event: Beginning, now: float) -> list[fleet.Command]:
        self._log_begun, self._looks = now, []
        return self._decided(event, self._quarantine.handle(event, now), now)

    def _decided(self, event: Event, said: list[Command], now: float) -> list[fleet.Command]:
        steps, self._looks = [*self._looks, step_of(event, said, now)], []
        return [*(fleet.SaveStep(self._orders.epoch, step) for step in steps), *self._carry_out(said, now)]

    def _carry_out(self, said: Iterable[Command], now: float) -> list[fleet.Command]:
        commands: list[fleet.Command] = []
        changed: dict[str, None] = {}
        for command in said:
            match command:
                case SaveCase(case=case):
                    changed[case.node] = None
                    commands += [command, *self._follow(case, now)]
                case SaveAction(action=action):
                    changed[action.transition.node] = None
                    commands.append(command)
                case Note(node=node, about=about, text=text, cause=cause, data=data):
                    commands.append(self._roster.story.tell(node, about, text, cause, now, data=data))
                case StartTest():
                    commands += self._start(command, now)
                case _:
                    commands.append(command)
        views = (self._quarantine.case_view(node) for node in changed if node in self.cases)
        return [*commands, *(Announce("case", view) for view in views)]

    def _follow(self, case: Case, now: float) -> list[fleet.Command]:
        """Shows a node as was decided; of one that was forgotten there is nothing to show."""
        node = self._roster.nodes.get(case.node)
        if node is None or (node.service, node.dry_run, node.left) == (case.state, case.dry_run, case.gone):
            return []
        if node.service is not case.state:
            self.changes[case.state] += 1
        node.service, node.dry_run, node.left = case.state, case.dry_run, case.gone
        return [SaveNode(node.record()), Announce("node", self._roster.view(node, now))]

    def _start(self, wanted: StartTest, now: float) -> list[fleet.Command]:
        """Has a node tested; what cannot be begun has said nothing about the node."""
        if wanted.node in self._unheard:
            self._unheard[wanted.node].append(wanted)
            return []
        try:
            return self._begin(wanted, now)
        except Refused as refused:
            self._ended.append(TestEnded(node=wanted.node, test=wanted.test, verdict=Verdict.UNKNOWN))
            text = f"{wanted.check} could not be asked for: {refused}"
            return [self._roster.story.tell(wanted.node, "test", text, wanted.test, now)]

    def _begin(self, wanted: StartTest, now: float) -> list[fleet.Command]:
        nodes = self._roster.nodes
        node = nodes[wanted.node]
        if wanted.check not in node.checks or usual_scope(wanted.check, nodes.values()) is Scope.NODE:
            request = RunRequested(wanted.test, wanted.node, wanted.check, wanted.params)
            return order_run(request, self._roster, self._orders, now)
        out = {case.node for case in self.cases.values() if case.state in OUT}
        partners = draw_partners(node, nodes, wanted.check, wanted.partners, lots=wanted.test, without=out)
        if partners and not are_alike(node.checks[wanted.check], partners[0].checks[wanted.check]):
            raise Refused(different(wanted.check))
        names = (wanted.node, *(other.name for other in partners))
        # Without a strategy the sweep would derive it from the check's scope, which a lone node announces itself: it
        # could choose to be tested without partners.
        sweep = SweepRequest(check=wanted.check, params=wanted.params, strategy=Strategy.ADAPTIVE, nodes=names)
        begun = self._sweeping.begin(SweepRequested(wanted.test, sweep, f"{TEST_OF}{wanted.node}"), now)
        self._sweeps[wanted.test] = wanted.node
        return begun

    def _note_sweeps(self) -> None:
        for sweep in sorted(self._sweeps.keys() - self._sweeping.running.keys()):
            node = self._sweeps.pop(sweep)
            verdict = _verdict_on(node, self._sweeping.record(sweep))
            self._ended.append(TestEnded(node=node, test=sweep, verdict=verdict))


def _was_compared(record: SweepRecord) -> bool:
    """Whether partners enough have taken part to tell what is slow: all, or as many as that takes."""
    there = [node for node in record.nodes if node not in record.absent]
    return not record.absent or len(there) > LEAST_PARTNERS


def _verdict_on(node: Name, record: SweepRecord | None) -> Verdict:
    """What a sweep says about one of its nodes."""
    if record is not None and node in record.cleared_nodes and _was_compared(record):
        return Verdict.PASS
    if record is not None and any(failed.node == node for failed in record.failed_nodes):
        return Verdict.FAIL
    return Verdict.UNKNOWN
