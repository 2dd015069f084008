"""Leaves that show in the bandwidth of pairs, and what shows none."""

import itertools
import random
import statistics
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.cases import cases
from tests.lots import examples

from muster_coordinator.topology.learned import FEWEST_NODES, LEAST_GAP, LearnedLeaf, MeasuredPair, learn_leaves

NORMAL_GBPS = 48.0
SEEDS = st.integers(0, 1 << 32)


def fabric(sizes, *, across=0.5, noise=0.0, missing=0.0, slow=(), seed=0):
    """What all pairs of nodes on leaves of these sizes reach; `slow` nodes deliver a share of normal to everybody."""
    lots = random.Random(seed)
    leaf_of = {f"n{leaf}-{number}": leaf for leaf, size in enumerate(sizes) for number in range(size)}
    pairs = []
    for one, other in itertools.combinations(leaf_of, 2):
        share = 1.0 if leaf_of[one] == leaf_of[other] else across
        share = min(share, *(dict(slow).get(node, 1.0) for node in (one, other)))
        if lots.random() >= missing:
            pairs.append(MeasuredPair(one, other, NORMAL_GBPS * share * max(0.01, lots.gauss(1, noise))))
    return pairs


def together(leaves):
    """The nodes of each leaf, whatever it is called."""
    return {frozenset(leaf.nodes) for leaf in leaves}


def slow_with_everybody(pairs):
    """The nodes whose best pair is slower than is typical of the best pairs of all nodes, by a gap or more."""
    best = {
        node: max(p.bandwidth_gbps for p in pairs if node in (p.one, p.other))
        for p in pairs
        for node in (p.one, p.other)
    }
    return {node for node, gbps in best.items() if gbps < (1 - LEAST_GAP) * statistics.median(best.values())}


def true_leaf(node):
    return node.partition("-")[0]


def test_leaves_are_told_by_the_gap_between_inside_and_across():
    """Each with its nodes, its evidence and all the confidence that complete measurements give."""
    first, second = learn_leaves(fabric((3, 4)), {})
    assert first == LearnedLeaf(
        name="learned-1",
        nodes=("n0-0", "n0-1", "n0-2"),
        inside_gbps=48.0,
        inside_pairs=3,
        across_gbps=24.0,
        across_pairs=12,
        confidence=1.0,
    )
    assert (second.name, len(second.nodes)) == ("learned-2", 4)
    assert str(first) == (
        "learned-1: 3 nodes reach 48 GB/s with each other (3 pairs) and 24 GB/s with others (12 pairs)"
    )


@settings(max_examples=examples(50))
@given(st.integers(2, 20), st.sampled_from((0.01, 0.02, 0.05)), st.floats(0, 0.5), SEEDS)
def test_noise_makes_no_leaves(count, noise, missing, seed):
    """However few or many nodes there are and whatever was not measured."""
    assert learn_leaves(fabric((count,), noise=noise, missing=missing, seed=seed), {}) == []


@settings(max_examples=examples(20))
@given(st.lists(st.floats(0.1, 0.95), max_size=4), SEEDS)
def test_bad_nodes_of_one_leaf_make_no_leaves(shares, seed):
    """They are slow with everybody."""
    slow = {f"n0-{number}": share for number, share in enumerate(shares)}
    assert learn_leaves(fabric((14,), noise=0.03, slow=slow.items(), seed=seed), {}) == []


@settings(max_examples=examples(20))
@given(
    st.lists(st.integers(FEWEST_NODES + 1, 9), min_size=2, max_size=4),
    st.sampled_from(((0.25, 0.05), (0.5, 0.05), (0.6, 0.03), (0.7, 0.02))),
    SEEDS,
)
@example(sizes=[4, 4, 7, 8], level=(0.25, 0.05), seed=768965)
def test_two_levels_with_noise_are_seen(sizes, level, seed):
    """All leaves, and each with all of its nodes, but for those that noise made slow with everybody."""
    across, noise = level
    pairs = fabric(sizes, across=across, noise=noise, seed=seed)
    slow = slow_with_everybody(pairs)
    expected = {frozenset(f"n{leaf}-{n}" for n in range(size)) - slow for leaf, size in enumerate(sizes)}
    assert len(slow) <= 1
    assert together(learn_leaves(pairs, {})) == expected


@settings(max_examples=examples(20))
@given(
    st.lists(st.integers(2, 9), min_size=2, max_size=5),
    st.floats(0, 0.6),
    st.dictionaries(st.sampled_from([f"n{leaf}-{n}" for leaf in range(3) for n in range(3)]), st.floats(0.05, 1.0)),
    SEEDS,
)
def test_a_leaf_that_is_named_is_one(sizes, missing, slow, seed):
    """With pairs missing and nodes that are slow, leaves may stay unseen, but are neither mixed nor torn apart."""
    found = learn_leaves(fabric(sizes, noise=0.02, missing=missing, slow=slow.items(), seed=seed), {})
    said = [{true_leaf(node) for node in leaf.nodes} for leaf in found]
    assert all(len(leaves) == 1 for leaves in said)
    assert len(set().union(*said)) == len(said)
    assert all(0 < leaf.confidence <= 1 for leaf in found)


@settings(max_examples=examples(20))
@given(st.randoms(use_true_random=False), SEEDS)
def test_neither_names_nor_order_matter(lots, seed):
    """Other names, another order of pairs and nodes: the same nodes are together."""
    pairs = fabric((4, 5, 3), across=0.6, noise=0.03, missing=0.1, seed=seed)
    nodes = sorted({node for pair in pairs for node in (pair.one, pair.other)})
    renamed = dict(zip(nodes, lots.sample([f"x{number}" for number in range(99)], len(nodes)), strict=True))
    shuffled = [
        MeasuredPair(renamed[p.other], renamed[p.one], p.bandwidth_gbps) for p in lots.sample(pairs, len(pairs))
    ]
    expected = {frozenset(renamed[node] for node in leaf) for leaf in together(learn_leaves(pairs, {}))}
    assert together(learn_leaves(shuffled, {})) == expected
    assert learn_leaves(lots.sample(pairs, len(pairs)), {}) == learn_leaves(pairs, {})


def test_bad_nodes_and_bad_links_hide_nothing():
    """A node that is slow with everybody gets no leaf; a bad link inside of a leaf does not break it."""
    pairs = fabric((8, 8), slow={"n0-0": 0.1, "n1-3": 0.6}.items())
    bad_link = [replace(p, bandwidth_gbps=5.0) if {p.one, p.other} == {"n0-1", "n0-2"} else p for p in pairs]
    first, second = learn_leaves(bad_link, {})
    assert first.nodes == tuple(f"n0-{number}" for number in range(1, 8))
    assert second.nodes == tuple(f"n1-{number}" for number in range(8) if number != 3)
    assert first.confidence < second.confidence == 1


@cases(
    "pairs",
    [
        [],
        [MeasuredPair("a", "b", 10.0)],
        fabric((2, 2)),
        fabric((8, 8), across=0.9),
        fabric((12, 1, 1, 1, 1)),
        [pair for pair in fabric((6, 6)) if true_leaf(pair.one) == true_leaf(pair.other)],
        fabric((6, 6), missing=0.75),
        [*(p for p in fabric((5, 5)) if (p.one, p.other) != ("n0-1", "n1-1")), MeasuredPair("n0-1", "n1-1", 48.0)],
        [replace(pair, bandwidth_gbps=value) for pair in fabric((6, 6)) for value in (0.0, float("nan"), float("inf"))],
        [replace(pair, other=pair.one) for pair in fabric((6, 6))],
    ],
    ids=[
        "nothing",
        "one pair",
        "two nodes each",
        "hardly a gap",
        "one leaf and single nodes",
        "never measured against each other",
        "most pairs missing",
        "a fast pair across",
        "no figures",
        "with itself",
    ],
)
def test_too_little_says_nothing(pairs):
    """Rather than a guess."""
    assert learn_leaves(pairs, {}) == []


def test_the_median_of_several_measurements_counts():
    """One run in a quiet or a bad moment changes nothing."""
    pairs = fabric((4, 4))
    odd = [
        replace(pair, bandwidth_gbps=factor * pair.bandwidth_gbps)
        for pair, factor in zip(pairs, itertools.cycle((2, 0.1)))
    ]
    assert together(learn_leaves([*pairs, *odd, *pairs], {})) == together(learn_leaves(pairs, {}))


@cases(
    ("known", "names"),
    [
        ({"n0-1": "l7"}, ["l7", "learned-1", "learned-2"]),
        ({"n1-0": "learned-1", "n1-1": "learned-1"}, ["learned-2", "learned-1", "learned-3"]),
        ({"n0-1": "l7", "elsewhere": "l7"}, ["l7", "learned-1", "learned-2"]),
        ({"n0-1": "l7", "n0-2": "l8"}, ["learned-1", "learned-2"]),
        ({"n0-1": "l7", "n1-2": "l7"}, []),
        ({"n0-1": "l7", "n0-2": "l7", "n0-3": "l8", "n1-0": "l8", "n1-1": "l8"}, ["l7", "l8", "learned-1"]),
    ],
    ids=[
        "takes the name",
        "leaves taken names alone",
        "may be part of more",
        "joins two",
        "tears one apart",
        "one that says it is elsewhere",
    ],
)
def test_what_is_known_stands(known, names):
    """Learned leaves carry known names and are dropped where they contradict them."""
    assert [leaf.name for leaf in learn_leaves(fabric((4, 4, 4)), known)] == names
