"""A simulation of a fleet under quarantine: models of nodes, schedulers, people, and the real, pure `Quarantine`.

No scheduler, agent or database is here: the models do what those promise, in virtual time, and what goes wrong with
them a seed decides. What is stored survives crashes, what was decided and not stored does not. After every event
`Promises` looks whether what always has to hold still does.
"""

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from muster.model import Finding, Health, Run, ServiceState, Severity, Verdict
from muster.quarantine_settings import AcceptanceTest, BudgetSettings, QuarantineSettings, ReturnSettings
from muster.transition import Effect, Mark, SchedulerNode, Transition
from muster_coordinator.health import Evidence
from muster_coordinator.quarantine.actions import Action
from muster_coordinator.quarantine.budget import Budget
from muster_coordinator.quarantine.case import Case
from muster_coordinator.quarantine.charge import Proof
from muster_coordinator.quarantine.charges import charges_of
from muster_coordinator.quarantine.events import (
    Act,
    ActionEnded,
    AllTold,
    Command,
    Event,
    EvidenceChanged,
    NodeDescribed,
    NodeHeard,
    NodeLost,
    NodeNotListed,
    NodeSurveyed,
    SaveAction,
    SaveCase,
    StartTest,
    Step,
    TestEnded,
    TimePassed,
)
from muster_coordinator.quarantine.machine import Quarantine
from muster_coordinator.quarantine.policy import Policy, Row
from muster_coordinator.records import NodeFinding

OWN_CHECKS = ("gemm", "kernel_log", "nvml")
CODES = {"gemm": "gemm.slow", "kernel_log": "kernel_log.xid", "nvml": "nvml.gone", "collective": "collective.slow"}
FINDINGS_NEEDED = {"gemm.slow": 2, "nvml.gone": 1, "collective.slow": 1}
"""By code, how often it must have been found before a node may go; an application's XID is not among them."""

POLICY = Policy(
    (
        Row(name="gone", codes=("nvml.gone",), proof=Proof.ONCE, urgency=90, reason="it is gone"),
        Row(name="convicted", codes=("*.slow",), proof=Proof.LOCALISED, fresh_s=86_400, reason="a sweep convicts it"),
        Row(name="application", codes=("*.xid",), severity="WARNING", service="IN_SERVICE", reason="its own fault"),
        Row(name="slow", codes=("gemm.slow",), fresh_s=1800, reason="it is slow"),
    )
)
RETURNING = ReturnSettings(passes=2, pause_s=10, wait_s=60, longest_wait_s=600, times=3)


@dataclass
class Entry:
    """A node as its scheduler has it; `mark` is the transition that our mark names, `changes` counts our cordons."""

    cordoned: bool = False
    mark: str | None = None
    opted_out: bool = False
    leaving: str | None = None
    listed: bool = True
    changes: int = 0

    @property
    def is_closed_by_us(self) -> bool:
        return self.cordoned and self.mark is not None

    def seen(self, node: str) -> SchedulerNode:
        whose = (Mark.OURS if self.cordoned else Mark.UNDONE) if self.mark else None
        mark = whose or (Mark.FOREIGN if self.cordoned else Mark.NONE)
        return SchedulerNode(node=node, mark=mark, transition=self.mark, opted_out=self.opted_out, leaving=self.leaving)

    def act(self, transition: Transition) -> Effect:
        """What an actor does: it undoes only what is ours, and leaves what others or an opt-out say."""
        whose = self.seen("any").mark
        if transition.dry_run:
            return Effect.WOULD
        if self.opted_out or whose is Mark.FOREIGN or (whose is Mark.UNDONE and transition.is_out):
            return Effect.LEFT
        self.changes += self.cordoned is not transition.is_out
        self.cordoned, self.mark = transition.is_out, transition.id if transition.is_out else None
        return Effect.DONE


@dataclass
class Store:
    """What is in the database: the last of each case, and of each transition."""

    cases: dict[str, Case] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)

    def write(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case SaveCase(case=case):
                    self.cases[case.node] = case
                case SaveAction(action=action):
                    self.actions[action.transition.id] = action


@dataclass
class Node:
    """A simulated node: which checks find something, what they have found so far, and whether it is there."""

    name: str
    place: str
    broken: set[str] = field(default_factory=set)
    found: Counter[str] = field(default_factory=Counter)
    evidence: Evidence = field(default_factory=Evidence)
    online: bool = True

    @property
    def is_fit(self) -> bool:
        return self.evidence.verdicts.keys() >= set(OWN_CHECKS) and self.evidence.health is Health.HEALTHY

    @property
    def is_bad(self) -> bool:
        return bool(self.broken - {"kernel_log"})


class World:
    """A fleet, its scheduler and its coordinator. `faults` says how often actors fail, between 0 and 1."""

    def __init__(self, seed: int, settings: QuarantineSettings, nodes: int, faults: float = 0.3) -> None:
        self.lot = random.Random(seed)
        self.settings = settings
        self.faults = faults
        self.now = 1_000_000.0
        self.nodes = {f"n{i}": Node(f"n{i}", f"r{i % (1 + nodes // 6)}") for i in range(nodes)}
        self.entries = {name: Entry() for name in self.nodes}
        self.store = Store()
        self.logs: list[list[Step]] = []
        self.runs = 0
        self._epoch = 0
        self._waiting: list[Command] = []
        self.acts: defaultdict[str, deque[Act]] = defaultdict(deque)
        self.tests: list[StartTest] = []
        self.stale: list[Event] = []
        self.promises = Promises(self)
        self.start(settings)

    @property
    def cases(self) -> dict[str, Case]:
        return dict(self.machine.cases)

    # The coordinator

    def start(self, settings: QuarantineSettings) -> None:
        """Starts a coordinator with what is stored, which is then told how everything is."""
        self._epoch += 1
        self.settings = settings
        self.machine = Quarantine(settings, POLICY, self._epoch)
        self.logs.append([])
        self.tell(self.machine.begin(self.store.cases.values(), self.store.actions.values()))
        for node in self.nodes.values():
            if node.name in self.machine.cases:
                self.describe(node)
                self.tell_evidence(node)
                self.tell(NodeHeard(node=node.name) if node.online else NodeLost(node=node.name))
            elif node.online:
                self.hear(node)

    def crash(self, settings: QuarantineSettings | None = None) -> None:
        """Ends the coordinator anywhere between deciding and hearing what came of it, and starts it again."""
        if self.lot.random() < 0.7:
            said = self.write()
            self.say(said[: self.lot.randint(0, len(said))])
        for name, acts in self.acts.items():
            for act in [*acts][: self.lot.randint(0, len(acts))]:
                self.entries[name].act(act.action.transition)
        self.kill()
        self.start(settings or self.settings)

    def kill(self) -> None:
        """Ends the coordinator as things stand: what is not stored is lost, and so is what nobody has answered yet."""
        self.promises.forget(self._waiting)
        for lost in (self._waiting, self.acts, self.tests, self.stale):
            lost.clear()

    def tell(self, event: Event) -> list[Command]:
        """Lets the machine decide; what it wants done waits to be stored."""
        said = self.machine.handle(event, self.now)
        self.logs[-1].append(Step(at=self.now, event=event, commands=tuple(said)))
        self._waiting += said
        self.promises.check(said)
        return said

    def flush(self) -> None:
        """Stores what was decided, and then says it."""
        self.say(self.write())

    def write(self) -> list[Act | StartTest]:
        """Stores what was decided; what is to be said now."""
        commands, self._waiting = self._waiting, []
        self.store.write(commands)
        return [command for command in commands if isinstance(command, Act | StartTest)]

    def say(self, commands: Iterable[Act | StartTest]) -> None:
        for command in commands:
            if isinstance(command, Act):
                self.acts[command.action.transition.node].append(command)
            else:
                self.tests.append(command)

    def settle(self) -> None:
        """Lets everything be stored and said, and everybody answer."""
        self.flush()
        while any(self.acts.values()) or self.tests:
            for node in [node for node, acts in self.acts.items() if acts]:
                self.answer(node)
            for test in [self.tests.pop() for _ in range(len(self.tests))]:
                self.test(test)
            self.flush()

    # Nodes

    def hear(self, node: Node) -> None:
        node.online = True
        self.tell(NodeHeard(node=node.name))
        self.describe(node)

    def lose(self, node: Node) -> None:
        if node.online:
            node.online = False
            self.tell(NodeLost(node=node.name))

    def describe(self, node: Node) -> None:
        self.tell(NodeDescribed(node=node.name, place=node.place, own_checks=OWN_CHECKS))

    def tell_evidence(self, node: Node) -> None:
        self.tell(EvidenceChanged(node=node.name, charges=charges_of(node.evidence), fit=node.is_fit))

    def run(self, node: Node, check: str) -> Verdict:
        """Runs a check, or a sweep that tries this node, and tells what it found."""
        self.runs += 1
        failed = check in node.broken
        node.found[CODES[check]] += failed
        changed = self._try_in_sweep(node, failed) if check == "collective" else self._run_alone(node, check, failed)
        if changed or (node.is_fit and self.machine.cases[node.name].state is ServiceState.ACCEPTING):
            self.tell_evidence(node)
        return Verdict.FAIL if failed else Verdict.PASS

    def _run_alone(self, node: Node, check: str, failed: bool) -> bool:
        finding = Finding(code=CODES[check], summary="found", severity=Severity.ERROR, device=0)
        return node.evidence.add(
            Run(
                id=f"run-{self.runs}",
                node=node.name,
                check=check,
                verdict=Verdict.FAIL if failed else Verdict.PASS,
                findings=(finding,) if failed else (),
                started_at=self.now,
                duration_s=0.0,
            )
        )

    def _try_in_sweep(self, node: Node, failed: bool) -> bool:
        if not failed:
            return node.evidence.clear("collective")
        finding = Finding(code="collective.slow", summary="slow with all", severity=Severity.ERROR)
        node.evidence.convict(
            NodeFinding(**dict(finding), check="collective", run=f"sweep-{self.runs}", since=self.now, seen=self.now)
        )
        return True

    # Schedulers

    def survey(self, node: str, *, late: bool = False) -> None:
        """Tells how the scheduler has a node, or will tell so when that may be true no more."""
        entry = self.entries[node]
        seen: Event = NodeNotListed(actor="scheduler", node=node)
        if entry.listed:
            seen = NodeSurveyed(actor="scheduler", node=entry.seen(node))
        if late:
            self.stale.append(seen)
        else:
            self.tell(seen)

    def answer(self, node: str) -> None:
        """Has the actors do what they were told first about a node, and tells what came of it."""
        act = self.acts[node].popleft()
        for actor in act.actors or ("pager", "scheduler"):
            transition, lot = act.action.transition, self.lot.random()
            if lot < self.faults / 2:
                effect = Effect.FAILED  # and nothing was done
            else:
                effect = self.entries[node].act(transition) if actor == "scheduler" else Effect.DONE
                effect = Effect.FAILED if lot < self.faults else effect  # done, but the answer was lost
            ended = ActionEnded(node=node, transition=transition.id, actor=actor, effect=effect, detail="so it was")
            self.tell(ended)
            if self.lot.random() < self.faults / 4:
                self.tell(ended)
        if not act.actors:
            self.tell(AllTold(node=node, transition=act.action.transition.id))

    def test(self, asked: StartTest) -> None:
        """Has a node tested, unless it is not there, and tells what the test has said."""
        node = self.nodes[asked.node]
        if not node.online or self.lot.random() < self.faults / 3:
            return
        skipped = self.lot.random() < self.faults / 3
        verdict = Verdict.SKIPPED if skipped else self.run(node, asked.check)
        self.tell(TestEnded(node=node.name, test=asked.test, verdict=verdict))

    def wait(self, seconds: float) -> None:
        """Lets time pass, in one go."""
        self.now += seconds
        self.tell(TimePassed())


def is_away(case: Case, entry: Entry) -> bool:
    """Whether a node gives no capacity, by our decision, by a mark of ours that is still there, or by anybody's."""
    is_out = case.state in (ServiceState.CORDONED, ServiceState.PROBATION) or entry.is_closed_by_us
    return is_out or case.lost_at is not None or any(view.mark is Mark.FOREIGN for view in case.views.values())


class Promises:
    """What must hold after every event, whatever happens."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: set[str] = set()
        self._taken_out: dict[str, float] = {}

    def check(self, said: Iterable[Command]) -> None:
        for command in said:
            if isinstance(command, Act):
                self._check_is_in_mode(command.action.transition)
        transitions = [command.action.transition for command in said if isinstance(command, SaveAction)]
        fresh = [transition for transition in transitions if transition.id not in self._known]
        self._known |= {transition.id for transition in fresh}
        for transition in fresh:
            self._check_is_ours_to_say(transition)
        taken_out = [
            it for it in fresh if it.after is ServiceState.CORDONED and it.before not in (it.after, "PROBATION")
        ]
        for transition in taken_out:
            self._check_has_a_reason(transition)
        if taken_out:
            self._check_budget(taken_out)
            self._check_rate(taken_out)

    def forget(self, unstored: Iterable[Command]) -> None:
        """What was decided and neither stored nor said has never been."""
        for command in unstored:
            if isinstance(command, SaveAction):
                self._taken_out.pop(command.action.transition.id, None)

    def _check_is_in_mode(self, transition: Transition) -> None:
        """Nobody is told anything by whoever observes, and in a dry run that it is one."""
        assert self._world.settings.mode == ("dry-run" if transition.dry_run else "enforce")

    def _check_is_ours_to_say(self, transition: Transition) -> None:
        """Nothing is decided about nodes that somebody holds, has cordoned or has opted out."""
        if transition.by is None and transition.before not in (transition.after, ServiceState.ACCEPTING):
            assert self._world.machine.cases[transition.node].hands_off is None

    def _check_has_a_reason(self, transition: Transition) -> None:
        """A node goes for what stands against it now and was found as often as it must be."""
        node = self._world.nodes[transition.node]
        standing = {charge.code for charge in charges_of(node.evidence)}
        sure = {code for code in transition.codes if node.found[code] >= FINDINGS_NEEDED.get(code, 1e9)}
        assert sure & standing

    def _check_budget(self, taken_out: Iterable[Transition]) -> None:
        """We never take a node out when too many are away already, as a whole or in its failure domain."""
        budget = Budget(self._world.settings.limits)
        cases = self._world.machine.cases.values()
        members = [case for case in cases if not case.gone and case.state is not ServiceState.ACCEPTING]
        away = [case for case in members if is_away(case, self._world.entries[case.node])]
        assert len(away) <= budget.limit(len(members)) < len(members)
        of_place, away_of_place = Counter(it.place for it in members), Counter(it.place for it in away)
        for place in {self._world.machine.cases[transition.node].place for transition in taken_out}:
            assert away_of_place[place] <= budget.domain_limit(of_place[place])

    def _check_rate(self, taken_out: Iterable[Transition]) -> None:
        """Not more nodes go within a minute than may, and those of one burst."""
        settings = self._world.settings.limits
        self._taken_out |= {transition.id: transition.at for transition in taken_out}
        recent = [at for at in self._taken_out.values() if at > self._world.now - 60]
        assert len(recent) <= settings.per_minute + max(1.0, settings.per_minute / 60)


def settings_of(lot: random.Random, mode: str = "enforce") -> QuarantineSettings:
    """Settings within what is sensible, as a seed draws them."""
    budget = BudgetSettings(
        share=lot.choice(["10%", "30%", "100%"]),
        nodes=lot.choice([None, None, 3]),
        domain_share=lot.choice(["50%", "100%"]),
        per_minute=lot.choice([2.0, 6.0, 600.0]),
    )
    return QuarantineSettings(
        mode=mode,  # type: ignore[arg-type]  # drawn from the modes
        budget=budget,
        returning=RETURNING,
        tests=lot.choice([(), (AcceptanceTest(check="gemm"),)]),
        keep_new_out=lot.random() < 0.3,
    )


@pytest.fixture
def simulate() -> Callable[..., World]:
    """A world of so many nodes, with settings that the seed draws unless they are given."""

    def build(seed: int, nodes: int | None = None, **given: Any) -> World:
        lot = random.Random(seed)
        size = nodes or lot.choice([1, 2, 3, 4, 5, 6, 8, 12, 16, 60 if seed % 3 == 0 else 7])
        settings = given.pop("settings", None) or settings_of(lot, given.pop("mode", "enforce"))
        return World(seed, settings, size, **given)

    return build
