"""What observing, a dry run and acting in earnest do, and what is left of each when another begins."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model import ServiceState, Verdict
from muster.quarantine_settings import BudgetSettings, MassEventSettings, ReturnSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.quarantine import Wait
from muster_coordinator.model.quarantine_events import NodeNotListed

Of = Callable[..., list[Any]]

CORDONED, IN_SERVICE = ServiceState.CORDONED, ServiceState.IN_SERVICE


def test_observe_mode_decides_nothing(quarantine: Any, of: Of) -> None:
    """What the policy would ask for is said, new nodes are accepted, and nobody is told."""
    told = quarantine(3, mode="observe")
    said = told.accuse("a", "nvml.gone")
    assert of("notes", said) == ["nvml.gone requires draining (policy row gone): it is gone"]
    assert (told.states(), of("acts", told.said)) == ("III", [])
    assert told.reconciler.case_view("a").held_because == "Not drained: mode is observe"
    assert told.reconciler.case_view("b").held_because == ""


def test_a_dry_run_shows_every_step(quarantine: Any, of: Of) -> None:
    """Each transition says that it is one, also to the actors."""
    told = quarantine(3, mode="dry-run")
    said = told.accuse("a", "nvml.gone")
    assert "IN_SERVICE to CORDONED (dry run): it is gone" in of("notes", said)
    assert (told.transition("a").dry_run, told.case("a").dry_run) == (True, True)
    told.answer("a", Effect.WOULD)
    told.release("a")
    assert told.state("a") is ServiceState.PROBATION


@pytest.mark.parametrize("before", ["observe", "dry-run"])
def test_when_it_becomes_earnest_the_worst_goes_first(quarantine: Any, before: str) -> None:
    """Whichever is looked at first then, and whichever went first in the dry run."""
    told = quarantine(4, mode=before, budget=BudgetSettings(share="1%"))
    told.accuse("a", "gemm.slow")
    told.accuse("b", "nvml.gone")
    told.restart(mode="enforce")
    for node in "abcd":
        told.hear(node)
    told.wait(1)
    assert told.states() == "HCII"


def test_alarms_of_a_dry_run_say_that_it_is_one(quarantine: Any, of: Of) -> None:
    """Who is woken by them must know that nothing was done."""
    told = quarantine(3, mode="dry-run", budget=BudgetSettings(share="1%"))
    for node in ("a", "b"):
        told.accuse(node, "nvml.gone")
    assert of("alarms", told.wait(0)) == ["1 faulty node not drained: budget of 1 of 3 reached (dry run)"]


def test_a_dry_run_counts_no_more_when_it_is_over(quarantine: Any, of: Of) -> None:
    """What it had drained is now really drained, within the budget of then; the history starts again."""
    told = quarantine(4, mode="dry-run")
    told.accuse("a", "nvml.gone")
    told.accuse("b", "gemm.slow")
    told.answer("a", Effect.FAILED)
    said = told.restart(mode="enforce", budget=told.settings.budget.model_copy(update={"nodes": 1}))
    assert (told.states(), of("acts", said)) == ("IIII", [])
    assert "CORDONED to IN_SERVICE: mode is enforce now" in of("notes", said)
    said = told.wait(1)
    assert of("acts", said) == [("a", CORDONED, ()), ("b", ServiceState.HELD, ())]
    assert not told.transition("a").dry_run
    assert len(told.case("a").cordoned_at) == 1


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_drains_of_a_dry_run_that_ended_in_service_count_no_more_either(quarantine: Any, mode: str) -> None:
    """The node was really drained once before the dry run, and would need a person after one drain more."""
    told = quarantine(3, returning=ReturnSettings(wait_s=0, pause_s=0, passes=1, times=2))
    for before in ("enforce", "dry-run"):
        told.restart(mode=before)
        told.wait(100)
        told.accuse("a", "nvml.gone")
        told.absolve("a")
        while told.state("a") is ServiceState.PROBATION:
            told.end_test("a", Verdict.PASS)
        if before == "enforce":
            told.answer("a", Effect.DONE)
    assert (told.state("a"), len(told.case("a").cordoned_at)) == (IN_SERVICE, 2)
    told.restart(mode=mode)
    assert (told.state("a"), len(told.case("a").cordoned_at)) == (IN_SERVICE, 1)


@pytest.mark.parametrize("is_surveyed", [True, False])
def test_what_is_out_in_earnest_stays_so_through_a_dry_run(quarantine: Any, of: Of, is_surveyed: bool) -> None:
    """The dry run uncordons it, which nobody carries out: afterwards it is out as before, and really comes back.

    Also where nobody can say how a scheduler has its nodes, as with a script.
    """
    told = quarantine(3)
    told.accuse("a", "gemm.slow")
    told.answer("a", Effect.DONE)
    if is_surveyed:
        told.survey("a", Mark.OURS, transition=told.case("a").transition)
    told.restart(mode="dry-run")
    told.absolve("a")
    for _ in range(2):
        told.end_test("a", Verdict.PASS)
    assert told.state("a") is IN_SERVICE
    assert told.case("a").dry_run
    told.restart(mode="enforce")
    assert (told.state("a"), told.case("a").dry_run) == (CORDONED, False)
    told.wait(1)
    for _ in range(2):
        told.end_test("a", Verdict.PASS)
    assert of("acts", told.said)[-1] == ("a", IN_SERVICE, ())
    assert not told.transition("a").dry_run


def test_what_a_dry_run_has_accepted_is_told_where_it_is_kept_out(quarantine: Any, of: Of) -> None:
    """A node that came with a taint of ours, and was accepted in a dry run, would wait for ever."""
    told = quarantine(1, mode="dry-run")
    told.restart(mode="enforce")
    assert of("acts", told.survey("a", Mark.NONE)) == []
    assert of("acts", told.survey("a", Mark.OURS)) == [("a", IN_SERVICE, ())]
    assert not told.transition("a").dry_run


def test_new_nodes_of_a_dry_run_are_kept_out_when_it_is_over(quarantine: Any, of: Of) -> None:
    """As new ones are then."""
    told = quarantine(2, mode="dry-run", keep_new_out=True)
    told.add("n", fit=False)
    told.restart(mode="enforce")
    assert of("acts", told.survey("n", Mark.NONE)) == [("n", ServiceState.ACCEPTING, ())]


def test_a_new_node_that_is_kept_out_in_earnest_stays_so(quarantine: Any, of: Of) -> None:
    """Whatever a dry run has pretended, and in observe mode; it is uncordoned when muster acts again."""
    told = quarantine(2, keep_new_out=True)
    told.add("n", fit=False)
    told.restart(mode="observe")
    told.absolve("n")
    assert told.state("n") is ServiceState.ACCEPTING
    told.restart(mode="dry-run")
    told.absolve("n")
    assert told.state("n") is IN_SERVICE
    told.restart(mode="enforce")
    assert told.state("n") is ServiceState.ACCEPTING
    assert of("acts", told.absolve("n")) == [("n", IN_SERVICE, ())]
    assert not told.transition("n").dry_run


def test_observe_mode_spares_no_node_for_a_mass_event(quarantine: Any) -> None:
    """A node that was to go, but for it, is in service like any other."""
    told = quarantine(3, mass_event=MassEventSettings(nodes=2))
    told.accuse("a", "gemm.slow", proof=Proof.ONCE)
    told.accuse("b", "gemm.slow")
    assert told.record("b").decision.waits_for is Wait.MASS_EVENT
    told.restart(mode="observe")
    assert told.record("b").decision.waits_for is None


@pytest.mark.parametrize("mode", ["observe", "dry-run"])
def test_what_has_failed_in_earnest_is_not_tried_in_another_mode(quarantine: Any, of: Of, mode: str) -> None:
    """It is when that is over."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.FAILED)
    assert of("acts", told.restart(mode=mode)) == []
    assert of("acts", told.wait(600)) == []
    assert of("acts", told.restart(mode="enforce")) == [("a", CORDONED, ("k8s",))]


@pytest.mark.parametrize("codes", [(), ("nvml.gone",)])
def test_observe_mode_tells_nothing_of_nodes_that_have_work(quarantine: Any, of: Of, codes: tuple[str, ...]) -> None:
    """Neither again that a node was accepted, nor that it has to wait until it may go."""
    told = quarantine(1)
    told.accuse("a", *codes)
    told.answer("a", Effect.FAILED)
    assert of("acts", [*told.restart(mode="observe"), *told.wait(600)]) == []


def test_observe_mode_uncordons_what_nobody_else_would(quarantine: Any, of: Of) -> None:
    """What was decided in enforce mode and has failed is tried until the node gets work again."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.release("a", untested=True)
    told.answer("a", Effect.FAILED)
    assert of("acts", told.restart(mode="observe")) == [("a", IN_SERVICE, ("k8s",))]


def test_observe_mode_takes_back_what_was_announced(quarantine: Any, of: Of) -> None:
    """Where people are shown that a node is HELD, nobody else would ever say that it is so no more."""
    told = quarantine(1)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    assert of("acts", told.restart(mode="observe")) == [("a", IN_SERVICE, ())]
    told.answer("a", Effect.FAILED)
    assert of("acts", told.wait(600)) == [("a", IN_SERVICE, ("k8s",))]
    told.answer("a", Effect.DONE)
    assert of("acts", [*told.restart(), *told.restart(mode="enforce")]) == []


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_what_was_announced_before_a_dry_run_is_taken_back_after_it(quarantine: Any, of: Of, mode: str) -> None:
    """The dry run says so to nobody."""
    told = quarantine(1)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.restart(mode="dry-run")
    told.absolve("a")
    told.answer("a", Effect.WOULD)
    assert of("acts", told.restart(mode=mode)) == [("a", IN_SERVICE, ())]
    told.answer("a", Effect.DONE)
    assert of("acts", told.restart()) == []


def test_nothing_is_taken_back_of_a_node_that_has_left(quarantine: Any, of: Of) -> None:
    """It would uncordon the next node of its name."""
    told = quarantine(1)
    told.survey("a", Mark.NONE)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.lose("a")
    told.tell(NodeNotListed(actor="k8s", node="a"))
    assert of("acts", told.restart(mode="observe")) == []


def test_nothing_is_pretended_any_more_after_a_dry_run(quarantine: Any) -> None:
    """A node that it has accepted is in service, and one that is out has failed no test."""
    told = quarantine(3)
    told.accuse("a", "gemm.slow")
    told.answer("a", Effect.DONE)
    told.restart(mode="dry-run")
    told.add("n")
    told.absolve("a")
    told.end_test("a", Verdict.FAIL)
    assert len(told.case("a").cordoned_at) == 1
    told.restart(mode="enforce")
    assert [told.case(node).dry_run for node in "abn"] == [False] * 3
    assert (told.state("a"), told.state("n"), len(told.case("a").cordoned_at)) == (CORDONED, IN_SERVICE, 1)


def test_observe_mode_keeps_no_node_waiting_for_room(quarantine: Any) -> None:
    """A node that was HELD is in service, as nobody wants it to go."""
    told = quarantine(1)
    told.accuse("a", "nvml.gone")
    assert told.state("a") is ServiceState.HELD
    told.restart(mode="observe")
    assert (told.state("a"), told.record("a").decision.waits_for) == (IN_SERVICE, None)


def test_what_is_out_in_earnest_is_seen_while_we_only_observe(quarantine: Any) -> None:
    """It comes back when we act again."""
    told = quarantine(3)
    told.accuse("a", "gemm.slow")
    told.restart(mode="observe")
    told.absolve("a")
    told.wait(600)
    assert told.state("a") is CORDONED
    told.restart(mode="enforce")
    told.wait(1)
    assert told.state("a") is ServiceState.PROBATION
