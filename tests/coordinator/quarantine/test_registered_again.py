"""A node that is registered again under the name of an accepted one has to be accepted as well."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.errors import Refused
from muster.model import ServiceState, Verdict
from muster.quarantine_settings import ReturnSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.quarantine_events import NodeNotListed

Of = Callable[..., list[Any]]

ACCEPTING, IN_SERVICE, CORDONED = ServiceState.ACCEPTING, ServiceState.IN_SERVICE, ServiceState.CORDONED


def register(told: Any, node: str, registration: str, mark: Mark = Mark.OURS, **said: Any) -> None:
    """Its scheduler says that it has this node, which is kept out from its first moment on if it is new."""
    told.survey(node, mark, is_new=mark is Mark.OURS, registration=registration, **said)


@pytest.fixture
def accepted(quarantine: Any) -> Any:
    """A node `n` that came as a new one and was accepted, and others."""
    told = quarantine(3)
    told.add("n", fit=False)
    register(told, "n", "first")
    told.absolve("n")
    told.answer("n", Effect.DONE)
    assert told.state("n") is IN_SERVICE
    return told


@pytest.mark.parametrize("is_missed", [False, True])
def test_another_node_under_a_known_name_is_accepted_first(accepted: Any, of: Of, is_missed: bool) -> None:
    """Whether or not it was missing in between. It joins when it is heard of, and nothing is done about it before."""
    if is_missed:
        accepted.tell(NodeNotListed(actor="k8s", node="n"))
    accepted.said.clear()
    register(accepted, "n", "second")
    assert of("notes", accepted.said)[-1] == "k8s has another machine under this name, which is not accepted yet"
    register(accepted, "n", "second")
    assert (accepted.case("n").left, of("acts", accepted.said)) == (True, [])
    accepted.hear("n")
    register(accepted, "n", "second")
    assert (accepted.case("n").left, accepted.state("n"), of("acts", accepted.said)) == (False, ACCEPTING, [])
    assert of("acts", accepted.absolve("n")) == [("n", IN_SERVICE, ())]


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("restarted", [True, False])
def test_what_was_to_be_told_of_the_node_before_is_not_told_of_another(
    quarantine: Any, of: Of, failed: bool, restarted: bool
) -> None:
    """The next node of its name is not uncordoned for it; also after the crash of a coordinator that did not know."""
    told = quarantine()
    told.add("n", fit=False)
    register(told, "n", "first")
    told.absolve("n")
    if failed:
        told.answer("n", Effect.FAILED)
    register(told, "n", "second")
    told.said.clear()
    if restarted:
        told.restart()
    told.wait(1000)
    register(told, "n", "second")
    assert of("acts", told.said) == []


def test_a_node_that_has_left_is_not_uncordoned_any_more(quarantine: Any, of: Of) -> None:
    """Who comes under its name before it is heard of is another one."""
    told = quarantine()
    told.add("n", fit=False)
    register(told, "n", "first")
    told.absolve("n")
    told.answer("n", Effect.FAILED)
    told.lose("n")
    told.tell(NodeNotListed(actor="k8s", node="n"))
    told.said.clear()
    told.wait(1000)
    register(told, "n", "second")
    told.wait(1000)
    assert (told.case("n").left, of("acts", told.said)) == (True, [])


def test_a_survey_from_before_the_node_was_uncordoned_changes_nothing(accepted: Any, of: Of) -> None:
    """It was made a moment too early; the actor is told again, which does no harm."""
    accepted.said.clear()
    register(accepted, "n", "first")
    assert (accepted.case("n").left, of("acts", accepted.said)) == (False, [("n", IN_SERVICE, ("k8s",))])


def test_a_node_that_is_registered_again_and_kept_out_by_nobody_goes_on(accepted: Any) -> None:
    """Nobody wants it to be accepted again."""
    register(accepted, "n", "second", mark=Mark.NONE)
    assert (accepted.case("n").left, accepted.state("n")) == (False, IN_SERVICE)


def test_a_node_that_comes_under_the_name_of_one_that_is_held_stays_out(accepted: Any, of: Of) -> None:
    """As when a fan is swapped. The hold goes on, and who ends it has the new one accepted."""
    accepted.hold("n")
    accepted.said.clear()
    register(accepted, "n", "second")
    accepted.hear("n")
    accepted.absolve("n")
    assert (accepted.state("n"), accepted.case("n").hold.by) == (ACCEPTING, "ada")
    assert of("acts", accepted.said) == []
    assert of("acts", accepted.release("n")) == [("n", IN_SERVICE, ())]


def test_a_node_that_has_opted_out_stays_as_it_is(accepted: Any) -> None:
    """Also when another one comes under its name: it would not be uncordoned again."""
    register(accepted, "n", "second", opted_out=True)
    assert (accepted.case("n").left, accepted.state("n")) == (False, IN_SERVICE)


def test_another_node_under_the_name_of_one_that_is_out_stays_out(accepted: Any, of: Of) -> None:
    """It has to pass the tests of the one before; its actor is told to keep it out."""
    accepted.accuse("n", "nvml.gone")
    accepted.answer("n", Effect.DONE)
    accepted.said.clear()
    register(accepted, "n", "second", incomplete=True)
    assert (accepted.case("n").left, accepted.state("n")) == (False, CORDONED)
    assert of("acts", accepted.said) == [("n", CORDONED, ("k8s",))]


def test_who_comes_under_a_name_that_had_opted_out_is_accepted_first(accepted: Any, of: Of) -> None:
    """As soon as it no longer opts out, so that muster may uncordon it."""
    register(accepted, "n", "second", opted_out=True)
    accepted.said.clear()
    register(accepted, "n", "second")
    assert (accepted.case("n").left, of("acts", accepted.said)) == (True, [])


def test_who_comes_again_is_not_thrown_out_by_its_first_survey(accepted: Any, of: Of) -> None:
    """Its agent was heard before that. Nor is it when it was uncordoned meanwhile, and the survey is a moment older."""
    accepted.lose("n")
    accepted.tell(NodeNotListed(actor="k8s", node="n"))
    assert accepted.case("n").left
    accepted.hear("n")
    accepted.absolve("n")
    accepted.answer("n", Effect.DONE)
    accepted.said.clear()
    register(accepted, "n", "second")
    assert (accepted.case("n").left, accepted.state("n")) == (False, IN_SERVICE)
    assert of("acts", accepted.said) == [("n", IN_SERVICE, ("k8s",))]


@pytest.mark.parametrize("untested", [True, False])
def test_nobody_is_released_under_the_name_of_one_that_has_left(accepted: Any, untested: bool) -> None:
    """It would uncordon whichever node comes next. A hold can be ended, and does no more than that."""
    accepted.accuse("n", "nvml.gone")
    accepted.answer("n", Effect.DONE)
    accepted.hold("n")
    accepted.lose("n")
    accepted.tell(NodeNotListed(actor="k8s", node="n"))
    accepted.release("n", untested=untested)
    assert (accepted.case("n").left, accepted.case("n").hold, accepted.state("n")) == (True, None, CORDONED)
    with pytest.raises(Refused, match="n has left the fleet"):
        accepted.release("n", untested=untested)


def test_a_drained_and_forgotten_node_is_uncordoned_when_it_comes_again(accepted: Any, of: Of) -> None:
    """Also when it was accepted in a dry run: where nobody can tell how a node is, nobody else would open it."""
    accepted.accuse("n", "nvml.gone")
    accepted.answer("n", Effect.DONE, actor="script")
    accepted.restart(mode="dry-run")
    accepted.lose("n")
    accepted.forget("n")
    accepted.hear("n")
    accepted.absolve("n")
    accepted.said.clear()
    accepted.restart(mode="enforce")
    accepted.wait(1)
    for _ in range(2):
        if accepted.case("n").probation is not None:
            accepted.end_test("n", Verdict.PASS)
    assert of("acts", accepted.said)[-1] == ("n", IN_SERVICE, ())


def test_another_node_that_comes_while_one_is_tested_has_passed_nothing(quarantine: Any) -> None:
    """The rounds that the one before has passed do not count for it."""
    told = quarantine(3, returning=ReturnSettings(passes=2, pause_s=0, wait_s=0))
    register(told, "a", "first", mark=Mark.NONE)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.release("a")
    for _ in range(2):
        told.end_test("a", Verdict.PASS)
    assert told.case("a").probation.passed == 1
    register(told, "a", "second")
    assert (told.state("a"), told.case("a").probation.passed) == (ServiceState.PROBATION, 0)
