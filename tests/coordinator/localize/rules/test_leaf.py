"""Which leaves are suspected and at fault, and what falls just short of it."""

from dataclasses import replace

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import THREE_LEAVES, crashed, culprits, diagnosed, failed, fleet, ran, void, well

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import GroupRun, Site

A = ("a1", "a2", "a3", "a4")

OUTSIDE = [ran(node, node.replace("a", "b"), at=0.3) for node in A]
INSIDE = [ran("a1", "a2", at=0.3), ran("a3", "a4", at=0.3)]
ALONE = [ran(node) for node in (*A, "b1", "c1")]
PASSED = [*(ran(f"c{n}", f"b{n}") for n in (1, 2, 3, 4))]
AGAINST_STRANGERS = [ran(node, node.replace("a", "b"), at=0.3) for node in A]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        pytest.param([*PASSED, *OUTSIDE, *INSIDE, *ALONE], {(Part.LEAF, "a")}, id="outside, inside and alone"),
        pytest.param([*PASSED, *OUTSIDE, *INSIDE], set(), id="not known alone"),
        pytest.param([*PASSED, *OUTSIDE, *ALONE], set(), id="not known inside"),
        pytest.param([*PASSED, *OUTSIDE, *INSIDE[:1], *ALONE], set(), id="one bad link explains what is known inside"),
        pytest.param(
            [ran("c1", "c2"), ran("c3", "c4"), *OUTSIDE, *INSIDE, *(ran(node) for node in (*A, "c1", "c3"))],
            set(),
            id="only with nodes that have not passed",
        ),
    ],
)
def test_a_leaf_fails_outside_and_inside_and_its_nodes_are_well_alone(runs: list[GroupRun], expected: set) -> None:
    """Without one of these, something else may be what is bad."""
    assert culprits(diagnosed(THREE_LEAVES, *runs)) == expected


@pytest.mark.parametrize(("first", "expected"), [(165.0, {(Part.LEAF, "leaf0")}), (200.0, set())])
def test_a_leaf_whose_nodes_reach_more_outside_than_inside_has_a_good_switch(first: float, expected: set) -> None:
    """Links are shared, so what all reach in the first round clears nobody. But a bad switch would let through less."""
    slow = range(16)
    across = [replace(ran(f"n{n}", f"n{n + 32}", at=first if n in slow else 200.0), beside=31) for n in range(32)]
    inside = [ran(f"n{n}", f"n{n + 1}", at=160.0 if n in slow else 400.0) for n in range(0, 64, 2)]
    outside = [ran(f"n{n}", f"n{n + 20}", at=160.0) for n in slow]
    controls = [ran("n20", "n40", at=400.0), ran("n22", "n42", at=400.0)]
    alone = [ran(f"n{n}", at=450.0) for n in (*slow, 20, 40, 22, 42)]
    sites = fleet(64, leaf_of=16, places_itself=False)
    assert culprits(diagnosed(sites, *across, *inside, *outside, *controls, *alone)) == expected


@cases(
    ("third", "partners", "with_a4", "expected"),
    [
        (0.3, ("b1", "c2", "b3"), ["a3"], {(Part.LEAF, "a")}),
        (0.5, ("b1", "c2", "b3"), ["a3"], set()),
        (0.3, ("b1", "b2", "b3"), [], set()),
    ],
)
def test_a_node_with_a_wrong_label_does_not_hide_a_small_leaf(
    *, third: float, partners: tuple[str, ...], with_a4: list[str], expected: set
) -> None:
    """a4 passes because it stands elsewhere. Three links do not break alike, and the path to one leaf may be bad."""
    passed = [*(ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)), ran("a4", "b4")]
    outside = [ran(node, other, at=at) for node, other, at in zip(A, partners, (0.3, 0.3, third), strict=False)]
    inside = [ran("a1", "a2", at=0.3), *(ran(node, "a4", at=0.3) for node in with_a4)]
    diagnosis = diagnosed(THREE_LEAVES, *passed, *outside, *inside, *map(ran, ("a1", "a2", "a3", "b1", "c1")))
    assert culprits(diagnosis) == expected
    assert bool(diagnosis.leaves.suspected) == bool(expected)


def test_a_leaf_does_not_wait_for_a_node_whose_runs_have_no_result() -> None:
    """Another one represents it: its agent may have vanished."""
    sites = fleet(18, leaf_of=6)
    bad = [ran(f"n{n}", f"n{n + 6}", at=0.3) for n in range(6)]
    passed = [ran(f"n{n}", f"n{n + 6}") for n in range(6, 12)]
    leaves = diagnosed(sites, *passed, *bad, void("n1", "n14")).leaves
    assert leaves.suspected == {"leaf0": ("n0", "n2", "n3", "n4")}


def test_one_node_that_passes_ends_the_suspicion_of_its_leaf() -> None:
    """The path from a to c is bad, and so is the link of a2. Three of four nodes fail outside and inside."""
    across = [ran(f"a{n}", f"c{n}", at=0.3) for n in (1, 2, 3)]
    runs = [*PASSED, *across, *INSIDE[:1], *(run for run in ALONE if run.members != ("a4",))]
    assert (Part.LEAF, "a") in culprits(diagnosed(THREE_LEAVES, *runs))
    passed = diagnosed(THREE_LEAVES, *runs, ran("a4", "b4"))
    assert passed.leaves.suspected == {}
    assert (Part.LEAF, "a") not in culprits(passed)


def test_a_leaf_is_not_convicted_if_its_nodes_crash() -> None:
    """They pass alone, but a switch makes no ranks crash: each has the same bad driver, and needs further partners."""
    outside = [crashed(f"n{n}", f"n{n + far}", by=(f"n{n}",)) for far in (8, 16) for n in range(4)]
    alone = [ran(f"n{n}") for n in (0, 1, 2, 3, 20, 30, 40)]
    runs = [*outside, crashed("n0", "n1", by=("n0",)), *well(64, first=4), *alone]
    diagnosis = diagnosed(fleet(64, leaf_of=4, places_itself=False), *runs)
    assert diagnosis.leaves.suspected == {"leaf0": ("n0", "n1", "n2", "n3")}
    assert diagnosis.culprits == ()


@pytest.mark.parametrize(
    ("leaf_of", "suspects", "suspected"),
    [
        pytest.param(2, 2, 0, id="both members of one bad pair"),
        pytest.param(8, 4, 0, id="half of a leaf"),
        pytest.param(8, 6, 1, id="three quarters of a leaf"),
    ],
)
def test_most_of_a_leaf_is_suspect_before_the_leaf_is(leaf_of: int, suspects: int, suspected: int) -> None:
    """And three of its nodes at least."""
    pairs = [ran(f"n{n}", f"n{n + 1}", at=0.3) for n in range(0, suspects, 2)]
    alone = [ran(f"n{n}") for n in range(suspects, 8)]
    passed = [ran(f"n{n}", f"n{n + 1}") for n in range(8, 24, 2)]
    assert len(diagnosed(fleet(24, leaf_of=leaf_of), *pairs, *alone, *passed).leaves.suspected) == suspected


def test_nodes_that_took_no_part_do_not_speak_for_their_leaf() -> None:
    """Half of it is busy, and the other half fails."""
    pairs = [ran(f"n{n}", f"n{n + 1}", at=0.3) for n in range(0, 4, 2)]
    passed = [ran(f"n{n}", f"n{n + 1}") for n in range(8, 24, 2)]
    assert diagnosed(fleet(24, leaf_of=8), *pairs, *passed).leaves.suspected.keys() == {"leaf0"}


@cases(("leaf_of", "named"), [(16, True), (8, True), (7, False)])
def test_a_large_leaf_may_have_a_wrong_label(leaf_of: int, *, named: bool) -> None:
    """Its one node that passes stands elsewhere. In a small leaf, it shows that the switch is healthy."""
    outside = [ran(f"n{n}", f"n{n + leaf_of}", at=0.3) for n in range(1, leaf_of)]
    passed = [ran("n0", f"n{leaf_of}"), *(ran(f"n{n + leaf_of}", f"n{n + 2 * leaf_of}") for n in range(leaf_of))]
    inside = [ran("n1", "n2", at=0.3), ran("n3", "n4", at=0.3)]
    diagnosis = diagnosed(fleet(3 * leaf_of, leaf_of=leaf_of), *passed, *outside, *inside, alone=False)
    assert ((Part.LEAF, "leaf0") in culprits(diagnosis)) is named
    assert "n0" not in diagnosis.leaves.behind


def test_four_nodes_represent_a_leaf() -> None:
    """The others wait for what these show."""
    bad = [ran(f"n{n}", f"n{n + 1}", at=0.3) for n in range(0, 8, 2)]
    diagnosis = diagnosed(fleet(16, leaf_of=8), *bad, *(ran(f"n{n}", f"n{n + 1}") for n in range(8, 16, 2)))
    assert diagnosis.leaves.suspected == {"leaf0": ("n0", "n1", "n2", "n3")}


def test_the_only_known_leaf_is_not_suspected() -> None:
    """No node is known to stand elsewhere, so nothing tells the leaf from the fleet."""
    sites = {node: Site(node, leaf="x") for node in "abcd"}
    assert diagnosed(sites, failed("a", "b"), failed("c", "d")).leaves.suspected == {}


@pytest.mark.parametrize("places_itself", [True, False])
def test_a_leaf_that_may_be_all_liars_is_not_convicted(*, places_itself: bool) -> None:
    """Of 256 nodes twelve may lie, and only the four nodes of this leaf declare it."""
    passed = [ran(f"n{n}", f"n{n + 1}") for n in range(4, 256, 2)]
    bad = [ran(f"n{n}", f"n{n + 100}", at=0.3) for n in range(4)]
    sites = fleet(256, leaf_of=4, places_itself=places_itself)
    inside = [ran("n0", "n1", at=0.3), ran("n2", "n3", at=0.3)]
    diagnosis = diagnosed(sites, *passed, *bad, *inside, alone=False)
    assert culprits(diagnosis) == (set() if places_itself else {(Part.LEAF, "leaf0")})


def test_a_leaf_of_bad_nodes_looks_like_a_bad_switch() -> None:
    """If the check tells nothing about a node alone: all three nodes of a leaf crash with everyone."""
    sites = fleet(12, leaf_of=3)
    passed = [ran(f"n{n}", f"n{n + 3}") for n in (3, 4, 5)] + [ran("n9", "n10"), ran("n10", "n11")]
    bad = [failed("n0", "n3"), failed("n1", "n4"), failed("n2", "n5"), failed("n0", "n1")]
    assert culprits(diagnosed(sites, *passed, *bad, alone=False)) == {(Part.LEAF, "leaf0")}


def test_the_runs_against_a_leaf_are_told_in_the_same_order_each_time() -> None:
    """By the order of its nodes, which is the same in every process, unlike that of a set."""
    inside = [ran("a3", "a4", at=0.3), ran("a2", "a3", at=0.3), ran("a1", "a2", at=0.3)]
    (culprit,) = diagnosed(THREE_LEAVES, *PASSED, *OUTSIDE, *inside, *ALONE).culprits
    assert culprit.runs == (*reversed(inside), *OUTSIDE)


def test_a_node_that_is_convicted_itself_is_not_behind_its_leaf() -> None:
    """Its own fault is known."""
    sites = {**THREE_LEAVES, "a5": Site("a5", "rack-a", "a")}
    diagnosis = diagnosed(sites, *PASSED, *OUTSIDE, *INSIDE, *ALONE, failed("a5"))
    assert culprits(diagnosis) == {(Part.LEAF, "a"), (Part.NODE, "a5")}
    assert diagnosis.leaves.behind == {*A}


def test_what_a_switch_lets_through_is_the_same_inside_and_outside() -> None:
    """The link of a1 hangs, and the others are slow because their runs shared links."""
    sites = fleet(12, leaf_of=3)
    passed = [ran(f"n{n}", f"n{n + 3}") for n in range(3, 9)]
    alone = [ran(f"n{n}") for n in (0, 1, 2, 3, 4, 5)]
    slow = [ran("n1", "n4", at=0.3), ran("n2", "n5", at=0.3)]
    hangs = diagnosed(sites, *passed, *alone, *slow, failed("n0", "n3"), failed("n0", "n1"))
    assert hangs.leaves.convicted == {}
    alike = diagnosed(sites, *passed, *alone, *slow, ran("n0", "n3", at=0.3), ran("n0", "n1", at=0.3))
    assert {*alike.leaves.convicted} == {"leaf0"}
