"""Which nodes are excused because one switch that they share may be the cause."""

from dataclasses import replace
from itertools import cycle, pairwise, starmap

import pytest
from tests.coordinator.localize.runs import culprits, diagnosed, nowhere, ran

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.rules.one_switch import alike
from muster_coordinator.model.probes import GroupRun, Site


@pytest.mark.parametrize(
    ("sites", "convicted"),
    [
        pytest.param(nowhere("abcdefghijk"), set(), id="no leaf known"),
        pytest.param(
            {node: Site(node, leaf=node if node in "ab" else "x") for node in "abcdefghijk"},
            set(),
            id="each at a leaf of its own",
        ),
        pytest.param(
            {node: Site(node, leaf="x" if node in "acd" else None) for node in "abcdefghijk"},
            {"a", "b"},
            id="one of them beside healthy nodes",
        ),
    ],
)
def test_a_switch_without_other_nodes_may_be_what_two_nodes_share(sites: dict[str, Site], convicted: set) -> None:
    """Both fail with everyone, and reach the same."""
    bad: list[GroupRun] = [ran(node, partner, at=0.5) for node in "ab" for partner in "cdef"]
    passed = [ran(*pair) for pair in pairwise("cdefghijk")]
    assert diagnosed(sites, *passed, *bad, alone=False).convicted == convicted


def test_of_many_failing_nodes_two_are_alike_by_chance() -> None:
    """A quarter of them has to be."""
    apart = {f"n{number}": 1.3**number for number in range(10)}
    assert alike({**apart, "x": 1.3**3, "y": 100.0}, {}) == frozenset()
    assert alike({"n1": 1.0, "x": 1.0, "y": 100.0}, {}) == {"n1", "x"}


Rails = tuple[float, ...]


def rails(*slow: int) -> Rails:
    """Of eight rails, these are slow."""
    return tuple(0.5 if rail in slow else 1.5 for rail in range(8))


@pytest.mark.parametrize(
    ("of_a", "of_b", "named"),
    [
        pytest.param([rails(0)], [rails(3)], {"a", "b"}, id="other rails"),
        pytest.param([rails(0)], [rails(*range(8))], {"a", "b"}, id="a rail, and the whole link"),
        pytest.param([rails(0)], [rails(0)], set(), id="the same rail"),
        pytest.param([rails(0)], [rails(0), rails(0, 3)], set(), id="the same rail, and another one in some runs"),
        pytest.param([rails(0)], [()], set(), id="no run on separate rails"),
    ],
)
def test_nodes_whose_slow_rails_differ_share_no_bad_switch(of_a: list[Rails], of_b: list[Rails], named: set) -> None:
    """Nobody has declared leaves, and both reach the same with everyone."""
    of_nodes = (("a", cycle(of_a)), ("b", cycle(of_b)))
    failing = [ran(node, other, at=0.5, rails=next(of)) for node, of in of_nodes for other in "cdef"]
    passed = [ran(*pair) for pair in pairwise("cdefghijk")]
    alone = [ran(node) for node in "abcd"]
    assert diagnosed(nowhere("abcdefghijk"), *passed, *failing, *alone).convicted == named


FOUR_LEAVES = {f"{leaf}{number}": Site(f"{leaf}{number}", leaf=leaf) for leaf in "abcd" for number in range(1, 6)}
OTHERS_PASS = [*starmap(ran, pairwise(node for node in FOUR_LEAVES if node[0] in "abc" and node != "a4"))]
ALONE = [ran(node, at=2.0) for node in ("a4", "a1", "b1", "c1")]


@pytest.mark.parametrize(("later", "named"), [(1.5, True), (0.52, False)])
def test_nodes_that_reach_more_elsewhere_are_not_behind_a_bad_switch(later: float, *, named: bool) -> None:
    """All nodes of leaf d crossed its uplinks at once, and reached what the link of a4 lets through."""
    crossed = [ran(f"d{number}", f"{leaf}{number}", at=0.5) for number, leaf in enumerate("bcb", start=1)]
    inside = [ran("d1", "d2"), ran("d2", "d3"), ran("d4", "d5")]
    again = [ran(f"d{number}", f"{leaf}5", at=later) for number, leaf in enumerate("bca", start=1)]
    bad = [ran("a4", other, at=0.5) for other in ("a1", "a2", "b4", "c4")]
    found = culprits(diagnosed(FOUR_LEAVES, *OTHERS_PASS, *crossed, *inside, *again, *bad, *ALONE))
    assert ((Part.NODE_LINK, "a4") in found) == named


@pytest.mark.parametrize(("met", "named"), [("d1", True), ("d5", False)], ids=["passes inside", "has not run inside"])
def test_a_node_that_fails_where_others_pass_is_not_behind_their_uplinks(met: str, *, named: bool) -> None:
    """All nodes of leaf d crossed its uplinks at once. a4 fails with one of them, so it does not stand at leaf d."""
    crossed = [ran(f"d{number}", f"{leaf}{number}", at=0.5) for number, leaf in enumerate("bcb", start=1)]
    inside = [ran("d1", "d2"), ran("d2", "d3"), ran("d5", "b5")]
    bad = [ran("a4", other, at=0.5) for other in ("a1", "a2", "b4", met)]
    found = culprits(diagnosed(FOUR_LEAVES, *OTHERS_PASS, *crossed, *inside, *bad, *ALONE))
    assert ((Part.NODE_LINK, "a4") in found) == named


@pytest.mark.parametrize(("failing", "named"), [("x1", False), ("b4", True)], ids=["x1 fails there", "b4 fails there"])
def test_two_wrong_labels_do_not_clear_a_bad_leaf(failing: str, *, named: bool) -> None:
    """a4 stands at leaf d, whose switch is bad. x1 and x2 have its label and pass, but fail with nodes of leaf d."""
    sites = {**FOUR_LEAVES, **{node: Site(node, leaf="d") for node in ("x1", "x2")}}
    behind = [ran(f"d{number}", other, at=0.5) for number in range(1, 6) for other in ("b1", "c2")]
    passed = [ran("x1", "x2"), ran("x2", "c3"), ran("x1", "b3")]
    failed = [ran(failing, "d1", at=0.5), ran("x2", "d2", at=0.5)]
    bad = [ran("a4", other, at=0.5) for other in ("a1", "a2", "b4", "x1")]
    found = culprits(diagnosed(sites, *OTHERS_PASS, *behind, *passed, *failed, *bad, *ALONE))
    assert ((Part.NODE_LINK, "a4") in found) == named


def test_the_rails_of_a_node_do_not_show_beside_a_worse_link() -> None:
    """Node a lacks rail 0 and b the whole link. Run together, all rails are as slow as those of b."""
    of_nodes = (("a", rails(0)), ("b", rails(*range(8))))
    failing = [ran(node, other, rails=of) for node, of in of_nodes for other in "cdef"]
    together = ran("a", "b", rails=rails(*range(8)))
    passed = [ran(*pair) for pair in pairwise("cdefghijk")]
    alone = [ran(node) for node in "abcd"]
    assert diagnosed(nowhere("abcdefghijk"), *passed, *failing, together, *alone).convicted == {"a", "b"}


HEALTHY = [f"{leaf}{number}" for number in (1, 2, 3, 4) for leaf in "abc"]
SITES = {
    **{node: Site(node, leaf=node[0]) for node in HEALTHY},
    **{f"d{number}": Site(f"d{number}", leaf="d") for number in (1, 2, 3)},
    **{node: Site(node) for node in ("x", "y", "z")},
}
"""Three healthy leaves, leaf d with three nodes, and three nodes whose leaves are unknown."""


def rounds_of(**reached: tuple[float, ...]) -> list[GroupRun]:
    """What each node has reached in each round, with a healthy node; in no later rounds."""
    partners = cycle(HEALTHY)
    return [
        replace(ran(node, next(partners), at=at), round=number, beside=len(reached) - 1)
        for node, levels in reached.items()
        for number, at in enumerate(levels, start=1)
    ]


@pytest.mark.parametrize(
    ("reached", "named"),
    [
        pytest.param({"x": (0.5, 0.46, 0.43, 0.41)}, True, id="alone"),
        pytest.param({"x": (0.5, 0.46, 0.43, 0.41), "d1": (0.5, 0.46, 0.43, 0.7)}, False, id="one that varies alike"),
        pytest.param({"x": (0.5, 0.46, 0.43, 0.41), "d1": (0.5, 0.6, 0.6, 0.7)}, True, id="one that varies otherwise"),
        pytest.param({"x": (0.5, 0.5, 0.5, 0.5), "d1": (0.5, 0.5, 0.5, 0.8)}, True, id="one that does not vary"),
        pytest.param(
            {"x": (0.5, 0.5, 0.5, 0.5), "d1": (0.5, 0.5, 0.8), "d2": (0.5, 0.5, 0.9)}, True, id="two, too rarely"
        ),
        pytest.param(
            {"x": (0.5, 0.42, 0.42, 0.42), "d1": (0.5, 0.42), "d2": (0.5, 0.42, 0.7)}, True, id="one, too rarely"
        ),
        pytest.param({"x": (0.5, 0.42, 0.42, 0.42), "d1": (0.5, 0.42), "d2": (0.5, 0.42)}, False, id="two of a leaf"),
        pytest.param({"x": (0.5, 0.42, 0.42, 0.42), "y": (0.5, 0.42, 0.6, 0.7)}, True, id="one at an unknown leaf"),
        pytest.param({"d1": (0.5,) * 4, "x": (0.5, 0.5), "y": (0.5, 0.5)}, False, id="two at unknown leaves"),
    ],
)
def test_a_node_that_keeps_pace_with_others_may_share_their_switch(
    reached: dict[str, tuple[float, ...]], *, named: bool
) -> None:
    """Its label is missing or wrong. Nodes of different switches reach the same in one round or another only."""
    alone = [ran(node, at=2.0) for node in ("x", "d1", "a1", "b1", "c1")]
    diagnosis = diagnosed(SITES, *starmap(ran, pairwise(HEALTHY)), *rounds_of(**reached), *alone)
    assert ((Part.NODE_LINK, next(iter(reached))) in culprits(diagnosis)) == named


@pytest.mark.parametrize(("suspects", "named"), [(2, True), (3, False)])
def test_few_of_a_leaf_that_keep_pace_with_a_node_do_so_by_chance(suspects: int, *, named: bool) -> None:
    """Of twelve nodes at leaf e, a quarter must: a large fleet has bad links that let through the same."""
    crowd = [f"e{number}" for number in range(12)]
    sites = {**SITES, **{node: Site(node, leaf="e") for node in crowd}}
    failing = ["x", *crowd[:suspects]]
    bad = rounds_of(**dict.fromkeys(failing, (0.5, 0.5, 0.5, 0.5)))
    passed = starmap(ran, pairwise([*HEALTHY, *crowd[suspects:]]))
    alone = [ran(node, at=2.0) for node in (*failing, "a1", "b1", "c1")]
    assert ((Part.NODE_LINK, "x") in culprits(diagnosed(sites, *passed, *bad, *alone))) == named
