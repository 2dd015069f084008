"""Which paths and links are at fault, and what falls just short of it."""

from dataclasses import replace

import pytest
from tests.coordinator.localize.runs import THREE_LEAVES, crashed, culprits, diagnosed, nowhere, ran

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.rules.path import QUIET_BESIDE, SLOW_UPLINK
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


@pytest.mark.parametrize(("good", "expected"), [((), {(Part.PATH, "a c")}), (("a2", "c1"), set())])
def test_one_good_run_clears_a_path(good: tuple[str, ...], expected: set) -> None:
    """A bad path is bad in every run; four runs that two intermittent faults may have slowed convict nothing then."""
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4)]
    bad = [ran(f"a{n}", f"c{n}", at=0.3) for n in (1, 2, 3, 4)]
    runs = [*passed, *bad, *([ran(*good)] if good else [])]
    assert culprits(diagnosed(THREE_LEAVES, *runs)) == expected


@pytest.mark.parametrize(("quiet", "expected"), [(1, set()), (2, {(Part.PATH, "a c")})])
def test_a_path_is_bad_also_when_few_others_run(quiet: int, expected: set) -> None:
    """Groups that share its links may have slowed the other runs."""
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4)]
    bad = [replace(ran(f"a{n}", f"c{n}", at=0.3), beside=QUIET_BESIDE + (n > quiet)) for n in (1, 2, 3, 4)]
    diagnosis = diagnosed(THREE_LEAVES, *passed, *bad)
    assert culprits(diagnosis) == expected
    (path,) = diagnosis.paths.never_good
    assert (diagnosis.paths.any_runs_missing(path), diagnosis.paths.quiet_runs_missing(path)) == (0, 2 - quiet)


@pytest.mark.parametrize(("share", "expected"), [(0.75, set()), (0.5 * SLOW_UPLINK, {(Part.PATH, "a b")})])
def test_a_path_without_compare_may_be_what_all_paths_carry(share: float, expected: set) -> None:
    """Two leaves with one path: three quarters of what is reached inside is how leaves are built, a fifth is not."""
    sites = {node: site for node, site in THREE_LEAVES.items() if site.leaf != "c"}
    bad = [ran(f"a{n}", f"b{n}", at=1.5 * share) for n in (1, 2, 3, 4)]
    inside = [ran(f"{leaf}1", f"{leaf}{n}") for leaf in "ab" for n in (2, 3, 4)]
    assert culprits(diagnosed(sites, *bad, *inside)) == expected
