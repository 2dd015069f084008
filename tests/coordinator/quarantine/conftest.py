"""A quarantine to be told what happens: nodes, evidence against them, and what actors and people say."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from muster.model import Action as Advice
from muster.model import ServiceState, Severity, Verdict
from muster.quarantine_settings import BudgetSettings, MassEventSettings, QuarantineSettings, ReturnSettings
from muster.transition import Effect, Mark, SchedulerNode, Transition
from muster_coordinator.model.findings import Proof, StandingFinding
from muster_coordinator.model.policy_row import Row
from muster_coordinator.model.quarantine import FleetState, QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    ActionEnded,
    AllActorsCalled,
    DispatchTransition,
    EvidenceChanged,
    FreezeLifted,
    HoldRequested,
    NodeDescribed,
    NodeForgotten,
    NodeHeard,
    NodeLost,
    NodeSurveyed,
    Note,
    QuarantineCommand,
    QuarantineEvent,
    ReleaseRequested,
    Restored,
    SaveFleetState,
    SaveRecord,
    SaveTransition,
    SendAlarm,
    StartTest,
    TestEnded,
    TimePassed,
)
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.reconciler import Reconciler

NOW = 1_000_000.0

ROWS = (
    Row(name="gone", codes=("nvml.gone",), proof=Proof.ONCE, urgency=90, reason="it is gone"),
    Row(name="application", codes=("*.xid",), severity="WARNING", service="IN_SERVICE", reason="its own fault"),
    Row(name="slow", codes=("gemm.*",), fresh_s=1800, reason="it is slow"),
    Row(name="lost", codes=("node.lost",), proof=Proof.ONCE, after_s=600, reason="it is silent for long"),
)

ROOMY = BudgetSettings(share="100%", domain_share="100%", per_minute=6000)
AT_ONCE = ReturnSettings(passes=1, pause_s=0, wait_s=0)


class Told:
    """A quarantine, what it was told, and what it has said."""

    def __init__(self, settings: QuarantineSettings, rows: Iterable[Row]) -> None:
        self.settings = settings
        self.now = NOW
        self.epoch = 0
        self.said: list[QuarantineCommand] = []
        self.records: dict[str, QuarantineRecord] = {}
        self.transitions: dict[str, TransitionRecord] = {}
        self.fleet = FleetState()
        self.runs = 0
        self._to_be_heard: list[str] = []
        self._policy = Policy(tuple(rows))
        self.restart()

    def restart(self, *, is_heard: bool = True, **changed: Any) -> list[QuarantineCommand]:
        """Ends it and starts another with what was stored, under settings of which these have changed.

        Before anything else is told, the nodes that were online are heard and have nothing new to say, unless they are
        not to be heard.
        """
        self.epoch += 1
        self.settings = self.settings.model_copy(update=changed)
        self.reconciler = Reconciler(self.settings, self._policy, self.epoch)
        records, transitions = tuple(self.records.values()), tuple(self.transitions.values())
        said = self._handle(Restored(records=records, transitions=transitions, fleet=self.fleet))
        online = (it.node for it in records if it.is_online and not it.evidence.has_left)
        self._to_be_heard = [*online] if is_heard else []
        return said

    def catch_up(self, node: str) -> list[QuarantineCommand]:
        """Has a node heard after a restart whose outbox holds nothing."""
        evidence = self.record(node).evidence
        known = EvidenceChanged(node=node, findings=evidence.findings, is_fit=evidence.is_fit)
        return [*self._handle(NodeHeard(node=node)), *self._handle(known)]

    def tell(self, event: QuarantineEvent, after_s: float = 0.0) -> list[QuarantineCommand]:
        """Tells an event, so many seconds after the last; what is to be done about it."""
        heard, self._to_be_heard = self._to_be_heard, []
        said = [command for node in heard for command in self.catch_up(node)]
        self.now += after_s
        return said + self._handle(event)

    def _handle(self, event: QuarantineEvent) -> list[QuarantineCommand]:
        said = self.reconciler.handle(event, self.now)
        self.said += said
        for command in said:
            if isinstance(command, SaveRecord):
                self.records[command.record.node] = command.record
            elif isinstance(command, SaveTransition):
                self.transitions[command.record.transition.id] = command.record
            elif isinstance(command, SaveFleetState):
                self.fleet = command.state
        return said

    def wait(self, seconds: float) -> list[QuarantineCommand]:
        """Lets so much time pass, in one go."""
        return self.tell(TimePassed(), seconds)

    def add(self, *nodes: str, place: str | None = "r1", fit: bool = True) -> None:
        """Has nodes join, which have been examined when they are `fit`."""
        for node in nodes:
            self.tell(NodeHeard(node=node))
            self.describe(node, place=place)
            self.tell(EvidenceChanged(node=node, findings=(), is_fit=fit))
            self.tell(AllActorsCalled(node=node, transition=self.case(node).transition or "none"))

    def describe(
        self,
        node: str,
        own_checks: tuple[str, ...] = ("gemm", "nvml"),
        place: str | None = None,
        usual_checks: tuple[str, ...] = (),
        departure: str | None = None,
    ) -> None:
        silent_after_s = {"gemm": 120.0, "memory": 1000.0, "nvml": 100.0}
        self.tell(
            NodeDescribed(
                node=node,
                domain=place,
                own_checks=own_checks,
                usual_checks=usual_checks,
                silent_after_s=silent_after_s,
                departure=departure,
            )
        )

    def charge(self, code: str, proof: Proof = Proof.TWICE, **said: Any) -> StandingFinding:
        """A finding of a new run that has found it now."""
        self.runs += 1
        usual = {"device": 0, "severity": Severity.ERROR, "action": Advice.RESET_GPU, "summary": "found"}
        times = {"since": self.now, "seen": self.now, "run": f"run-{self.runs}"}
        return StandingFinding(check=code.partition(".")[0], code=code, proof=proof, **{**usual, **times, **said})

    def accuse(self, node: str, *codes: str, proof: Proof = Proof.TWICE) -> list[QuarantineCommand]:
        """Tells that this stands against a node, and nothing else."""
        charges = tuple(self.charge(code, proof) for code in codes)
        return self.tell(EvidenceChanged(node=node, findings=charges, is_fit=False))

    def absolve(self, node: str) -> list[QuarantineCommand]:
        """Tells that nothing stands against a node."""
        return self.tell(EvidenceChanged(node=node, findings=(), is_fit=True))

    def lose(self, node: str) -> list[QuarantineCommand]:
        return self.tell(NodeLost(node=node))

    def hear(self, node: str) -> list[QuarantineCommand]:
        return self.tell(NodeHeard(node=node))

    def survey(self, node: str, mark: Mark, actor: str = "k8s", **said: Any) -> list[QuarantineCommand]:
        """Tells how an actor's scheduler has a node."""
        return self.tell(NodeSurveyed(actor=actor, node=SchedulerNode(node=node, mark=mark, **said)))

    def answer(
        self, node: str, effect: Effect, actor: str = "k8s", *, wait_s: float | None = None, all_called: bool = True
    ) -> list[QuarantineCommand]:
        """Tells what came of the latest transition at an actor, the only one unless not all have been told."""
        transition = self.transition(node).id
        ended = ActionEnded(
            node=node, transition=transition, actor=actor, effect=effect, detail="so it was", retry_after_s=wait_s
        )
        said = self.tell(ended)
        return [*said, *(self.tell(AllActorsCalled(node=node, transition=transition)) if all_called else [])]

    def end_test(self, node: str, verdict: Verdict) -> list[QuarantineCommand]:
        """Tells what the test that is under way has said."""
        probation = self.case(node).probation
        assert probation is not None
        assert probation.test is not None
        return self.tell(TestEnded(node=node, test=probation.test, verdict=verdict))

    def hold(self, node: str, by: str = "ada") -> list[QuarantineCommand]:
        return self.tell(HoldRequested(node=node, by=by, reason="I look at it"))

    def release(self, node: str, *, untested: bool = False) -> list[QuarantineCommand]:
        return self.tell(ReleaseRequested(node=node, by="ada", reason="repaired", untested=untested))

    def forget(self, node: str) -> list[QuarantineCommand]:
        return self.tell(NodeForgotten(node=node, by="ada", reason="given back"))

    def let_in(self, node: str) -> None:
        """Releases a node, untested, which its scheduler lets in again."""
        self.release(node, untested=True)
        self.answer(node, Effect.DONE)

    def lift(self) -> list[QuarantineCommand]:
        return self.tell(FreezeLifted(by="ada", reason="they are bad"))

    def case(self, node: str) -> CaseView:
        return self.reconciler.case_view(node)

    def record(self, node: str) -> QuarantineRecord:
        return self.reconciler.records[node]

    def state(self, node: str) -> ServiceState:
        return self.case(node).state

    def states(self) -> str:
        """The states of all nodes by name, by their first letters."""
        return "".join(record.state[0] for _, record in sorted(self.reconciler.records.items()))

    def transition(self, node: str) -> Transition:
        """The last transition of a node."""
        return self.transitions[str(self.case(node).transition)].transition


def acts(said: Iterable[QuarantineCommand]) -> list[tuple[str, ServiceState, tuple[str, ...]]]:
    """What actors are told: node, the state that it is to be in, and which actors, none when all."""
    told = [command for command in said if isinstance(command, DispatchTransition)]
    return [(it.record.transition.node, it.record.transition.after, it.actors) for it in told]


def tests(said: Iterable[QuarantineCommand]) -> list[str]:
    """Which checks are asked for."""
    return [command.check for command in said if isinstance(command, StartTest)]


def alarms(said: Iterable[QuarantineCommand]) -> list[str]:
    return [command.alarm.text for command in said if isinstance(command, SendAlarm)]


def notes(said: Iterable[QuarantineCommand]) -> list[str]:
    return [command.text for command in said if isinstance(command, Note)]


SPOKEN: dict[str, Callable[[Iterable[QuarantineCommand]], list[Any]]] = {
    "acts": acts,
    "tests": tests,
    "alarms": alarms,
    "notes": notes,
}


@pytest.fixture
def of() -> Callable[[str, Iterable[QuarantineCommand]], list[Any]]:
    """What is said of one kind: acts, tests, alarms or notes."""
    return lambda kind, said: SPOKEN[kind](said)


@pytest.fixture
def quarantine() -> Callable[..., Told]:
    """A quarantine with so many fit nodes in service: a, b, c and so on. What is not given leaves room for all."""

    def build(nodes: int = 0, *, rows: Iterable[Row] = ROWS, **given: Any) -> Told:
        usual: dict[str, Any] = {
            "mode": "enforce",
            "budget": ROOMY,
            "mass_event": MassEventSettings(nodes=1000),
            "returning": AT_ONCE,
        }
        told = Told(QuarantineSettings(**{**usual, **given}), rows)
        told.add(*(chr(ord("a") + number) for number in range(nodes)))
        return told

    return build
