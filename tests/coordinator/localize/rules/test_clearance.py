"""Which nodes are cleared, and can help to judge others."""

import pytest
from tests.coordinator.localize.runs import THREE_LEAVES, diagnosed, fleet, ran, well

from muster_coordinator.model.probes import GroupRun

LIAR, VICTIMS = "n1", ("n2", "n4", "n6")


def framed() -> list[GroupRun]:
    """A node passes with one other and is slow with three."""
    return [ran(LIAR, "n0"), *(ran(LIAR, victim, at=0.3) for victim in VICTIMS)]


@pytest.mark.parametrize(
    ("more", "first", "spoilers"),
    [
        pytest.param([], 2, {LIAR}, id="three that pass with all others"),
        pytest.param([ran(victim, "n8", at=0.3) for victim in VICTIMS], 2, set(), id="bad with another node too"),
        pytest.param([], 8, set(), id="have never passed"),
    ],
)
def test_only_nodes_that_are_well_otherwise_make_a_spoiler(more: list[GroupRun], first: int, spoilers: set) -> None:
    """Three nodes that may be bad themselves say nothing about the node that meets them."""
    assert diagnosed(fleet(16), *well(16, first), *framed(), *more).clearance.spoilers == spoilers


def test_a_convicted_node_is_no_partner() -> None:
    """Even if it comes and goes, and has passed."""
    runs = [ran("a1", "b1"), ran("a2", "b2"), ran("a3", "c4", at=0.3)]
    alone = [ran("a1"), ran("b1"), *(ran("c4", at=0.7) for _ in range(3))]
    diagnosis = diagnosed(THREE_LEAVES, *runs, *alone, ran("a3", "b3"), ran("c4", "b3"))
    assert diagnosis.convicted == {"c4"}
    assert "c4" in diagnosis.cleared
    assert diagnosis.partners == ("a1", "a2", "a3", "b1", "b2", "b3")


def test_a_node_that_is_bad_with_a_healthy_one_is_no_partner() -> None:
    """a1 and b2 were bad together, across a path that was good for others: one of them may come and go."""
    runs = [*(ran(f"a{n}", f"b{n}") for n in (1, 2, 3, 4)), ran("a1", "b2", at=0.3)]
    diagnosis = diagnosed(THREE_LEAVES, *runs)
    assert {"a1", "b2"} <= diagnosis.cleared
    assert {*diagnosis.partners} == {"a2", "a3", "a4", "b1", "b3", "b4"}
