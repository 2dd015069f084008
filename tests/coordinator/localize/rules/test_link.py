"""Which nodes have a bad link or rail, and what falls just short of it."""

from dataclasses import replace
from itertools import pairwise

import pytest
from tests.coordinator.localize.runs import THREE_LEAVES, culprits, diagnosed, failed, fleet, nowhere, ran

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.wording.missing_evidence import missing_evidence
from muster_coordinator.model.probes import GroupRun, Site

PASSED = [ran("a1", "b1"), ran("a2", "b2"), ran("a3", "c1"), ran("b3", "c2"), ran("b4", "c3")]


def test_slow_rails_need_no_run_alone() -> None:
    """A node that is slow in itself is slow on all its rails."""
    rails = (1.5, 1.5, 0.3, 1.5)
    bad = [ran("a4", "c4", at=0.3), ran("a1", "a4", rails=rails), ran("a4", "b1", rails=rails)]
    bad.append(ran("a4", "c2", rails=rails))
    assert culprits(diagnosed(THREE_LEAVES, *PASSED, *bad)) == {(Part.RAIL, "a4")}


@pytest.mark.parametrize(
    ("alone", "with_others", "part"),
    [(0.9, 0.7, Part.NODE), (1.1, 0.7, Part.NODE_LINK), (0.9, 0.3, Part.NODE_LINK)],
)
def test_a_node_that_is_nearly_as_slow_alone_is_bad_itself(alone: float, with_others: float, part: Part) -> None:
    """Runs differ so much that 0.9 of 1.5 is not slow. That is nearer to 0.7 than to normal, and farther from 0.3."""
    noisy = [ran(*run.members, at=at) for run, at in zip(PASSED, (1.9, 1.7, 1.5, 1.4, 1.3), strict=True)]
    bad = [ran("a4", partner, at=with_others) for partner in ("c4", "a1", "b1", "c2", "b2")]
    controls = [ran(node) for node in ("c1", "c3", "a3")]
    found = diagnosed(THREE_LEAVES, *noisy, ran("c4", "b2", at=1.4), *bad, ran("a4", at=alone), *controls)
    assert culprits(found) == {(part, "a4")}


def test_a_link_that_hangs_is_named() -> None:
    """Its node is as fast alone as noise allows, and reaches nothing with others."""
    hanging = [failed("a4", partner) for partner in ("c4", "a1", "b1", "c2")]
    alone = [ran("a4", at=1.48), *map(ran, ("b2", "c1"))]
    assert culprits(diagnosed(THREE_LEAVES, *PASSED, *hanging, *alone)) == {(Part.NODE_LINK, "a4")}


@pytest.mark.parametrize("leaf", [None, "d"])
@pytest.mark.parametrize("busy", [False, True])
def test_where_links_are_busy_no_link_of_a_node_alone_at_its_leaf_is_convicted(leaf: str | None, *, busy: bool) -> None:
    """What a4 reaches may be what the uplinks of its leaf let through."""
    sites = {**THREE_LEAVES, "a4": replace(THREE_LEAVES["a4"], leaf=leaf)}
    others = [ran("a1", "c1", at=0.5), ran("b2", "c2", at=0.5)] if busy else []
    passed = [*PASSED, *(ran(*pair) for pair in (("a1", "c4"), ("b2", "c1"), ("b1", "c2")))]
    bad = [ran("a4", partner, at=0.3) for partner in ("a2", "a3", "b1", "b4", "c1", "c3")]
    alone = [ran("a4"), ran("a2"), ran("b1"), ran("c1")]
    diagnosis = diagnosed(sites, *passed, *others, *bad, *alone)
    assert diagnosis.nodes.ratios.are_links_busy is busy
    assert culprits(diagnosis) == (set() if busy else {(Part.NODE_LINK, "a4")})
    assert ("declare which nodes share its leaf" in missing_evidence(diagnosis).get("a4", "")) is busy


def test_a_run_of_two_bad_links_is_evidence_against_neither() -> None:
    """The other one explains it."""
    both = ran("a4", "c4", at=0.3)
    bad = [ran(*pair, at=0.3) for pair in (("a4", "a1"), ("a4", "b1"), ("c4", "c1"), ("c4", "b2"))]
    more = [ran("a4", "c2", at=0.3), ran("c4", "a2", at=0.3)]
    diagnosis = diagnosed(THREE_LEAVES, *PASSED, ran("c1", "b4"), both, *bad, *more, alone=False)
    assert diagnosis.convicted == {"a4", "c4"}
    assert all(both not in culprit.runs for culprit in diagnosis.culprits)


@pytest.mark.parametrize(("third", "convicted"), [(None, set()), ("f", {"a"})])
def test_more_partners_are_asked_for_where_there_are_many_sides(third: str | None, convicted: set) -> None:
    """Nothing says which of six pairs share a leaf: two partners may stand behind one bad path, three hardly do.

    The third one is enough although three other sides are untried.
    """
    sides = [ran(*pair) for pair in ("bc", "de", "fg", "hi", "jk", "lm")]
    bad = [ran("a", partner, at=0.3) for partner in ("b", "d", third) if partner is not None]
    assert diagnosed(nowhere("abcdefghijklm"), *sides, *bad, alone=False).convicted == convicted


def test_of_three_nodes_no_more_partners_are_asked_for_than_there_are() -> None:
    """Although one bad run was slow and the other failed."""
    runs = [ran("a", "b", at=0.3), failed("a", "c"), ran("b", "c")]
    assert diagnosed(nowhere("abc"), *runs, alone=False).convicted == {"a"}


def test_a_node_that_has_passed_with_others_has_no_bad_link() -> None:
    """The paths between the leaves of a, c and e are bad. All three nodes pass with g, across other paths."""
    passed = [ran(node, "g") for node in "ace"] + [ran(*pair) for pair in ("gh", "bh", "dh", "fh")]
    bad = [ran(*pair, at=0.5) for pair in ("ac", "ae", "ce")]
    diagnosis = diagnosed(nowhere("abcdefgh"), *passed, *bad, alone=False)
    assert diagnosis.convicted == frozenset()
    assert len(diagnosis.paths.never_good) == 3


def test_a_run_alone_that_nobody_can_compare_clears_no_node() -> None:
    """Of three nodes, a is slow with both others. Whether its link or it itself is slow, one run alone cannot tell."""
    pairs = [ran("a", "b", at=0.3), ran("a", "c", at=0.3), ran("b", "c")]
    assert culprits(diagnosed(nowhere("abc"), *pairs, ran("a"))) == {(Part.NODE, "a")}


@pytest.mark.parametrize(("at", "needed"), [(1.1, 3), (0.2, 2)])
def test_few_runs_that_are_barely_slow_need_a_third(at: float, needed: int) -> None:
    """Noise explains two of them as long as nobody knows how much runs differ. It does not explain a great loss."""
    passed = [ran("c", "d"), ran("e", "b")]
    bad = [ran("a", partner, at=at) for partner in "bcd"]
    convicted = [diagnosed(nowhere("abcde"), *passed, *bad[:count], alone=False).convicted for count in (1, 2, 3)]
    assert convicted == [{"a"} if count >= needed else set() for count in (1, 2, 3)]


def sharing(*bad: GroupRun) -> Diagnosis:
    """Of 64 nodes at four leaves whose runs share links: pairs across, pairs inside, control pairs, these runs."""
    sites = fleet(64, leaf_of=16, places_itself=False)
    across = [replace(ran(f"n{node}", f"n{node + 32}", at=200.0), beside=31) for node in range(32)]
    inside = [ran(f"n{node}", f"n{node + 1}", at=400.0) for node in range(2, 64, 2)]
    controls = [ran("n20", "n40", at=400.0), ran("n22", "n42", at=400.0)]
    alone = [ran(f"n{node}", at=450.0) for node in (0, 1, 20, 40, 22, 42)]
    return diagnosed(sites, *across, *inside, *controls, *alone, *bad)


def test_a_link_as_fast_as_all_were_while_many_groups_ran_is_convicted() -> None:
    """The runs of many groups share links, and are slow without a fault."""
    partners = ("n2", "n3", "n21", "n41", "n23", "n43")
    assert culprits(sharing(*(ran("n0", partner, at=240.0) for partner in partners))) == {(Part.NODE_LINK, "n0")}


def test_two_bad_links_of_a_large_leaf_may_be_alike() -> None:
    """A bad switch, or wrong labels, would make a quarter of the leaf fail alike."""
    bad = [
        ran(node, partner, at=240.0)
        for node, partners in (("n0", (4, 6, 21, 41, 23, 43)), ("n1", (5, 7, 25, 45, 27, 47)))
        for partner in (f"n{number}" for number in partners)
    ]
    assert culprits(sharing(*bad)) == {(Part.NODE_LINK, "n0"), (Part.NODE_LINK, "n1")}


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param((), set(), id="a4 may have a wrong label, and the switch may be bad"),
        pytest.param((ran("a1", "a3", at=0.3),), {(Part.NODE_LINK, "a1")}, id="two of its leaf fail with it"),
        pytest.param((ran("a3", "b3"),), {(Part.NODE_LINK, "a1")}, id="another of its leaf passes across leaves"),
    ],
)
def test_a_link_is_not_convicted_by_one_label_alone(others: tuple[GroupRun, ...], expected: set) -> None:
    """Nodes 2 and 3 of leaf a are there, and have shown nothing across leaves yet."""
    passed = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a2", "a3"), ran("a4", "b4"), ran("b1"), ran("b2")]
    bad = [ran("a1", partner, at=0.3) for partner in ("a4", "b1", "c2")]
    assert culprits(diagnosed(THREE_LEAVES, *passed, ran("a1"), *bad, *others)) == expected


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ((0.3, 0.3), {(Part.NODE_LINK, "a1")}),
        ((0.3, 0.45), set()),
        ((0.3, 0.3, 0.1), {(Part.NODE_LINK, "a1")}),
        ((0.3, 0.3, 0.45), set()),
    ],
)
def test_what_varies_inside_its_leaf_may_be_a_wrong_label(inside: tuple[float, ...], expected: set) -> None:
    """A bad link lets through the same unless a run straggles. What crosses uplinks that others use does not."""
    passed = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a2", "b1"), ran("a3", "c1"), ran("b1"), ran("b2")]
    bad = [ran("a1", f"a{number}", at=at) for number, at in enumerate(inside, start=2)]
    found = diagnosed(THREE_LEAVES, *passed, ran("a4", "b4"), ran("a1"), *bad, ran("a1", "b2", at=0.3))
    assert culprits(found) == expected


def test_a_node_that_fails_at_one_leaf_only_may_stand_across_a_bad_path() -> None:
    """The label says leaf a, and it may be wrong. A partner at another leaf tells."""
    passed = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a2", "b1"), ran("a3", "c1"), ran("b1"), ran("b2")]
    bad = [ran("a1", partner, at=0.3) for partner in ("a2", "a3", "a4")]
    assert culprits(diagnosed(THREE_LEAVES, *passed, ran("a4", "c3"), ran("a1"), *bad)) == set()
    found = diagnosed(THREE_LEAVES, *passed, ran("a4", "c3"), ran("a1"), *bad, ran("a1", "b2", at=0.3))
    assert culprits(found) == {(Part.NODE_LINK, "a1")}


def test_two_partners_across_one_bad_path_convict_no_link() -> None:
    """One of them has the label of leaf a by mistake. A partner at a third leaf tells."""
    passed = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a2", "b1"), ran("a3", "b2"), ran("a4", "c3")]
    alone = [ran(node) for node in ("a1", "b1", "b2")]
    bad = [ran("a1", partner, at=0.0001) for partner in ("a4", "c2", "c4")]
    assert culprits(diagnosed(THREE_LEAVES, *passed, *alone, *bad)) == set()
    found = diagnosed(THREE_LEAVES, *passed, *alone, *bad, ran("a1", "b3", at=0.0001))
    assert culprits(found) == {(Part.NODE_LINK, "a1")}


@pytest.mark.parametrize(("last", "expected"), [(0.32, {(Part.NODE_LINK, "a1")}), (0.45, set())])
def test_what_a_node_without_a_label_reaches_must_not_vary(last: float, expected: set) -> None:
    """Its leaf may have few uplinks, and others use them now and then."""
    sites = {**THREE_LEAVES, "a1": Site("a1")}
    passed = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a2", "b1"), ran("a3", "b2"), ran("b1"), ran("b2")]
    bad = [ran("a1", partner, at=at) for partner, at in (("b3", 0.3), ("c2", 0.3), ("b4", 0.31), ("c1", last))]
    assert culprits(diagnosed(sites, *passed, ran("a4", "c3"), ran("a1"), *bad)) == expected


@pytest.mark.parametrize("passed_beside_it", [False, True])
def test_a_link_of_a_large_leaf_is_convicted_only_beside_a_pair_that_passes_there(passed_beside_it: bool) -> None:
    """By chance, the switch of the leaf may have been bad whenever the node ran again after a straggling run."""
    sites = fleet(64, leaf_of=16, places_itself=False)
    first = [ran(f"n{node}", f"n{node + 32}", at=1.5 if node else 0.5) for node in range(32)]
    alone = [ran(f"n{node}") for node in (0, 20, 40, 60)]
    bad = [ran("n0", partner, at=0.6) for partner in ("n2", "n21", "n41", "n23")]
    others = ("n4", "n5") if passed_beside_it else ("n17", "n18")
    later = [replace(run, round=2 + number) for number, run in enumerate((*bad, ran(*others)))]
    beside = replace(later.pop(), round=3)
    expected = {(Part.NODE_LINK, "n0")} if passed_beside_it else set()
    assert culprits(diagnosed(sites, *first, ran("n32", "n33"), *alone, *later, beside)) == expected


def test_a_rail_is_named_that_is_slow_in_most_runs() -> None:
    """Another one was slow once, because connections met on one way."""
    slow, slow_twice = (1.5, 1.5, 0.4, 1.5, 1.5, 1.5), (1.5, 0.7, 0.4, 1.5, 1.5, 1.5)
    bad = [ran("a1", partner, rails=rails) for partner, rails in (("a2", slow), ("b1", slow_twice), ("c2", slow))]
    passed = [ran(*pair) for pair in (("a2", "b2"), ("b1", "c1"), ("c2", "b3"))]
    (culprit,) = diagnosed(THREE_LEAVES, *passed, *bad).culprits
    assert (culprit.part, culprit.rails) == (Part.RAIL, (2,))


@pytest.mark.parametrize(
    ("elsewhere", "named"),
    [
        pytest.param((), False, id="n0 may have a wrong label, and a path may be bad"),
        pytest.param((0.67, 0.68), True, id="it reaches as little with other leaves"),
        pytest.param((0.67, 0.75), False, id="it has reached what links between leaves carry"),
        pytest.param((0.7, 0.7), False, id="it has reached more with other leaves"),
    ],
)
def test_links_between_leaves_may_hide_what_a_link_lacks(elsewhere: tuple[float, ...], *, named: bool) -> None:
    """They carry 75 %. n0 is slow with others of its leaf, and too fast to be slow with those of other leaves."""
    inside = [ran(f"n{node}", f"n{node + 1}", at=1.0) for node in range(2, 64, 2) if node % 16 < 8 and node % 16]
    across = [ran(f"n{node}", f"n{node + 16}", at=0.75) for node in range(64) if node % 16 >= 8 and node % 32 < 16]
    bad = [ran("n0", f"n{node}", at=0.62) for node in (2, 4, 6)]
    hidden = [ran("n0", f"n{node}", at=at) for node, at in zip((20, 40), elsewhere, strict=False)]
    alone = [ran(f"n{node}", at=1.2) for node in range(0, 64, 4)]
    found = diagnosed(fleet(64, leaf_of=16), *inside, *across, *bad, *hidden, *alone)
    assert culprits(found) == ({(Part.NODE_LINK, "n0")} if named else set())


@pytest.mark.parametrize("passed_beside_it", [False, True])
def test_runs_with_other_leaves_that_hide_a_link_have_controls_too(*, passed_beside_it: bool) -> None:
    """Links between leaves carry 75 %. Others of the leaf of n0 pass while it reaches no more with other leaves."""
    inside = [ran(f"n{node}", f"n{node + 1}", at=1.0) for node in range(2, 64, 2) if node % 16 < 8 and node % 16]
    across = [ran(f"n{node}", f"n{node + 16}", at=0.75) for node in range(64) if node % 16 >= 8 and node % 32 < 16]
    bad = [replace(ran("n0", f"n{node}", at=0.62), round=node) for node in (2, 4, 6)]
    hidden = [replace(ran("n0", f"n{node}", at=0.67), round=node) for node in (20, 40)]
    alone = [ran(f"n{node}", at=1.2) for node in range(0, 64, 4)]
    first, then = (20, 40) if passed_beside_it else (21, 41)
    beside = [replace(ran("n8", f"n{node + 1}", at=1.0), round=round_) for node, round_ in ((8, first), (10, then))]
    found = diagnosed(fleet(64, leaf_of=16), *inside, *across, *bad, *hidden, *alone, *beside)
    assert culprits(found) == ({(Part.NODE_LINK, "n0")} if passed_beside_it else set())


@pytest.mark.parametrize(
    ("partners", "better", "named"),
    [
        pytest.param(("b1", "c1", "b2", "c2"), ("a1", "a2"), True, id="two others of its leaf are faster"),
        pytest.param(("b1", "c1", "b2", "c2"), ("a1",), False, id="one other may have a wrong label"),
        pytest.param(("b1", "b2", "b3", "b4"), ("a1", "a2"), False, id="one path may be bad"),
    ],
)
def test_a_link_is_named_without_a_partner_of_its_leaf(
    partners: tuple[str, ...], better: tuple[str, ...], *, named: bool
) -> None:
    """No other node of its leaf is left to meet it, and some reach more with the leaves where it fails."""
    passed = [ran(node, f"{leaf}{place}") for place, node in enumerate(better, start=3) for leaf in "bc"]
    passed += [ran("a2", "a3"), *(ran(*pair) for pair in pairwise(["b1", "c1", "b2", "c2", "b3", "c3", "b4", "c4"]))]
    bad = [ran("a4", partner, at=0.4) for partner in partners]
    alone = [ran(node) for node in ("a4", "b1", "c1")]
    found = culprits(diagnosed(THREE_LEAVES, *passed, *alone, *bad))
    assert ((Part.NODE_LINK, "a4") in found) == named


@pytest.mark.parametrize(("at_leaf", "named"), [(("a2",), False), (("a2", "a3"), True)], ids=["of two", "of three"])
def test_the_only_other_node_of_a_leaf_is_no_witness(at_leaf: tuple[str, ...], *, named: bool) -> None:
    """Others may fill the uplinks of leaf a, and its other nodes reached more by chance. They have never met a4."""
    sites = {node: Site(node, leaf="a") for node in ("a4", *at_leaf)}
    sites |= {f"{leaf}{place}": Site(f"{leaf}{place}", leaf=leaf) for leaf in "bc" for place in range(1, 5)}
    passed = [ran(node, f"{leaf}{place}") for place, node in enumerate(at_leaf, start=3) for leaf in "bc"]
    passed += [ran(*pair) for pair in pairwise(["b1", "c1", "b2", "c2", "b3", "c3", "b4", "c4"])]
    bad = [ran("a4", partner, at=0.4) for partner in ("b1", "c1", "b2", "c2")]
    alone = [ran(node) for node in ("a4", "b1", "c1")]
    found = culprits(diagnosed(sites, *passed, *alone, *bad))
    assert ((Part.NODE_LINK, "a4") in found) == named


@pytest.mark.parametrize(("elsewhere", "named"), [((0.4, 0.4, 0.4), True), ((0.8, 0.65, 0.5), False)], ids=str)
def test_a_run_inside_its_leaf_may_straggle(elsewhere: tuple[float, ...], *, named: bool) -> None:
    """What it reaches with all others is the same, so its link limits it, and no uplink that others use."""
    passed = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("a1", "b1"), ran("a2", "c1"), ran("a3", "b2")]
    bad = [ran("a4", "a1", at=0.4), ran("a4", "a2", at=0.2)]
    bad += [ran("a4", other, at=at) for other, at in zip(("b1", "c1", "b2"), elsewhere, strict=True)]
    alone = [ran(node) for node in ("a4", "b1", "c1")]
    found = culprits(diagnosed(THREE_LEAVES, *passed, *alone, *bad))
    assert ((Part.NODE_LINK, "a4") in found) == named


@pytest.mark.parametrize(
    ("inside", "named"), [((0.45,), True), ((0.3,), False), ((0.3, 0.45), True)], ids=["as elsewhere", "less", "again"]
)
def test_one_run_inside_its_leaf_tells_something_only_if_another_run_reached_the_same(
    inside: tuple[float, ...], *, named: bool
) -> None:
    """The uplinks of its leaf may be bad, and the run inside straggles."""
    sites = {f"{leaf}{number}": Site(f"{leaf}{number}", leaf=leaf) for leaf in "abc" for number in range(1, 9)}
    passed = [ran(*pair) for pair in pairwise([node for node in sites if node[0] in "bc"])]
    passed += [ran(*pair) for pair in pairwise([f"a{number}" for number in range(1, 8)])]
    alone = [ran(node) for node in ("a8", "b1", "c1", "b2")]
    bad = [ran("a8", partner, at=0.45) for partner in ("b3", "c3", "b4", "c4")]
    bad += [ran("a8", f"a{number}", at=at) for number, at in enumerate(inside, start=1)]
    found = culprits(diagnosed(sites, *passed, *alone, *bad))
    assert ((Part.NODE_LINK, "a8") in found) == named
