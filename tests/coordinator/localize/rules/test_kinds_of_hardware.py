"""What is convicted in a fleet with several kinds of hardware, and what falls just short of it."""

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import culprits, diagnosed, ran

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.significance import controls_needed, liars_among_peers, liars_may_explain
from muster_coordinator.model.probes import GroupRun, Site


def at_leaves(**leaves: str) -> dict[str, Site]:
    """Nodes of each leaf, such as `a="new new old"`: a0 and a1 are new, a2 is old."""
    places = [(f"{leaf}{n}", leaf, kind) for leaf, kinds in leaves.items() for n, kind in enumerate(kinds.split())]
    return {node: Site(node, leaf=leaf, hardware_kind=kind) for node, leaf, kind in places}


@cases(
    ("nodes", "peers", "liars", "partners"),
    [(64, 64, 3, 4), (64, 32, 3, 4), (64, 16, 1, 2), (64, 4, 1, 2), (1024, 512, 51, 6), (1024, 64, 6, 5)],
)
def test_twice_the_share_of_a_kind_may_lie(nodes: int, peers: int, liars: int, partners: int) -> None:
    """Nodes say themselves what they are; but no more of them lie than of the whole fleet."""
    assert liars_among_peers(nodes, peers) == liars
    drawn = [(1, peers - 1)] * partners
    assert not liars_may_explain(nodes, drawn, peers=peers)
    assert liars_may_explain(nodes, drawn[1:], peers=peers)
    assert controls_needed(nodes, peers) <= partners


MIXED = at_leaves(a="new old old old", b="new new new old", c="new new new old", d="old old old old")
NEW_PASSED = [ran("b0", "c0", at=400.0), ran("b1", "b2", at=400.0), ran("c1", "c2", at=400.0)]
BAD = [ran("a0", partner, at=160.0) for partner in ("b0", "c1", "b2")]


@pytest.mark.parametrize(("old", "expected"), [(165.0, set()), (200.0, {(Part.NODE_LINK, "a0")})])
def test_a_node_alone_of_its_kind_at_a_leaf_may_have_a_bad_switch(old: float, expected: set) -> None:
    """Unless others there have reached more than it: their switch lets through more than its link does."""
    passed = [ran("a1", "b3", at=old), ran("a2", "c3", at=old), ran("a3", "d0", at=old), ran("d1", "d2", at=old)]
    alone = [ran(node, at=3600.0) for node in ("a0", "b1", "c0", "c2")]
    assert culprits(diagnosed(MIXED, *NEW_PASSED, *passed, *BAD, *alone)) == expected


def test_what_others_reach_inside_the_leaf_of_such_a_node_tells_nothing_about_its_uplinks() -> None:
    """All that leaves leaf a is as slow as the new node is. Its old ones reach more among themselves."""
    passed = [
        ran("a1", "a2", at=200.0),
        ran("a3", "d0", at=165.0),
        ran("d1", "d2", at=200.0),
        ran("b3", "c3", at=200.0),
    ]
    alone = [ran(node, at=3600.0) for node in ("a0", "b1", "c0", "c2")]
    assert culprits(diagnosed(MIXED, *NEW_PASSED, *passed, *BAD, *alone)) == set()


def test_a_node_alone_of_its_kind_at_a_leaf_fails_at_two_leaves() -> None:
    """At one, the path to that leaf may be bad."""
    passed = [ran("a1", "b3", at=200.0), ran("a2", "c3", at=200.0), ran("a3", "d0", at=200.0)]
    bad = [ran("a0", partner, at=160.0) for partner in ("b0", "b1", "b2")]
    alone = [ran(node, at=3600.0) for node in ("a0", "b1", "c0", "c2")]
    assert culprits(diagnosed(MIXED, *NEW_PASSED, *passed, *bad, *alone)) == set()


LEAVES = at_leaves(
    a="new new new new old old old old", b="new new new new old old old old", c="new new new new old old old old"
)


@pytest.mark.parametrize(("old", "expected"), [(175.0, {(Part.LEAF, "a")}), (200.0, set())])
def test_a_switch_may_let_through_what_old_nodes_need(old: float, expected: set) -> None:
    """They clear it only if they have reached clearly more than the new ones that fail."""
    elsewhere = [ran(f"b{n}", f"c{n}", at=400.0 if n < 4 else 200.0) for n in range(8)]
    outside = [ran(f"a{n}", f"b{n}", at=170.0) for n in range(4)]
    inside = [ran("a0", "a1", at=170.0), ran("a2", "a3", at=170.0), ran("a4", "a5", at=old), ran("a6", "a7", at=old)]
    alone = [ran(node, at=3600.0) for node in ("a0", "a1", "a2", "a3", "b0", "c0")]
    assert culprits(diagnosed(LEAVES, *elsewhere, *outside, *inside, *alone)) == expected


def across(one: str, other: str, *, at: float, numbers: range) -> list[GroupRun]:
    return [ran(f"{one}{n}", f"{other}{n}", at=at) for n in numbers]


@pytest.mark.parametrize(("kind", "expected"), [(range(4, 8), {(Part.PATH, "a c")}), (range(4), set())])
def test_a_good_run_clears_a_path_for_its_own_kind(kind: range, expected: set) -> None:
    """The path lets through what old nodes need, and new ones fail across it."""
    new, old = range(4), range(4, 8)
    passed = [run for leaf in "ac" for run in across(leaf, "b", at=400.0, numbers=new)]
    passed += [run for leaf in "ac" for run in across(leaf, "b", at=200.0, numbers=old)]
    good = ran(f"a{kind[1]}", f"c{kind[0]}", at=400.0 if kind == new else 200.0)
    bad = across("a", "c", at=240.0, numbers=new)
    assert culprits(diagnosed(LEAVES, *passed, *bad, good)) == expected


def test_nodes_of_one_kind_that_are_slow_alike_have_something_in_common() -> None:
    """A quarter of the new nodes is slower than the others. What old nodes reach does not matter."""
    sites = {f"{kind}{n}": Site(f"{kind}{n}", hardware_kind=kind) for kind in ("new", "old") for n in range(16)}
    pairs = [(f"{kind}{n}", f"{kind}{n + 1}") for kind in ("new", "old") for n in range(0, 16, 2)]
    slow = {f"new{n}" for n in range(4)}
    runs = [ran(*pair, at=200.0 if pair[0] in slow or "old" in pair[0] else 400.0) for pair in pairs]
    alone = [ran(f"new{n}", at=1800.0 if n < 4 else 3600.0) for n in range(8)]
    diagnosis = diagnosed(sites, *runs, *alone)
    assert diagnosis.evidence.hardware.slow_alike == dict.fromkeys(slow, "new at 50% of normal")
    assert diagnosis.culprits == ()


BY_LEAF = at_leaves(a="new new new new", b="new new new new", c="old old old old", d="old old old old")
OF_ONE_KIND = [
    ran(f"{one}{n}", f"{other}{n}", at=at)
    for one, other, at in (("a", "b", 400.0), ("c", "d", 200.0))
    for n in range(4)
]


@pytest.mark.parametrize(("elsewhere", "expected"), [(200.0, {(Part.PATH, "a c")}), (160.0, set())])
def test_a_path_between_kinds_is_compared_with_the_slower_one(elsewhere: float, expected: set) -> None:
    """Unless all pairs of both kinds are slower than it: then they exchange in another way, and no path is bad."""
    bad = [ran(f"a{n}", f"c{n}", at=160.0) for n in range(4)]
    others = [ran("a0", "d0", at=elsewhere), ran("b0", "c1", at=elsewhere), ran("b1", "d1", at=elsewhere)]
    assert culprits(diagnosed(BY_LEAF, *OF_ONE_KIND, *bad, *others)) == expected
