"""Which nodes are at fault by themselves, and what falls just short of it."""

import pytest
from tests.coordinator.localize.runs import THREE_LEAVES, crashed, culprits, diagnosed, fleet, nowhere, ran, well

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import GroupRun


@pytest.mark.parametrize(
    ("second", "convicted"), [(crashed("n0", "n4", by=("n0",)), True), (ran("n0", "n4", at=0.3), False)]
)
def test_only_its_own_crashes_convict_a_node_that_passes(*, second: GroupRun, convicted: bool) -> None:
    """A crash beside one partner and a slow run with another may be the work of both partners."""
    runs = [*well(16), ran("n0", "n6"), crashed("n0", "n2", by=("n0",)), second]
    assert ("n0" in diagnosed(fleet(16), *runs).nodes.convicted) is convicted


def test_a_crash_of_its_own_ranks_is_not_excused_by_a_partner() -> None:
    """Each time the ranks of its partner crash too, and it passes with a third node."""
    runs = [crashed("a", "b", by=("a", "b")), crashed("a", "c", by=("a", "c")), ran("a", "d"), ran("e", "f")]
    assert culprits(diagnosed(nowhere("abcdef"), *runs)) == {(Part.NODE, "a")}


def test_more_than_half_of_the_rails_are_the_link() -> None:
    """Nobody is sent to three cables because of one loose link."""
    well_elsewhere = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a1", "a2")]
    rails = (0.3, 0.3, 0.3, 1.5)
    bad = [ran("a4", partner, rails=rails) for partner in ("a1", "b1", "c1")]
    controls = [ran("b1"), ran("b2"), ran("a4")]
    assert culprits(diagnosed(THREE_LEAVES, *well_elsewhere, *controls, *bad)) == {(Part.NODE_LINK, "a4")}
