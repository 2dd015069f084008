"""A log that begins anew in the middle of a leadership: nobody notices, and nothing is decided by it."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model import ServiceState, Verdict
from muster.quarantine_settings import BudgetSettings, MassEventSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.charge import Proof
from muster_coordinator.model.quarantine_events import ActionEnded, AllTold, Renewed, SaveAction

Of = Callable[..., list[Any]]

FEW = MassEventSettings(nodes=5, share="1%", window_s=600)


def freeze(told: Any, code: str = "gemm.slow") -> None:
    """Ten nodes have the same trouble, the first five just when it was noticed, of which three have recovered since."""
    for name in "abcde":
        told.accuse(name, code, proof=Proof.ONCE)
    for name in "fghij":
        told.wait(1000)
        told.accuse(name, code, proof=Proof.ONCE)
    for name in "abc":
        told.absolve(name)


def test_nothing_is_done_about_it(quarantine: Any) -> None:
    """Also later, when every node has been looked at again."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    cases = dict(told.machine.cases)
    assert [*told.renew(), *told.wait(0.25), *told.wait(60)] == []
    assert told.machine.cases == cases


def test_it_holds_all_that_is_known(quarantine: Any) -> None:
    """A log that begins with it needs nothing of what came before."""
    told = quarantine(12, mass_event=FEW)
    told.accuse("l", "nvml.gone")
    freeze(told)
    before = told.machine.renewal()
    told.renew()
    assert told.machine.renewal() == before
    assert Renewed.model_validate_json(before.model_dump_json()) == before


def test_what_is_frozen_stays_frozen(quarantine: Any) -> None:
    """Although of those that are left too few have come at the same time for it to be noticed."""
    told = quarantine(12, mass_event=FEW)
    freeze(told)
    view = told.machine.view()
    assert view.frozen
    told.renew()
    assert told.machine.view() == view
    told.accuse("l", "nvml.gone")
    assert told.state("l") is ServiceState.IN_SERVICE


def test_what_a_person_has_let_pass_may_go_on(quarantine: Any, of: Of) -> None:
    """Although no node is left that had it when that was said."""
    told = quarantine(12, mass_event=FEW)
    freeze(told)
    told.lift()
    for name in "defgh":
        told.accuse("abckl"["defgh".index(name)], "gemm.slow", proof=Proof.ONCE)
    for name in "defghij":
        told.absolve(name)
    told.renew()
    assert told.machine.view().frozen == ()
    assert of("alarms", told.accuse("d", "gemm.slow", proof=Proof.ONCE)) == []


def test_no_id_is_given_twice(quarantine: Any) -> None:
    """Also when the coordinator goes on for years."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.renew()
    told.accuse("b", "nvml.gone")
    told.renew()
    told.accuse("c", "nvml.gone")
    assert len({told.transition(name).id for name in "abc"}) == 3


def test_what_is_being_told_is_told_to_the_end(quarantine: Any) -> None:
    """Neither once more, nor is it lost what comes of it, also when there has been a later transition."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    first = told.transition("a").id
    told.release("a", untested=True)
    assert told.renew() == []
    ended = ActionEnded(node="a", transition=first, actor="k8s", effect=Effect.DONE, detail="so")
    said = [*told.tell(ended), *told.tell(AllTold(node="a", transition=first))]
    saved = [command.action for command in said if isinstance(command, SaveAction)]
    assert saved[-1].transition.id == first
    assert (saved[-1].told, saved[-1].outcomes["k8s"].effect) == (True, Effect.DONE)


def test_who_has_failed_is_told_again_in_time(quarantine: Any, of: Of) -> None:
    """When it would have been without that."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.FAILED)
    told.renew()
    assert of("acts", told.wait(0.9)) == []
    assert of("acts", told.wait(0.2)) == [("a", ServiceState.CORDONED, ("k8s",))]


def test_a_test_that_is_under_way_counts(quarantine: Any, of: Of) -> None:
    """It is not asked for again, and its node comes back by it."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    assert of("tests", told.absolve("a")) == ["nvml"]
    for later in (["gemm"], []):
        told.renew()
        assert of("tests", told.wait(1)) == []
        assert of("tests", told.end_test("a", Verdict.PASS)) == later
    assert told.state("a") is ServiceState.IN_SERVICE


def test_who_waits_goes_when_there_is_room(quarantine: Any) -> None:
    """As if nothing had been."""
    told = quarantine(3, budget=BudgetSettings(nodes=1, domain_share="100%", per_minute=6000))
    told.accuse("a", "nvml.gone")
    told.answer("a", Effect.DONE)
    told.accuse("b", "nvml.gone")
    told.renew()
    assert told.state("b") is ServiceState.HELD
    told.let_in("a")
    told.survey("a", Mark.NONE)
    told.wait(1)
    assert told.state("b") is ServiceState.CORDONED


@pytest.mark.parametrize("mode", ["observe", "dry-run", "enforce"])
def test_it_begins_in_every_mode(quarantine: Any, mode: str) -> None:
    """A mode is switched at a start, and not by this."""
    told = quarantine(3, mode=mode)
    told.accuse("a", "nvml.gone")
    before = told.states()
    assert told.renew() == []
    assert told.states() == before
