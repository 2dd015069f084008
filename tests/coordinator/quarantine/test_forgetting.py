"""A node that somebody says has left for good counts no more, and is a new one when it is heard of again."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.errors import Refused
from muster.model import ServiceState
from muster.quarantine_settings import BudgetSettings, MassEventSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.findings import Proof

Of = Callable[..., list[Any]]


def test_it_makes_room(quarantine: Any) -> None:
    """It was away, and is no part of the fleet any more: the node that waited for it may go."""
    told = quarantine(4, budget=BudgetSettings(share="25%", domain_share="100%", per_minute=6000))
    told.lose("a")
    told.accuse("b", "nvml.gone")
    assert told.state("b") is ServiceState.HELD
    told.forget("a")
    told.wait(1)
    assert (told.state("b"), told.reconciler.fleet_view().nodes) == (ServiceState.CORDONED, 3)


def test_who_is_there_is_not_forgotten(quarantine: Any) -> None:
    """It would be heard of again at once."""
    told = quarantine(2)
    with pytest.raises(Refused, match="stop its agent first"):
        told.forget("a")


def test_what_stood_against_it_counts_no_more(quarantine: Any) -> None:
    """Nor does it make a mass event of what others have."""
    told = quarantine(4, mass_event=MassEventSettings(nodes=2))
    told.accuse("a", "gemm.slow")
    told.accuse("b", "gemm.slow", proof=Proof.ONCE)
    assert told.reconciler.fleet_view().frozen
    told.lose("a")
    said = told.forget("a")
    assert told.case("a").requirement is None
    assert "No finding requires draining any more" in [it.text for it in said if it.kind == "note"]
    assert not told.reconciler.fleet_view().frozen


@pytest.mark.parametrize("restarts", [False, True])
def test_it_may_come_again_as_a_new_one(quarantine: Any, of: Of, restarts: bool) -> None:
    """Whatever was decided about it, however often, and whoever held it; its scheduler's mark of ours is taken back."""
    told = quarantine(4)
    told.accuse("a", "nvml.gone")
    told.survey("a", Mark.OURS, transition=told.case("a").transition)
    told.answer("a", Effect.FAILED)
    told.hold("a")
    told.lose("a")
    told.forget("a")
    said = told.restart() if restarts else told.wait(600)
    assert (of("acts", said), told.case("a").left) == ([], True)
    told.add("a", fit=False)
    assert (told.state("a"), told.case("a").left) == (ServiceState.ACCEPTING, False)
    assert (told.case("a").hold, told.case("a").cordoned_at) == (None, ())
    assert of("acts", told.absolve("a")) == [("a", ServiceState.IN_SERVICE, ())]
