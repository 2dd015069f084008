"""After a start, no node is cordoned for what may be over since: it is cordoned once it has said what happened."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from muster.model import ServiceState
from muster.quarantine_settings import BudgetSettings
from muster.transition import Effect
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.policy_row import Row
from muster_coordinator.model.quarantine import Wait
from muster_coordinator.model.quarantine_events import (
    EvidenceChanged,
    NodeErased,
    NodeHeard,
    NodeLost,
    QuarantineCommand,
)
from muster_coordinator.quarantine.backlogs import CATCH_UP_S

Of = Callable[[str, Iterable[QuarantineCommand]], list[Any]]
ACCEPTING, IN_SERVICE, CORDONED, HELD = (
    ServiceState.ACCEPTING,
    ServiceState.IN_SERVICE,
    ServiceState.CORDONED,
    ServiceState.HELD,
)
FRESH_S = 1800.0
ROWS = (
    Row(name="gone", codes=("nvml.gone",), proof=Proof.ONCE, urgency=90, fresh_s=FRESH_S, reason="it is gone"),
    Row(name="slow", codes=("gemm.*",), fresh_s=FRESH_S, reason="it is slow"),
)


@pytest.fixture
def started(quarantine: Any) -> Callable[..., Any]:
    """A start in enforce over what was stored in observe mode: these nodes have a fault, and nobody was heard yet."""

    def build(*faulty: str, code: str = "gemm.slow", **settings: Any) -> Any:
        told = quarantine(4, rows=ROWS, mode="observe", **settings)
        for node in faulty:
            told.accuse(node, code)
        told.restart(mode="enforce", is_heard=False)
        return told

    return build


def arrive(told: Any, node: str, *findings: Any, is_complete: bool) -> list[QuarantineCommand]:
    """A node's reports arrive; after them these findings stand."""
    event = EvidenceChanged(node=node, findings=findings, is_fit=not findings, is_complete=is_complete)
    said: list[QuarantineCommand] = told.tell(event)
    return said


def test_a_fault_that_is_over_cordons_nobody(started: Any, of: Of) -> None:
    """The passes that a node kept while no coordinator ran arrive before it could be cordoned."""
    told = started("a")
    said = [*told.wait(1), *told.hear("a"), *told.wait(1)]
    assert (told.state("a"), told.record("a").decision.waits_for) == (IN_SERVICE, Wait.CATCHING_UP)
    assert "older reports" in told.case("a").held_because
    said += [*arrive(told, "a", is_complete=True), *told.wait(CATCH_UP_S), *told.wait(3600)]
    assert (told.states(), of("acts", said), told.case("a").held_because) == ("IIII", [], "")


def test_a_fault_that_still_stands_cordons_the_node_once_it_has_said_so(started: Any, of: Of) -> None:
    """At once when nothing waits in the outbox any more, and not while older reports arrive."""
    told = started("a")
    told.hear("a")
    finding = told.charge("gemm.slow")
    assert of("acts", arrive(told, "a", finding, is_complete=False)) == []
    assert of("acts", arrive(told, "a", finding, is_complete=True)) == [("a", CORDONED, ())]


def test_a_node_that_is_never_heard_is_waited_for_so_long(started: Any) -> None:
    """From when the first node was heard: before that, nobody may be able to reach the coordinator."""
    told = started("a")
    told.wait(1000)
    told.hear("b")
    told.wait(CATCH_UP_S - 1)
    assert told.state("a") is IN_SERVICE
    told.wait(1)
    assert told.state("a") is CORDONED


def test_then_only_evidence_that_is_fresh_counts(started: Any) -> None:
    """What is older than the policy lets count must be found once more."""
    told = started("a")
    told.wait(FRESH_S - CATCH_UP_S)
    told.hear("b")
    told.wait(CATCH_UP_S)
    assert told.state("a") is IN_SERVICE
    assert told.case("a").requirement.unproven == ("gemm",)


def test_when_nobody_is_heard_nobody_is_cordoned(started: Any, of: Of) -> None:
    """The broker is away: nothing is known about any node."""
    told = started("a", "b", code="nvml.gone")
    assert of("acts", [command for _ in range(60) for command in told.wait(60)]) == []
    assert told.states() == "IIII"


def test_what_is_out_stays_out_and_failed_actors_are_retried(quarantine: Any, of: Of) -> None:
    """Neither needs new evidence."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.FAILED)
    said = [*told.restart(is_heard=False), *told.wait(600)]
    assert of("acts", said) == [("a", CORDONED, ("k8s",))]
    assert told.state("a") is CORDONED


def test_who_was_held_waits_on(quarantine: Any, of: Of) -> None:
    """A HELD node that has said nothing yet does not go when there is room now."""
    told = quarantine(4, budget=BudgetSettings(share="1%"))
    told.accuse("a", "nvml.gone")
    told.accuse("b", "gemm.slow")
    told.restart(is_heard=False, budget=BudgetSettings(share="100%", domain_share="100%"))
    assert of("acts", [*told.hear("c"), *told.wait(1)]) == []
    assert (told.state("b"), told.record("b").decision.waits_for) == (HELD, Wait.CATCHING_UP)
    assert of("acts", arrive(told, "b", is_complete=True)) == [("b", IN_SERVICE, ())]


def test_a_new_node_is_not_judged_by_old_evidence_either(quarantine: Any, of: Of) -> None:
    """It was ACCEPTING when the coordinator ended."""
    told = quarantine(3, mode="observe")
    told.add("n", fit=False)
    told.accuse("n", "nvml.gone")
    told.restart(mode="enforce", is_heard=False)
    assert of("acts", [*told.hear("n"), *told.wait(1)]) == []
    assert told.record("n").decision.waits_for is Wait.CATCHING_UP
    arrive(told, "n", is_complete=True)
    assert told.state("n") is IN_SERVICE


def test_a_node_that_joins_after_the_start_has_nothing_to_catch_up_with(started: Any) -> None:
    """Everything about it is new."""
    told = started("a")
    told.add("n")
    told.accuse("n", "gemm.slow")
    assert (told.state("n"), told.state("a")) == (CORDONED, IN_SERVICE)


def test_a_worse_node_that_is_catching_up_keeps_its_place(started: Any) -> None:
    """The budget is for the worst, not for the node that is heard first; what is over keeps nobody waiting."""
    told = started("a", budget=BudgetSettings(share="1%"))
    told.restart(mode="observe")
    told.accuse("b", "nvml.gone")
    told.restart(mode="enforce", is_heard=False)
    told.catch_up("a")
    assert told.record("a").decision.waits_for is Wait.ORDER
    arrive(told, "b", is_complete=True)
    told.wait(1)
    assert told.states() == "CIII"


def test_many_stale_findings_are_still_a_mass_event(quarantine: Any) -> None:
    """What kept them in service before the start keeps them there, and its reason stays."""
    told = quarantine(3, mass_event={"nodes": 2})
    told.accuse("a", "gemm.slow", proof=Proof.ONCE)
    told.accuse("b", "gemm.slow")
    told.restart(is_heard=False)
    told.wait(1)
    assert (told.state("b"), told.record("b").decision.waits_for) == (IN_SERVICE, Wait.MASS_EVENT)


def test_silence_over_the_start_is_waited_for_too(quarantine: Any) -> None:
    """A node that was lost before may be back: its agent reaches the broker when the coordinator does."""
    row = Row(name="lost", codes=("node.lost",), proof=Proof.ONCE, after_s=600, reason="it is silent")
    told = quarantine(3, rows=(row,))
    told.tell(NodeLost(node="a"))
    told.restart(is_heard=False)
    told.wait(700)
    told.tell(NodeHeard(node="b"))
    told.wait(CATCH_UP_S - 1)
    assert told.state("a") is IN_SERVICE
    told.wait(1)
    assert told.state("a") is CORDONED


def test_how_many_are_catching_up_is_shown_until_it_is_over(started: Any) -> None:
    """A node that has delivered counts no more, and neither does one that is forgotten."""
    told = started("a")
    counts = [told.reconciler.fleet_view().catching_up]
    for event in (EvidenceChanged(node="b", findings=(), is_fit=True), NodeErased(node="c")):
        told.tell(event)
        counts.append(told.reconciler.fleet_view().catching_up)
    told.hear("a")
    told.wait(CATCH_UP_S)
    assert [*counts, told.reconciler.fleet_view().catching_up] == [4, 3, 2, 0]
