"""A simulated fleet under quarantine: models of nodes, schedulers and people around the real, pure `Reconciler`.

No scheduler, agent or database is here: the models do what those promise, in virtual time, and what goes wrong with
them a seed decides. What is stored survives crashes, what was decided and not stored does not. After every event
`Promises` looks whether what always has to hold still does.
"""

import random
from collections import defaultdict, deque
from collections.abc import Iterable

from tests.simulation.quarantine.models import CODES, OWN_CHECKS, Entry, Node, Store
from tests.simulation.quarantine.promises import Promises

from muster.model import Finding, Run, ServiceState, Severity, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Effect
from muster_coordinator.evidence.standing_findings import standing_findings_of
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.policy_row import Row
from muster_coordinator.model.quarantine_events import (
    ActionEnded,
    AllActorsCalled,
    DispatchTransition,
    EvidenceChanged,
    NodeDescribed,
    NodeHeard,
    NodeLost,
    NodeNotListed,
    NodeSurveyed,
    QuarantineCommand,
    QuarantineEvent,
    Restored,
    StartTest,
    TestEnded,
    TimePassed,
)
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.reconciler import Reconciler
from muster_coordinator.quarantine.records import Records

POLICY = Policy(
    (
        Row(name="gone", codes=("nvml.gone",), proof=Proof.ONCE, urgency=90, reason="it is gone"),
        Row(name="convicted", codes=("*.slow",), proof=Proof.LOCALISED, fresh_s=86_400, reason="a sweep convicts it"),
        Row(name="application", codes=("*.xid",), severity="WARNING", service="IN_SERVICE", reason="its own fault"),
        Row(name="slow", codes=("gemm.slow",), fresh_s=1800, reason="it is slow"),
    )
)


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
        self.runs = 0
        self._epoch = 0
        self._waiting: list[QuarantineCommand] = []
        self.acts: defaultdict[str, deque[DispatchTransition]] = defaultdict(deque)
        self.tests: list[StartTest] = []
        self.stale: list[QuarantineEvent] = []
        self.promises = Promises(self)
        self.start(settings)

    @property
    def cases(self) -> dict[str, CaseView]:
        return {node: self.case(node) for node in self.reconciler.records}

    def case(self, node: str) -> CaseView:
        return self.reconciler.case_view(node)

    # The coordinator

    def start(self, settings: QuarantineSettings) -> None:
        """Starts a coordinator with what is stored, which is then told how everything is."""
        self._epoch += 1
        self.settings = settings
        self.reconciler = Reconciler(settings, POLICY, self._epoch)
        records, transitions = tuple(self.store.records.values()), tuple(self.store.transitions.values())
        self.tell(Restored(records=records, transitions=transitions, fleet=self.store.fleet))
        for node in self.nodes.values():
            if node.name in self.reconciler.records:
                self.describe(node)
                self.tell_evidence(node)
                self.tell(NodeHeard(node=node.name) if node.online else NodeLost(node=node.name))
            elif node.online:
                self.hear(node)

    def rebuild_indexes(self) -> None:
        """Compares every index of the coordinator with one that is built again from its records."""
        known, rebuilt = self.reconciler._records, Records()
        rebuilt.restore(known.by_node.values())
        for name in ("members", "away", "kept_out"):
            assert getattr(known.census, name) == getattr(rebuilt.census, name)
        assert +known.census.away_of == +rebuilt.census.away_of
        assert [*known.in_order()] == [*rebuilt.in_order()]
        assert known.nodes_by_cause == rebuilt.nodes_by_cause

    def crash(self, settings: QuarantineSettings | None = None) -> None:
        """Ends the coordinator anywhere between deciding and hearing what came of it, and starts it again."""
        if self.lot.random() < 0.7:
            said = self.write()
            self.say(said[: self.lot.randint(0, len(said))])
        for name, acts in self.acts.items():
            for act in [*acts][: self.lot.randint(0, len(acts))]:
                self.entries[name].act(act.record.transition)
        self.kill()
        self.start(settings or self.settings)

    def kill(self) -> None:
        """Ends the coordinator as things stand: what is not stored is lost, and so is what nobody has answered yet."""
        self.promises.forget(self._waiting)
        for lost in (self._waiting, self.acts, self.tests, self.stale):
            lost.clear()

    def tell(self, event: QuarantineEvent) -> list[QuarantineCommand]:
        """Lets the machine decide; what it wants done waits to be stored."""
        said = self.reconciler.handle(event, self.now)
        self._waiting += said
        self.promises.check(said)
        return said

    def flush(self) -> None:
        """Stores what was decided, and then says it."""
        self.say(self.write())

    def write(self) -> list[DispatchTransition | StartTest]:
        """Stores what was decided; what is to be said now."""
        commands, self._waiting = self._waiting, []
        self.store.write(commands)
        return [command for command in commands if isinstance(command, DispatchTransition | StartTest)]

    def say(self, commands: Iterable[DispatchTransition | StartTest]) -> None:
        for command in commands:
            if isinstance(command, DispatchTransition):
                self.acts[command.record.transition.node].append(command)
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
        silent_after_s = dict.fromkeys(OWN_CHECKS, 100.0)
        self.tell(
            NodeDescribed(node=node.name, domain=node.place, own_checks=OWN_CHECKS, silent_after_s=silent_after_s)
        )

    def tell_evidence(self, node: Node) -> None:
        self.tell(EvidenceChanged(node=node.name, findings=standing_findings_of(node.evidence), is_fit=node.is_fit))

    def run(self, node: Node, check: str) -> Verdict:
        """Runs a check, or a sweep that tries this node, and tells what it found."""
        self.runs += 1
        self.now += 1.0  # no two runs begin at the same moment
        failed = check in node.broken
        node.found[CODES[check]] += failed
        changed = self._try_in_sweep(node, failed) if check == "collective" else self._run_alone(node, check, failed)
        if changed or (node.is_fit and self.reconciler.records[node.name].state is ServiceState.ACCEPTING):
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
            return node.evidence.clear("collective", 1)
        finding = Finding(code="collective.slow", summary="slow with all", severity=Severity.ERROR)
        node.evidence.convict(
            NodeFinding(**dict(finding), check="collective", run=f"sweep-{self.runs}", since=self.now, seen=self.now)
        )
        return True

    # Schedulers

    def survey(self, node: str, *, late: bool = False) -> None:
        """Tells how the scheduler has a node, or will tell so when that may be true no more."""
        entry = self.entries[node]
        seen: QuarantineEvent = NodeNotListed(actor="scheduler", node=node)
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
            transition, lot = act.record.transition, self.lot.random()
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
            self.tell(AllActorsCalled(node=node, transition=act.record.transition.id))

    def test(self, asked: StartTest) -> None:
        """Has a node tested, unless it is not there, and tells what the test has said; a sweep tells its end always."""
        node = self.nodes[asked.node]
        if not node.online or self.lot.random() < self.faults / 3:
            if asked.check not in OWN_CHECKS:
                self.tell(TestEnded(node=node.name, test=asked.test, verdict=Verdict.UNKNOWN))
            return
        skipped = self.lot.random() < self.faults / 3
        verdict = Verdict.SKIPPED if skipped else self.run(node, asked.check)
        self.tell(TestEnded(node=node.name, test=asked.test, verdict=verdict))

    def wait(self, seconds: float) -> None:
        """Lets time pass, in one go."""
        self.now += seconds
        self.tell(TimePassed())
