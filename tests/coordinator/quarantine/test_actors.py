"""What each actor is told, the retries until it is done, and the answer to a scheduler that differs."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model import ServiceState
from muster.transition import Effect, Mark
from muster_coordinator.model.quarantine_events import ActionEnded, AllActorsCalled, LogResumedByHand

Of = Callable[..., list[Any]]

CORDONED, IN_SERVICE = ServiceState.CORDONED, ServiceState.IN_SERVICE


@pytest.fixture
def cordoned(quarantine: Any) -> Any:
    """Three nodes, of which the first is just being cordoned."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    return told


def test_what_is_stored_comes_first(quarantine: Any) -> None:
    """The case and the transition stand before whoever is told, in what one event has led to."""
    told = quarantine(2)
    kinds = [command.kind for command in told.accuse("a", "nvml.gone")]
    assert kinds.index("save_record") < kinds.index("save_transition") < kinds.index("dispatch_transition")


def test_a_transition_says_all(cordoned: Any) -> None:
    """What was found, what should be done about it and why the node goes."""
    transition = cordoned.transition("a")
    assert (transition.node, transition.before, transition.after) == ("a", IN_SERVICE, CORDONED)
    assert (transition.codes, transition.action, transition.reason) == (("nvml.gone",), "RESET_GPU", "it is gone")
    assert (transition.at, transition.by, transition.dry_run) == (cordoned.now, None, False)


def test_a_failure_is_told_again_ever_more_rarely(cordoned: Any, of: Of) -> None:
    """After one second, two, four and so on up to five minutes, and only to the actor that has failed."""
    cordoned.answer("a", Effect.DONE, "pager", all_called=False)
    cordoned.answer("a", Effect.FAILED)
    waits = []
    for _ in range(12):
        begun = cordoned.now
        while not (said := of("acts", cordoned.wait(0.5))):
            assert cordoned.now < begun + 600
        assert said == [("a", CORDONED, ("k8s",))]
        waits.append(cordoned.now - begun)
        cordoned.answer("a", Effect.FAILED, all_called=False)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_who_wants_to_be_left_alone_is(cordoned: Any, of: Of) -> None:
    """An actor may say how long the other side wants to hear nothing."""
    cordoned.answer("a", Effect.FAILED, wait_s=30.0)
    assert of("acts", cordoned.wait(29.9)) == []
    assert of("acts", cordoned.wait(0.1)) == [("a", CORDONED, ("k8s",))]


@pytest.mark.parametrize("effect", [Effect.DONE, Effect.LEFT, Effect.WOULD])
def test_what_is_settled_is_not_told_again(cordoned: Any, of: Of, effect: Effect) -> None:
    """Whether it was done or respected as it is."""
    cordoned.answer("a", effect)
    assert of("acts", cordoned.wait(86_400)) == []


def test_a_failure_that_succeeds_ends(cordoned: Any, of: Of) -> None:
    """The number of tries stays to be seen."""
    cordoned.answer("a", Effect.FAILED)
    cordoned.wait(1)
    cordoned.answer("a", Effect.DONE)
    assert of("acts", cordoned.wait(86_400)) == []
    outcome = cordoned.transitions[cordoned.case("a").transition].outcomes["k8s"]
    assert (outcome.effect, outcome.tries, outcome.next_try) == (Effect.DONE, 2, None)


def test_an_outcome_stands_in_the_story(cordoned: Any, of: Of) -> None:
    """Of each actor, with the transition that it is about."""
    assert "k8s: FAILED: so it was" in of("notes", cordoned.answer("a", Effect.FAILED))


def test_of_two_transitions_only_the_later_is_tried_again(cordoned: Any, of: Of) -> None:
    """What came of the earlier is written down all the same."""
    first = cordoned.case("a").transition
    cordoned.release("a", untested=True)
    cordoned.tell(ActionEnded(node="a", transition=first, actor="k8s", effect=Effect.FAILED, detail="500"))
    cordoned.tell(AllActorsCalled(node="a", transition=first))
    assert cordoned.transitions[first].told
    assert cordoned.transitions[first].outcomes["k8s"].next_try is None
    cordoned.answer("a", Effect.FAILED)
    assert of("acts", cordoned.wait(1)) == [("a", IN_SERVICE, ("k8s",))]


@pytest.mark.parametrize("transition", ["t9-9", "the first"])
def test_what_nobody_waits_for_changes_nothing(cordoned: Any, transition: str) -> None:
    """An answer that comes once more after all is over, or about what was never decided."""
    name = cordoned.case("a").transition if transition == "the first" else transition
    cordoned.answer("a", Effect.DONE)
    cordoned.release("a", untested=True)
    cordoned.answer("a", Effect.DONE)
    assert cordoned.tell(ActionEnded(node="a", transition=name, actor="k8s", effect=Effect.FAILED, detail="500")) == []
    assert cordoned.tell(AllActorsCalled(node="a", transition=name)) == []


def test_after_a_restart_it_goes_on(cordoned: Any, of: Of) -> None:
    """All are told who may not have been, and then only those that have failed."""
    assert of("acts", cordoned.restart()) == [("a", CORDONED, ())]
    cordoned.answer("a", Effect.DONE, "pager", all_called=False)
    cordoned.answer("a", Effect.FAILED)
    assert of("acts", cordoned.restart()) == [("a", CORDONED, ("k8s",))]
    cordoned.answer("a", Effect.DONE)
    assert of("acts", cordoned.restart()) == []


def test_of_what_is_stored_the_case_says_which_was_last(cordoned: Any, of: Of) -> None:
    """Whatever order the transitions come in, such as after a clock was set back."""
    cordoned.answer("a", Effect.FAILED)
    cordoned.now -= 3600
    cordoned.release("a", untested=True)
    assert of("acts", cordoned.restart()) == [("a", IN_SERVICE, ())]


# A scheduler that has a node otherwise than decided


@pytest.mark.parametrize("effect", [Effect.DONE, Effect.LEFT])
def test_a_cordon_that_is_not_there_is_told_again(cordoned: Any, of: Of, effect: Effect) -> None:
    """A node that was registered again, or from which a foreign mark has gone."""
    cordoned.answer("a", effect)
    assert of("acts", cordoned.survey("a", Mark.NONE)) == [("a", CORDONED, ("k8s",))]


def test_marks_that_are_missing_in_part_are_told_again(cordoned: Any, of: Of) -> None:
    """Somebody has removed a taint or an annotation of ours and left the rest, or a new node has taken its place."""
    cordoned.answer("a", Effect.DONE)
    assert of("acts", cordoned.survey("a", Mark.OURS)) == []
    assert of("acts", cordoned.survey("a", Mark.OURS, incomplete=True, opted_out=True)) == []
    assert of("acts", cordoned.survey("a", Mark.OURS, incomplete=True)) == [("a", CORDONED, ("k8s",))]


@pytest.mark.parametrize("effect", [Effect.DONE, Effect.LEFT])
def test_a_mark_of_ours_that_should_not_be_there_is_told_again(cordoned: Any, of: Of, effect: Effect) -> None:
    """Also where somebody holds the node: undoing what is ours is never held up."""
    cordoned.release("a", untested=True)
    cordoned.answer("a", effect)
    cordoned.hold("a")
    assert of("acts", cordoned.survey("a", Mark.OURS)) == [("a", IN_SERVICE, ("k8s",))]


def test_what_is_under_way_is_not_told_twice(cordoned: Any, of: Of) -> None:
    """A survey may be older than the cordon, or than what has failed and is being tried again."""
    assert of("acts", cordoned.survey("a", Mark.NONE)) == []
    cordoned.answer("a", Effect.FAILED)
    cordoned.wait(1)
    assert of("acts", cordoned.survey("a", Mark.NONE)) == []


@pytest.fixture
def put_off(cordoned: Any) -> Any:
    """One that has failed so often that it is tried again in five minutes."""
    for _ in range(10):
        cordoned.answer("a", Effect.FAILED, all_called=False)
        cordoned.wait(300)
    cordoned.answer("a", Effect.FAILED)
    return cordoned


def test_an_actor_that_can_be_reached_again_is_told_at_once(put_off: Any, of: Of) -> None:
    """A survey shows it, and no more is told then when the time would have come."""
    assert of("acts", put_off.wait(10)) == []
    assert of("acts", put_off.survey("a", Mark.NONE)) == [("a", CORDONED, ("k8s",))]
    assert of("acts", put_off.survey("a", Mark.NONE)) == []
    put_off.answer("a", Effect.DONE)
    assert of("acts", put_off.wait(86_400)) == []


def test_another_actor_that_can_be_reached_proves_nothing(put_off: Any, of: Of) -> None:
    """Each is tried again by itself."""
    put_off.survey("b", Mark.NONE)
    assert ("a", CORDONED, ("k8s",)) not in of("acts", put_off.survey("a", Mark.NONE, "slurm"))


def test_who_wants_to_be_left_alone_is_so_although_it_can_be_reached(cordoned: Any, of: Of) -> None:
    """A scheduler that is busy still answers surveys."""
    cordoned.answer("a", Effect.FAILED, wait_s=30.0)
    cordoned.wait(29)
    assert of("acts", cordoned.survey("a", Mark.NONE)) == []
    cordoned.wait(0.5)
    assert of("acts", cordoned.wait(0.5)) == [("a", CORDONED, ("k8s",))]


# A scheduler that has let a node in


def test_a_node_that_was_uncordoned_is_away_no_more(cordoned: Any) -> None:
    """Its actor has said so; nobody waits for the next survey. Another scheduler still keeps it out."""
    cordoned.answer("a", Effect.DONE)
    for actor in ("k8s", "slurm"):
        cordoned.survey("a", Mark.OURS, actor)
    cordoned.release("a", untested=True)
    assert cordoned.reconciler.fleet_view().away == 1
    cordoned.answer("a", Effect.DONE, all_called=False)
    assert cordoned.reconciler.fleet_view().away == 1
    cordoned.answer("a", Effect.DONE, "slurm")
    assert cordoned.reconciler.fleet_view().away == 0


@pytest.mark.parametrize(("only_tells", "away"), [(True, 0), (False, 1)])
def test_who_only_tells_keeps_no_node_away(cordoned: Any, *, only_tells: bool, away: int) -> None:
    """A pager that cannot be reached does not use up the budget; a scheduler may still keep work off."""
    cordoned.answer("a", Effect.DONE)
    cordoned.release("a", untested=True)
    about = {"node": "a", "transition": cordoned.case("a").transition, "detail": "so it was"}
    cordoned.tell(ActionEnded(**about, actor="pager", effect=Effect.FAILED, only_tells=only_tells))
    cordoned.answer("a", Effect.DONE)
    assert cordoned.reconciler.fleet_view().away == away


@pytest.mark.parametrize(("mark", "effect"), [(Mark.OURS, Effect.LEFT), (Mark.FOREIGN, Effect.DONE)])
def test_a_node_that_was_not_uncordoned_stays_away(cordoned: Any, mark: Mark, effect: Effect) -> None:
    """Somebody else's mark is none of ours, and one that was left is still there."""
    cordoned.survey("a", mark)
    cordoned.answer("a", Effect.DONE)
    cordoned.release("a", untested=True)
    cordoned.answer("a", effect)
    assert cordoned.case("a").observed["k8s"].mark is mark
    assert cordoned.reconciler.fleet_view().away == 1


def test_what_comes_of_an_earlier_transition_says_nothing_about_now(cordoned: Any) -> None:
    """It was uncordoned, and then drained once more before the first was answered."""
    cordoned.survey("a", Mark.OURS)
    cordoned.release("a", untested=True)
    first = cordoned.case("a").transition
    cordoned.wait(1)
    cordoned.accuse("a", "nvml.gone")
    cordoned.tell(ActionEnded(node="a", transition=first, actor="k8s", effect=Effect.DONE, detail="let in"))
    assert cordoned.case("a").observed["k8s"].mark is Mark.OURS


@pytest.mark.parametrize("mark", [Mark.OURS, Mark.FOREIGN])
def test_a_node_that_is_out_as_decided_is_left_alone(cordoned: Any, of: Of, mark: Mark) -> None:
    """By us or by somebody else."""
    cordoned.answer("a", Effect.DONE)
    assert of("acts", cordoned.survey("a", mark)) == []


def test_a_node_that_has_opted_out_is_not_told_again(cordoned: Any, of: Of) -> None:
    """Whatever the scheduler has."""
    cordoned.answer("a", Effect.LEFT)
    assert of("acts", cordoned.survey("a", Mark.NONE, opted_out=True)) == []


def test_a_held_node_is_not_cordoned_again(cordoned: Any, of: Of) -> None:
    """Until it is released, when the scheduler is looked at the next time."""
    cordoned.answer("a", Effect.DONE)
    cordoned.hold("a")
    assert of("acts", cordoned.survey("a", Mark.NONE)) == []
    cordoned.release("a")
    cordoned.answer("a", Effect.DONE)
    assert of("acts", cordoned.survey("a", Mark.NONE)) == [("a", ServiceState.PROBATION, ("k8s",))]


def test_a_cordon_of_ours_that_lacks_something_is_told_again(cordoned: Any, of: Of) -> None:
    """Such as one from which somebody has taken the taint."""
    cordoned.answer("a", Effect.DONE)
    assert of("acts", cordoned.survey("a", Mark.OURS, incomplete=True)) == [("a", CORDONED, ("k8s",))]


def test_an_actor_that_was_not_there_is_told(cordoned: Any, of: Of) -> None:
    """One that was switched on after the node was cordoned."""
    cordoned.answer("a", Effect.DONE)
    assert of("acts", cordoned.survey("a", Mark.NONE, "slurm")) == [("a", CORDONED, ("slurm",))]


def test_a_foreign_cordon_that_comes_after_ours_and_goes(cordoned: Any, of: Of) -> None:
    """It is respected as long as it is there, and then ours is set again, as the evidence still stands."""
    cordoned.answer("a", Effect.DONE)
    cordoned.survey("a", Mark.FOREIGN, detail="firmware")
    cordoned.absolve("a")
    assert cordoned.state("a") is CORDONED
    assert cordoned.case("a").left_alone_because == "Drained by others in k8s: firmware"
    cordoned.accuse("a", "nvml.gone")
    assert of("acts", cordoned.survey("a", Mark.NONE)) == [("a", CORDONED, ("k8s",))]


@pytest.mark.parametrize(
    ("said", "told_as"),
    [
        ({"mark": Mark.NONE, "leaving": "scale-down"}, "leaving: scale-down"),
        ({"mark": Mark.NONE, "opted_out": True}, "opted out"),
        ({"mark": Mark.FOREIGN, "detail": "bob: rma"}, "drained by others: bob: rma"),
        ({"mark": Mark.FOREIGN}, "drained by others: no reason given"),
        ({"mark": Mark.NONE, "keeps_off": "taint x"}, "others keep work off it: taint x"),
    ],
)
def test_what_others_say_at_a_scheduler_stands_in_the_story(quarantine: Any, of: Of, said: Any, told_as: str) -> None:
    """Once when it begins, and when it is over."""
    told = quarantine(3)
    notes = [note for _ in range(2) for note in of("notes", told.survey("a", **said))]
    assert notes == [f"k8s: {told_as}"]
    assert of("notes", told.survey("a", Mark.NONE)) == [f"k8s: no longer: {told_as}"]


def test_who_uncordons_ours_by_hand_is_respected(cordoned: Any, of: Of) -> None:
    """The node is held as it is, all others are told, and it does not go again although it is bad."""
    cordoned.answer("a", Effect.DONE)
    said = cordoned.survey("a", Mark.UNDONE)
    assert of("acts", said) == [("a", IN_SERVICE, ())]
    assert cordoned.transition("a").by == "somebody at k8s"
    said_so = "Resumed by hand in k8s; muster will not drain it until `muster quarantine release a`"
    assert f"CORDONED to IN_SERVICE: {said_so}" in of("notes", said)
    assert cordoned.case("a").hold.reason == said_so
    assert [(it.actor, it.text) for it in said if isinstance(it, LogResumedByHand)] == [("k8s", said_so)]
    cordoned.accuse("a", "nvml.gone")
    cordoned.wait(600)
    assert cordoned.state("a") is IN_SERVICE
    cordoned.release("a")
    assert cordoned.state("a") is CORDONED, "decided from the evidence of now"


def test_a_node_that_is_resumed_at_one_scheduler_is_uncordoned_at_the_others(cordoned: Any) -> None:
    """The text names them: nobody at the other scheduler has resumed it."""
    cordoned.survey("a", Mark.OURS, "slurm")
    cordoned.answer("a", Effect.DONE)
    cordoned.survey("a", Mark.UNDONE)
    assert cordoned.transition("a").reason.startswith("Resumed by hand in k8s (also resumed in slurm); muster will")


def test_a_node_that_is_resumed_there_only_stays_out_elsewhere(quarantine: Any, of: Of) -> None:
    """It is held as it is, over restarts, and counts as away until somebody releases it. It is said once."""
    told = quarantine(3, resume_by_hand="there")
    told.accuse("a", "nvml.gone")
    told.survey("a", Mark.OURS, "slurm")
    told.answer("a", Effect.DONE)
    said = told.survey("a", Mark.UNDONE)
    reason = (
        "Resumed by hand in k8s (still drained in slurm); muster will not drain it until `muster quarantine release a`"
    )
    assert (of("acts", said), of("notes", said)) == ([], [f"stays CORDONED: {reason}"])
    assert [it.text for it in said if isinstance(it, LogResumedByHand)] == [reason]
    told.restart()
    assert told.survey("a", Mark.UNDONE) == []
    assert of("acts", told.wait(86_400)) == []
    assert (told.state("a"), told.record("a").is_away, told.case("a").hold.reason) == (CORDONED, True, reason)
    assert of("acts", told.release("a")) == [("a", ServiceState.PROBATION, ())]


@pytest.fixture
def released(quarantine: Any) -> Any:
    """A person resumed `a` at one scheduler only, and then released it; it is tested now."""
    told = quarantine(3, resume_by_hand="there")
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.survey("a", Mark.UNDONE, transition=told.transition("a").id)
    told.absolve("a")
    told.release("a")
    return told


def test_a_release_is_newer_than_the_resume(released: Any, of: Of) -> None:
    """A survey from before the actor replaced the old mark says nothing about the release."""
    released.answer("a", Effect.DONE)
    said = released.survey("a", Mark.UNDONE, transition="t-old")
    assert (released.case("a").hold, of("acts", said)) == (None, [("a", ServiceState.PROBATION, ("k8s",))])
    released.answer("a", Effect.DONE)
    released.survey("a", Mark.UNDONE, transition=released.transition("a").id)
    assert released.case("a").hold is not None, "somebody resumed it again"


def test_a_resume_that_came_before_a_retest_is_respected(quarantine: Any) -> None:
    """The retest began before a survey could show it, and the actor left the node as it was."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.absolve("a")
    told.wait(3600)
    assert told.state("a") is ServiceState.PROBATION
    told.answer("a", Effect.LEFT)
    told.survey("a", Mark.UNDONE, transition="t-old")
    assert (told.state("a"), told.case("a").hold.by) == (IN_SERVICE, "somebody at k8s")


def test_a_release_in_the_middle_of_a_test_calls_the_actors_again(released: Any, of: Of) -> None:
    """The node was resumed while it was tested. Without a new decision the actor would respect that for ever."""
    released.answer("a", Effect.DONE)
    released.survey("a", Mark.UNDONE, transition=released.transition("a").id)
    before = released.transition("a").id
    assert of("acts", released.release("a")) == [("a", ServiceState.PROBATION, ())]
    assert (released.transition("a").id != before, released.case("a").hold) == (True, None)


@pytest.mark.parametrize("mode", ["observe", "dry-run"])
def test_only_who_acts_corrects_schedulers(quarantine: Any, of: Of, mode: str) -> None:
    """In a dry run and when we only observe, nothing differs from what we have done."""
    told = quarantine(2, mode=mode)
    told.accuse("a", "nvml.gone")
    for mark in Mark:
        assert of("acts", told.survey("b", mark)) == []
