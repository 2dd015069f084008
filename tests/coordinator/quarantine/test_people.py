"""What people say counts for more than what we decide: holds, releases, opt-outs and cordons of theirs."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.errors import Refused
from muster.model import ServiceState
from muster.quarantine_settings import MassEventSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.quarantine_events import HoldRequested, ReleaseRequested, SaveRequest

NOW = 1_000_000.0

Of = Callable[..., list[Any]]

SAYS = {
    "a hold": (lambda told: told.hold("a"), lambda told: told.release("a")),
    "an opt-out": (
        lambda told: told.survey("a", Mark.NONE, opted_out=True),
        lambda told: told.survey("a", Mark.NONE),
    ),
    "a foreign cordon": (lambda told: told.survey("a", Mark.FOREIGN), lambda told: told.survey("a", Mark.NONE)),
}


@pytest.mark.parametrize("what", SAYS)
def test_while_somebody_says_so_nothing_is_done(quarantine: Any, of: Of, what: str) -> None:
    """However bad the node is; when it is over, the evidence of then decides."""
    told = quarantine(3)
    says, takes_back = SAYS[what]
    says(told)
    told.accuse("a", "nvml.gone")
    told.restart()
    told.wait(600)
    assert (told.state("a"), of("tests", told.said)) == (ServiceState.IN_SERVICE, [])
    takes_back(told)
    assert told.state("a") is ServiceState.CORDONED


@pytest.mark.parametrize("what", SAYS)
def test_what_went_meanwhile_is_not_caught_up_on(quarantine: Any, what: str) -> None:
    """No decision waits for its hour."""
    told = quarantine(3)
    says, takes_back = SAYS[what]
    says(told)
    told.accuse("a", "nvml.gone")
    told.absolve("a")
    takes_back(told)
    assert told.state("a") is ServiceState.IN_SERVICE


def test_a_hold_says_who_and_why(quarantine: Any, of: Of) -> None:
    """In the case and in the story."""
    told = quarantine(3)
    said = told.hold("a")
    assert of("notes", said) == ["hold by ada: I look at it"]
    assert told.case("a").left_alone_because == "Hold by ada: I look at it"


def test_a_release_says_who_and_why(quarantine: Any, of: Of) -> None:
    """Also to the actors."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    said = told.release("a", untested=True)
    assert "released by ada: repaired" in of("notes", said)
    assert (told.transition("a").by, told.transition("a").reason) == ("ada", "released by ada: repaired")


def test_a_release_ends_the_hold_and_the_node_returns_at_once(quarantine: Any) -> None:
    """One that is held and out needs to be released once."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.hold("a")
    told.release("a")
    assert (told.state("a"), told.case("a").hold) == (ServiceState.PROBATION, None)


@pytest.mark.parametrize("request_", [HoldRequested, ReleaseRequested])
def test_a_node_that_nobody_knows_cannot_be_asked_for(quarantine: Any, request_: Any) -> None:
    """The answer names those that are meant, perhaps."""
    told = quarantine(3)
    with pytest.raises(Refused, match="node"):
        told.tell(request_(node="aa", by="ada", reason="so"))


def test_a_node_that_only_waits_to_go_can_be_released_untested(quarantine: Any) -> None:
    """There is nothing to test it for, as it has work; the answer says what can be asked for."""
    told = quarantine(1)
    told.accuse("a", "nvml.gone")
    with pytest.raises(Refused, match="in spite of its faults, release it with --untested"):
        told.release("a")
    told.release("a", untested=True)
    assert told.state("a") is ServiceState.IN_SERVICE


def test_a_release_untested_says_what_will_drain_the_node_again(quarantine: Any) -> None:
    """What still stands and drains it when it is found again; not what no row drains for, and not while it is held."""
    told = quarantine(2)
    told.accuse("a", "nvml.gone", "host.full")
    assert told.case("a").will_drain_again == ()
    told.release("a", untested=True)
    again = ("nvml.gone GPU0 still stands: when nvml reports it again, muster drains the node again (policy row gone)",)
    assert told.case("a").will_drain_again == again
    told.hold("a")
    assert told.case("a").will_drain_again == ()
    told.release("a")
    assert told.case("a").will_drain_again == again
    told.absolve("a")
    assert told.case("a").will_drain_again == ()


def test_what_waited_to_go_and_is_not_proven_any_more_waits_no_more(quarantine: Any, of: Of) -> None:
    """It went away while somebody held the node, and was found once since."""
    told = quarantine(1)
    told.accuse("a", "gemm.slow")
    told.hold("a")
    told.absolve("a")
    told.accuse("a", "gemm.slow", proof=Proof.ONCE)
    assert told.state("a") is ServiceState.HELD
    said = told.release("a")
    assert "HELD to IN_SERVICE: no proven finding requires draining any more" in of("notes", said)
    assert (told.state("a"), of("tests", said)) == (ServiceState.IN_SERVICE, ["gemm"])


def test_observe_mode_tests_nothing(quarantine: Any) -> None:
    """A hold can be taken back; that a node is tested cannot be asked for, and the answer says what can."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.restart(mode="observe")
    assert told.reconciler.case_view("a").needs_person == "mode is observe; add --untested"
    with pytest.raises(Refused, match="release a with --untested"):
        told.release("a")
    told.hold("a")
    told.release("a")
    assert (told.state("a"), told.case("a").hold) == (ServiceState.CORDONED, None)


def test_a_drained_node_can_be_uncordoned_in_observe_mode(quarantine: Any, of: Of) -> None:
    """On a person's word the actors take back what they have done, and are told again until they have."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.restart(mode="observe")
    said = told.release("a", untested=True)
    assert of("acts", said) == [("a", ServiceState.IN_SERVICE, ())]
    told.answer("a", Effect.FAILED)
    assert told.record("a").is_away
    assert of("acts", told.wait(1)) == [("a", ServiceState.IN_SERVICE, ("k8s",))]
    assert of("acts", told.restart()) == [("a", ServiceState.IN_SERVICE, ("k8s",))]
    told.answer("a", Effect.DONE)
    assert not told.record("a").is_away
    told.accuse("a", "nvml.gone")
    assert told.state("a") is ServiceState.IN_SERVICE


def test_observe_mode_tells_nobody_of_a_node_that_no_scheduler_keeps_out(quarantine: Any, of: Of) -> None:
    """A new node that somebody uncordons is in service by that alone."""
    told = quarantine(1, mode="observe")
    told.add("n", fit=False)
    assert of("acts", told.release("n", untested=True)) == []
    assert told.state("n") is ServiceState.IN_SERVICE


@pytest.mark.parametrize(
    "ask",
    [
        lambda told: told.hold("b"),
        lambda told: told.release("a"),
        lambda told: told.lift(),
        lambda told: told.forget("c"),
    ],
)
def test_what_people_ask_for_is_written_down(quarantine: Any, ask: Any) -> None:
    """When, and all that was said; what is refused is not."""
    told = quarantine(4, mass_event=MassEventSettings(nodes=2))
    told.accuse("a", "nvml.gone")
    told.accuse("d", "nvml.gone")
    told.lose("c")
    (asked,) = (it.asked for it in ask(told) if isinstance(it, SaveRequest))
    assert (asked.at, asked.request.by) == (NOW, "ada")
    with pytest.raises(Refused):
        told.release("c")
    assert not any(isinstance(it, SaveRequest) for it in told.wait(1))


def test_a_held_new_node_is_not_accepted(quarantine: Any) -> None:
    """Until it is released."""
    told = quarantine(2)
    told.add("n", fit=False)
    told.hold("n")
    told.absolve("n")
    assert told.state("n") is ServiceState.ACCEPTING
    told.release("n")
    assert told.state("n") is ServiceState.IN_SERVICE


def test_a_mark_that_somebody_has_undone_on_a_node_that_had_opted_out_goes(quarantine: Any, of: Of) -> None:
    """As soon as it may. Else the next mark of ours would look as if somebody had undone that."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.survey("a", Mark.OURS)
    told.survey("a", Mark.UNDONE, opted_out=True)
    told.release("a", untested=True)
    told.answer("a", Effect.LEFT)
    told.said.clear()
    told.survey("a", Mark.UNDONE)
    assert (told.state("a"), of("acts", told.said)) == (
        ServiceState.IN_SERVICE,
        [("a", ServiceState.IN_SERVICE, ("k8s",))],
    )
