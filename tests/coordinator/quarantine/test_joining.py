"""Nodes that come, are accepted, go away for good and come again."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model import ServiceState, Verdict
from muster.quarantine_settings import AcceptanceTest, BudgetSettings, ReturnSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.quarantine_events import EvidenceChanged, NodeNotListed

Of = Callable[..., list[Any]]

ACCEPTING, IN_SERVICE, CORDONED = ServiceState.ACCEPTING, ServiceState.IN_SERVICE, ServiceState.CORDONED
PROBATION = ServiceState.PROBATION


def leave(told: Any, node: str) -> None:
    """The node falls silent, and its scheduler has it no more."""
    told.lose(node)
    told.tell(NodeNotListed(actor="k8s", node=node))


def test_a_new_node_is_kept_out_where_that_is_wanted(quarantine: Any, of: Of) -> None:
    """Until it has been examined and is healthy."""
    told = quarantine(2, keep_new_out=True)
    told.add("n", fit=False)
    assert of("acts", told.said)[-1] == ("n", ACCEPTING, ())
    assert told.transition("n").is_out
    assert of("acts", told.absolve("n")) == [("n", IN_SERVICE, ())]


def test_a_fleet_that_is_new_is_not_kept_out(quarantine: Any, of: Of) -> None:
    """At the first installation, or without the database, all nodes are new: nobody is told, not even later."""
    told = quarantine(keep_new_out=True)
    names = [f"n{number}" for number in range(20)]
    for name in names:
        told.add(name, fit=False)
        told.survey(name, Mark.NONE)
    assert of("acts", told.said) == []
    assert "New node not drained: budget of 0 of 0 reached" in of("notes", told.said)
    for name in names:
        told.absolve(name)
    assert {told.state(name) for name in names} == {IN_SERVICE}


def test_no_more_new_nodes_are_kept_out_than_may_be_away(quarantine: Any) -> None:
    """Those that are out count as well, and those that are accepted make room."""
    told = quarantine(10, keep_new_out=True, budget=BudgetSettings(share="30%", domain_share="100%", per_minute=6000))
    told.accuse("a", "nvml.gone")
    told.add("n1", "n2", "n3", fit=False)
    assert [told.case(name).kept_out_as_new for name in ("n1", "n2", "n3")] == [True, True, False]
    told.restart()
    told.absolve("n1")
    told.answer("n1", Effect.DONE)
    told.add("n4", fit=False)
    assert told.case("n4").kept_out_as_new


def test_a_new_node_that_stays_new_says_why(quarantine: Any) -> None:
    """As long as it is not fit, and in the words of its evidence."""
    told = quarantine()
    told.add("n", fit=False)
    why = "not measured yet: gemm"
    told.tell(EvidenceChanged(node="n", findings=(), is_fit=False, unfit_because=why))
    assert (told.state("n"), told.case("n").unfit_because) == (ACCEPTING, why)
    told.absolve("n")
    assert (told.state("n"), told.case("n").unfit_because) == (IN_SERVICE, "")


def test_a_new_node_is_not_touched_otherwise(quarantine: Any, of: Of) -> None:
    """It gets work as its scheduler sees fit."""
    told = quarantine()
    told.add("n", fit=False)
    for mark in (Mark.NONE, Mark.OURS):
        told.survey("n", mark)
    assert of("acts", told.said) == []


def test_a_new_node_is_tested_first_where_that_is_wanted(quarantine: Any, of: Of) -> None:
    """Once it is fit for it, in one round; when it fails, again and again, ever more rarely."""
    told = quarantine(tests=(AcceptanceTest(check="memory"),))
    told.add("n", fit=False)
    assert of("tests", told.said) == []
    told.absolve("n")
    told.end_test("n", Verdict.FAIL)
    told.wait(1)
    for _ in range(2):
        assert told.state("n") is ACCEPTING
        told.end_test("n", Verdict.PASS)
    told.end_test("n", Verdict.PASS)
    assert told.state("n") is IN_SERVICE
    assert of("tests", told.said) == ["memory", "memory", "gemm", "nvml"]


@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, Verdict.SKIPPED, Verdict.FAIL, Verdict.WARN])
def test_a_new_node_that_its_own_test_makes_unfit_is_tested_again(quarantine: Any, of: Of, verdict: Verdict) -> None:
    """Nothing else would run that check again, without which it could never be accepted."""
    told = quarantine(tests=(AcceptanceTest(check="memory"),), returning=ReturnSettings(pause_s=60))
    told.add("n")
    told.tell(EvidenceChanged(node="n", findings=(), is_fit=False))
    told.end_test("n", verdict)
    while told.case("n").probation.test is not None:
        told.end_test("n", Verdict.PASS)
    assert told.state("n") is ACCEPTING
    assert of("tests", told.wait(60)) == ["memory"]
    told.absolve("n")
    while told.state("n") is ACCEPTING:
        told.end_test("n", Verdict.PASS)
    assert told.state("n") is IN_SERVICE


def test_a_new_node_that_has_to_go_is_not_tested_meanwhile(quarantine: Any, of: Of) -> None:
    """It waits for room, and what speaks against it is enough."""
    told = quarantine(1, tests=(AcceptanceTest(check="memory"),))
    told.hold("a")
    told.lose("a")
    told.add("n")
    told.accuse("n", "nvml.gone")
    told.end_test("n", Verdict.UNKNOWN)
    assert (told.state("n"), of("tests", told.wait(3000))) == (ACCEPTING, [])


def test_a_new_node_that_is_bad_goes(quarantine: Any) -> None:
    """Where new nodes get work it must not keep it."""
    told = quarantine(3)
    told.add("n", fit=False)
    told.accuse("n", "nvml.gone")
    assert told.state("n") is CORDONED


def test_a_new_node_for_which_there_is_no_room_stays_new(quarantine: Any) -> None:
    """It was never accepted, so that it cannot be kept in service; it goes when there is room."""
    told = quarantine(2, budget={"share": "10%", "domain_share": "100%", "per_minute": 6000})
    told.accuse("a", "nvml.gone")
    told.add("n", fit=False)
    told.accuse("n", "nvml.gone")
    assert (told.state("n"), told.case("n").held_because != "") == (ACCEPTING, True)
    told.let_in("a")
    told.wait(1)
    assert told.state("n") is CORDONED


def test_a_new_node_that_heals_while_it_waits_is_accepted(quarantine: Any) -> None:
    """Nothing of that is left behind."""
    told = quarantine(1)
    told.add("n", fit=False)
    told.lose("a")
    told.accuse("n", "nvml.gone")
    told.absolve("n")
    assert (told.state("n"), told.case("n").held_because) == (IN_SERVICE, "")


@pytest.mark.parametrize("order", ["lost first", "deleted first"])
def test_what_is_silent_and_not_listed_has_left(quarantine: Any, order: str) -> None:
    """In whichever order; it counts no more, and nothing stands against it."""
    told = quarantine(3)
    told.survey("a", Mark.NONE)
    if order == "lost first":
        leave(told, "a")
    else:
        told.tell(NodeNotListed(actor="k8s", node="a"))
        told.lose("a")
    assert told.case("a").left
    assert told.reconciler.fleet_view().nodes == 2
    assert told.reconciler.fleet_view().away == 0


def test_what_has_left_waits_for_no_room(quarantine: Any) -> None:
    """It was HELD, and is shown so no more."""
    told = quarantine(1)
    told.survey("a", Mark.NONE)
    told.accuse("a", "nvml.gone")
    assert told.reconciler.fleet_view().held == ("a",)
    told.lose("a")
    told.tell(NodeNotListed(actor="k8s", node="a"))
    assert told.reconciler.fleet_view().held == ()


def test_what_another_scheduler_still_lists_has_not_left(quarantine: Any) -> None:
    """Of several, all must have it no more."""
    told = quarantine(3)
    told.survey("a", Mark.NONE)
    told.survey("a", Mark.NONE, "slurm")
    leave(told, "a")
    assert not told.case("a").left


def test_what_no_scheduler_ever_listed_is_only_lost(quarantine: Any) -> None:
    """Where there is no scheduler, nobody can say that it has left."""
    told = quarantine(3)
    leave(told, "a")
    assert not told.case("a").left


def test_what_comes_again_is_new(quarantine: Any) -> None:
    """One that left in service is examined as any other. It is still held, and how often it was out still counts."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.let_in("a")
    told.survey("a", Mark.NONE)
    told.hold("a")
    leave(told, "a")
    told.restart()
    told.hear("a")
    case = told.case("a")
    assert (case.state, case.hold is not None, len(case.cordoned_at)) == (ACCEPTING, True, 1)
    told.release("a")
    told.absolve("a")
    assert told.state("a") is IN_SERVICE


@pytest.mark.parametrize("state", [CORDONED, PROBATION])
def test_what_left_while_it_was_out_comes_again_to_prove_itself(quarantine: Any, of: Of, state: ServiceState) -> None:
    """Its object was deleted and is registered again, without our mark: it must not get work untested."""
    told = quarantine(3)
    told.survey("a", Mark.NONE)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    if state is PROBATION:
        told.release("a")
    leave(told, "a")
    told.restart()
    said = [*told.hear("a"), *told.absolve("a")]
    assert of("acts", said) == [("a", CORDONED, ()), ("a", PROBATION, ())]
    told.survey("a", Mark.OURS)
    told.end_test("a", Verdict.PASS)
    assert told.state("a") is PROBATION
    told.end_test("a", Verdict.PASS)
    assert (told.state("a"), len(told.case("a").cordoned_at)) == (IN_SERVICE, 1)


def test_what_left_while_it_was_out_waits_as_long_as_it_had_to(quarantine: Any) -> None:
    """To delete a node and register it again is no short cut."""
    told = quarantine(3, returning=ReturnSettings(wait_s=600))
    told.survey("a", Mark.NONE)
    told.accuse("a", "nvml.gone")
    leave(told, "a")
    told.wait(500)
    told.hear("a")
    told.wait(99)
    assert told.state("a") is CORDONED
    told.wait(1)
    assert told.state("a") is PROBATION


def test_a_repeater_that_left_and_comes_again_waits_for_a_person(quarantine: Any) -> None:
    """As it would have, had it stayed."""
    told = quarantine(3, returning=ReturnSettings(passes=1, pause_s=0, wait_s=0, times=1))
    told.survey("a", Mark.NONE)
    for _ in range(2):
        told.accuse("a", "nvml.gone")
        told.let_in("a")
        told.wait(1)
    told.accuse("a", "nvml.gone")
    leave(told, "a")
    told.hear("a")
    told.absolve("a")
    told.wait(365 * 86_400)
    assert told.state("a") is CORDONED


def test_what_left_while_it_was_out_and_is_held_is_not_touched(quarantine: Any, of: Of) -> None:
    """Until it is released."""
    told = quarantine(3)
    told.survey("a", Mark.NONE)
    told.accuse("a", "nvml.gone")
    told.hold("a")
    leave(told, "a")
    assert of("acts", told.hear("a")) == []
    assert told.state("a") is CORDONED
    assert of("acts", told.release("a")) == [("a", PROBATION, ())]


def test_a_survey_that_comes_before_the_node_is_heard_of(quarantine: Any) -> None:
    """What the scheduler has said about the new node holds, such as that it has opted out."""
    told = quarantine(3)
    told.survey("a", Mark.NONE)
    leave(told, "a")
    told.survey("a", Mark.NONE, opted_out=True)
    assert told.case("a").left
    told.hear("a")
    assert told.case("a").left_alone_because == "Opted out in k8s"


def test_a_node_that_nobody_has_heard_of_is_no_case(quarantine: Any) -> None:
    """Schedulers have nodes without an agent."""
    told = quarantine(1)
    assert told.survey("other", Mark.NONE) == []
    assert told.tell(NodeNotListed(actor="k8s", node="other")) == []
    assert "other" not in told.reconciler.records


def test_an_agent_that_restarts_on_a_cordoned_node(quarantine: Any) -> None:
    """The node is tested, which it does not pass while it is bad, and is never in service in between."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.lose("a")
    told.hear("a")
    told.end_test("a", Verdict.FAIL)
    assert told.state("a") is CORDONED
    states = [it.transition.after for it in told.transitions.values() if it.transition.node == "a"]
    assert states[-3:] == [CORDONED, ServiceState.PROBATION, CORDONED]
