"""Which paths and links are at fault, and what falls just short of it."""

from dataclasses import replace

import pytest
from tests.coordinator.localize.runs import THREE_LEAVES, crashed, culprits, diagnosed, failed, nowhere, ran

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


@pytest.mark.parametrize(
    ("good", "never_good"),
    [
        ([("a4", "c4")], True),
        ([("a4", "c4"), ("a4", "c1")], True),
        ([("a4", "c4"), ("a1", "c4")], True),
        ([("a4", "c1"), ("a1", "c4")], False),
        ([("a1", "c2")], False),
    ],
    ids=str,
)
def test_a_node_with_a_wrong_label_does_not_clear_a_path(good: list[tuple[str, str]], *, never_good: bool) -> None:
    """One node that was in all good runs across it, and in no bad one, may stand elsewhere."""
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4)]
    bad = [ran(f"a{n}", f"c{n}", at=0.3) for n in (1, 2, 3)]
    runs = [*passed, *bad, *(ran(*pair) for pair in good)]
    paths = diagnosed(THREE_LEAVES, *runs).paths
    assert bool(paths.never_good) == never_good
    assert all({"a4", "c4"} <= paths.met_across(path) for path in paths.never_good)
    one_bad = diagnosed(THREE_LEAVES, *passed, bad[0], ran("a4", "c4")).paths
    assert not one_bad.never_good


@pytest.mark.parametrize(("quiet", "expected"), [(1, set()), (2, {(Part.PATH, "a c")})])
def test_a_path_is_bad_also_when_few_others_run(quiet: int, expected: set) -> None:
    """Groups that share its links may have slowed the other runs."""
    passed = [replace(ran(f"{leaf}{n}", f"b{n}"), beside=5) for leaf in "ac" for n in (1, 2, 3, 4)]
    bad = [replace(ran(f"a{n}", f"c{n}", at=0.3), beside=QUIET_BESIDE + (n > quiet), round=n) for n in (1, 2, 3, 4)]
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


def test_pairs_that_cross_a_path_at_the_same_time_count_once() -> None:
    """They share its links. Runs by themselves, or one after the other, count each."""
    passed = [replace(ran(f"{leaf}{n}", f"b{n}"), beside=5) for leaf in "ac" for n in (1, 2, 3, 4)]
    for beside, rounds, missing in ((1, (2, 2), 1), (1, (2, 3), 0), (0, (2, 2), 0)):
        bad = [replace(ran(f"a{n}", f"c{n}", at=0.3), beside=beside, round=rounds[n - 1]) for n in (1, 2)]
        paths = diagnosed(THREE_LEAVES, *passed, *bad).paths
        assert [paths.quiet_runs_missing(path) for path in paths.never_good] == [missing]


@pytest.mark.parametrize(("other", "expected"), [(("a3", "b3"), set()), (("b3", "b4"), {(Part.PATH, "a c")})])
def test_a_pair_across_another_path_of_its_leaf_may_have_slowed_it(other: tuple[str, str], expected: set) -> None:
    """Both share the uplinks of leaf a, if they run in the same round."""
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4)]
    bad = [replace(ran(f"a{n}", f"c{n}", at=0.3), beside=1, round=n) for n in (1, 2, 4)]
    beside = [replace(ran(*other), beside=1, round=n) for n in (1, 2, 4)]
    assert culprits(diagnosed(THREE_LEAVES, *passed, *bad, *beside)) == expected


SAME, VARIED = (0.3, 0.3, 0.32, 0.32), (0.3, 0.3, 0.42, 0.42)


@pytest.mark.parametrize(
    ("at_c", "reached", "others", "expected"),
    [
        pytest.param(3, SAME, (), {(Part.PATH, "a c")}, id="the same each time"),
        pytest.param(2, SAME, (), set(), id="the same from a small leaf, nothing across another path"),
        pytest.param(2, SAME, ("b1 c1", "b2 c1"), {(Part.PATH, "a c")}, id="good across another path of a small leaf"),
        pytest.param(2, SAME, ("b1 c1",), set(), id="the label of b1 may be wrong"),
        pytest.param(2, VARIED, (), set(), id="few uplinks"),
        pytest.param(4, VARIED, (), set(), id="of a large leaf, too"),
        pytest.param(4, (0.3, 0.42, 0.55, 0.72), ("b1 c1", "b2 c2"), set(), id="never the same"),
        pytest.param(4, VARIED, ("b1 c1", "b2 c2"), {(Part.PATH, "a c")}, id="good across another path"),
    ],
)
def test_what_is_slow_from_a_leaf_may_be_its_few_uplinks(
    at_c: int, reached: tuple[float, ...], others: tuple[str, ...], expected: set
) -> None:
    """A fault of the path lets through the same each time, and does not slow down other paths of the leaf."""
    sites = {node: site for node, site in THREE_LEAVES.items() if site.leaf != "c" or int(node[1:]) <= at_c}
    passed = [ran(f"a{n}", f"b{n}") for n in (1, 2, 3, 4)] + [ran(f"c{n}", f"c{n + 1}") for n in range(1, at_c, 2)]
    bad = [replace(ran(f"a{n}", f"c{(n - 1) % at_c + 1}", at=at), round=n) for n, at in enumerate(reached, start=1)]
    assert culprits(diagnosed(sites, *passed, *bad, *(ran(*pair.split()) for pair in others))) == expected


def test_few_uplinks_break_nothing() -> None:
    """A path from a small leaf that breaks needs no run across another path."""
    sites = {node: site for node, site in THREE_LEAVES.items() if node not in {"c3", "c4"}}
    passed = [*(ran(f"a{n}", f"b{n}") for n in (1, 2, 3, 4)), ran("c1", "c2")]
    broken = [replace(failed(f"a{n}", f"c{(n - 1) % 2 + 1}"), round=n) for n in (1, 2, 3, 4)]
    assert culprits(diagnosed(sites, *passed, *broken)) == {(Part.PATH, "a c")}


@pytest.mark.parametrize(("at", "is_never_good"), [(1.5, True), (1.3, False)])
def test_a_good_run_that_reached_hardly_more_than_bad_ones_crossed_the_path(at: float, is_never_good: bool) -> None:
    """Whatever the label of its nodes: at another leaf they would have reached clearly more."""
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4)]
    bad = [ran("a1", "c1", at=1.2), ran("a2", "c2", at=1.2)]
    diagnosis = diagnosed(THREE_LEAVES, *passed, *bad, ran("a4", "c4", at=at))
    assert bool(diagnosis.paths.never_good) == is_never_good


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        pytest.param(("a4 a1", "a4 a2", "c4 c1", "c4 c2"), {(Part.PATH, "a c")}, id="several times"),
        pytest.param(("a4 a1", "c4 c1"), set(), id="once, perhaps by chance"),
    ],
)
def test_nodes_that_fail_in_their_leaf_and_pass_in_another_one_stand_there(
    failing: tuple[str, ...], expected: set
) -> None:
    """Each of them has the label of the leaf of the other, and passes as if it had crossed the bad path."""
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3)] + [ran("a4", "c3"), ran("c4", "a3")]
    bad = [ran(f"a{n}", f"c{n}", at=0.3) for n in (1, 2, 3)]
    inside = [ran(*pair.split(), at=0.3) for pair in failing]
    found = culprits(diagnosed(THREE_LEAVES, *passed, *bad, *inside))
    assert found == expected
