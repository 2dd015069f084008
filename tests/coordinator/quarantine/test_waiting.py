"""Who hears of a node that should go and has to wait: everybody, when it waits for room; its story, for its turn."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model import ServiceState
from muster.quarantine_settings import BudgetSettings
from muster.transition import Mark

Of = Callable[..., list[Any]]

HELD = ServiceState.HELD
RATE = "Rate limit: next drain in 60 s"
FULL = "Not drained: budget of 2 of 10 reached"


def budget(share: str = "20%", per_minute: float = 1) -> BudgetSettings:
    return BudgetSettings(share=share, domain_share="100%", per_minute=per_minute)


def fill(told: Any) -> list[Any]:
    """Has somebody take a node away, so that there is no room, and time pass that is too short for a turn."""
    return [*told.survey("j", Mark.FOREIGN), *told.wait(0.1)]


def empty(told: Any) -> list[Any]:
    """Gives the node back."""
    return [*told.survey("j", Mark.NONE), *told.wait(0.1)]


def test_a_node_that_waits_for_its_turn_is_held_and_no_actor_told(quarantine: Any, of: Of) -> None:
    """It says why in its case and its story, and nobody is alarmed: it goes a minute later."""
    told = quarantine(10, budget=budget())
    told.accuse("a", "gemm.slow")
    before = told.case("b").transition
    said = told.accuse("b", "gemm.slow")
    assert (told.state("b"), told.case("b").held_because) == (HELD, RATE)
    assert f"IN_SERVICE to HELD: {RATE}" in of("notes", said)
    assert (of("acts", said), told.case("b").transition) == ([], before)
    assert of("alarms", told.wait(1)) == []
    assert of("acts", told.wait(59)) == [("b", ServiceState.CORDONED, ())]


def test_it_is_told_once_there_is_no_room(quarantine: Any, of: Of) -> None:
    """Then with an alarm; not again when room has come and gone meanwhile, as actors know it as HELD."""
    told = quarantine(10, budget=budget())
    for node in "ab":
        told.accuse(node, "gemm.slow")
    full = fill(told)
    assert of("acts", full) == [("b", HELD, ())]
    assert of("alarms", full) == ["1 faulty node not drained: budget of 2 of 10 reached"]
    assert f"stays HELD: {FULL}" in of("notes", full)
    empty(told)
    assert told.case("b").held_because == RATE
    assert (of("acts", fill(told)), told.case("b").held_because) == ([], FULL)


def test_what_was_told_is_known_after_a_restart(quarantine: Any, of: Of) -> None:
    """A node that waited for its turn is told when there is no room, one that was told is not told again."""
    told = quarantine(10, budget=budget())
    for node in "ab":
        told.accuse(node, "gemm.slow")
    assert of("acts", told.restart()) == [("a", ServiceState.CORDONED, ())]
    assert of("acts", fill(told)) == [("b", HELD, ())]
    told.restart()
    empty(told)
    assert of("acts", fill(told)) == []


def test_a_mass_event_is_not_want_of_room(quarantine: Any, of: Of) -> None:
    """Actors hear nothing of nodes that stay because of it, also of those that waited before."""
    told = quarantine(10, budget=budget("50%", 2), mass_event={"nodes": 5})
    said = [command for node in "abcde" for command in told.accuse(node, "gemm.slow")]
    gone = [("a", ServiceState.CORDONED, ()), ("b", ServiceState.CORDONED, ())]
    assert of("acts", [*said, *told.wait(0.1)]) == gone
    assert told.case("c").held_because.startswith("Draining paused")


@pytest.mark.parametrize(
    ("per_minute", "heard_of"),
    [
        pytest.param(6, "", id="all within a minute"),
        pytest.param(2, "efghi", id="those behind as many as go in a minute"),
        pytest.param(0.5, "acdefghi", id="slower than one in a minute"),
    ],
)
def test_who_waits_longer_than_a_minute_is_told(quarantine: Any, of: Of, per_minute: float, heard_of: str) -> None:
    """However much room there is: the rate is part of the budget."""
    told = quarantine(10, budget=budget("100%", per_minute))
    said = [command for node in "bacdefghi" for command in told.accuse(node, "gemm.slow")]
    assert [node for node, state, _ in of("acts", said) if state is HELD] == list(heard_of)
    assert len(of("alarms", told.wait(0))) == bool(heard_of)


@pytest.mark.parametrize(("is_full", "acts"), [(False, []), (True, [("b", ServiceState.IN_SERVICE, ())])])
def test_who_was_told_that_it_waits_hears_that_it_waits_no_more(
    quarantine: Any, of: Of, is_full: bool, acts: list[Any]
) -> None:
    """An actor that was told nothing has nothing to take back."""
    told = quarantine(10, budget=budget())
    for node in "ab":
        told.accuse(node, "gemm.slow")
    if is_full:
        fill(told)
    said = told.absolve("b")
    assert (told.state("b"), of("acts", said)) == (ServiceState.IN_SERVICE, acts)
