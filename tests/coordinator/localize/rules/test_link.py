"""Which nodes have a bad link or rail, and what falls just short of it."""

import itertools
from dataclasses import replace

import pytest
from tests.coordinator.localize.runs import THREE_LEAVES, culprits, diagnosed, failed, fleet, nowhere, ran

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.rules.link import alike
from muster_coordinator.model.probes import GroupRun, Site

PASSED = [ran("a1", "b1"), ran("a2", "b2"), ran("a3", "c1"), ran("b3", "c2"), ran("b4", "c3")]


def test_slow_rails_need_no_run_alone() -> None:
    """A node that is slow in itself is slow on all its rails."""
    rails = (1.5, 1.5, 0.3, 1.5)
    bad = [ran("a4", "c4", at=0.3), ran("a1", "a4", rails=rails), ran("a4", "b1", rails=rails)]
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
    hanging = [failed("a4", partner) for partner in ("c4", "a1", "b1")]
    alone = [ran("a4", at=1.48), *map(ran, ("b2", "c1"))]
    assert culprits(diagnosed(THREE_LEAVES, *PASSED, *hanging, *alone)) == {(Part.NODE_LINK, "a4")}


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


@pytest.mark.parametrize(
    ("sites", "convicted"),
    [
        pytest.param(nowhere("abcdefghijk"), set(), id="no leaf known"),
        pytest.param(
            {node: Site(node, leaf=node if node in "ab" else "x") for node in "abcdefghijk"},
            {"a", "b"},
            id="each at a leaf of its own",
        ),
        pytest.param(
            {node: Site(node, leaf="x" if node in "acd" else None) for node in "abcdefghijk"},
            {"a", "b"},
            id="one of them beside healthy nodes",
        ),
    ],
)
def test_only_an_unknown_switch_may_be_what_two_nodes_share(sites: dict[str, Site], convicted: set) -> None:
    """Both fail with everyone, and reach the same."""
    bad: list[GroupRun] = [ran(node, partner, at=0.5) for node in "ab" for partner in "cdef"]
    passed = [ran(*pair) for pair in itertools.pairwise("cdefghijk")]
    assert diagnosed(sites, *passed, *bad, alone=False).convicted == convicted


def test_of_many_failing_nodes_two_are_alike_by_chance() -> None:
    """A quarter of them has to be."""
    apart = {f"n{number}": 1.3**number for number in range(10)}
    assert alike({**apart, "x": 1.3**3, "y": 100.0}) == frozenset()
    assert alike({"n1": 1.0, "x": 1.0, "y": 100.0}) == {"n1", "x"}


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


@pytest.mark.parametrize(("at", "needed"), [(1.1, 3), (0.3, 2)])
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
    partners = ("n2", "n21", "n41", "n23", "n43")
    assert culprits(sharing(*(ran("n0", partner, at=240.0) for partner in partners))) == {(Part.NODE_LINK, "n0")}


def test_two_bad_links_of_a_large_leaf_may_be_alike() -> None:
    """A bad switch, or wrong labels, would make a quarter of the leaf fail alike."""
    bad = [
        ran(node, partner, at=240.0)
        for node, partners in (("n0", (4, 21, 41, 23, 43)), ("n1", (5, 25, 45, 27, 47)))
        for partner in (f"n{number}" for number in partners)
    ]
    assert culprits(sharing(*bad)) == {(Part.NODE_LINK, "n0"), (Part.NODE_LINK, "n1")}


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
