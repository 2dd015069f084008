"""Which paths and links are at fault, and what falls just short of it."""

import pytest
from tests.coordinator.localize.runs import THREE_LEAVES, crashed, culprits, diagnosed, nowhere, ran

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import GroupRun


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ([ran(f"a{n}", f"c{n}", at=0.3) for n in (1, 2, 3, 4)], {(Part.PATH, "a c")}),
        ([crashed(f"a{n}", f"c{n}", by=(f"a{n}",)) for n in (1, 2, 3, 4)], set()),
    ],
    ids=["slow", "crashed"],
)
def test_crashes_convict_no_path(bad: list[GroupRun], expected: set) -> None:
    """Each of its nodes passes with others afterwards."""
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4)]
    assert culprits(diagnosed(THREE_LEAVES, *bad, *passed)) == expected


@pytest.mark.parametrize(("when", "expected"), [(1, set()), (2, {(Part.LINK, "a c")})])
def test_a_control_comes_after_the_second_bad_run_of_a_link(when: int, expected: set) -> None:
    """One before it says nothing about the others: the fleet may have become slower since."""
    bad = [ran("a", "c", at=0.3) for _ in range(5)]
    runs = [ran("a", "b"), ran("b", "c"), *bad[:when], ran("a", "b"), *bad[when:]]
    assert culprits(diagnosed(nowhere("abc"), *runs, alone=False)) == expected
