"""Which groups a round adds for each open question."""

import itertools
from dataclasses import replace

from tests.cases import cases
from tests.coordinator.localize.runs import THREE_LEAVES, diagnosed, failed, fleet, nowhere, ran, void, well

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.planning.follow_up import follow_up
from muster_coordinator.model.probes import GroupRun, Site

SEEDS = [str(seed) for seed in range(10)]


def asked(diagnosis: Diagnosis, *, seed: str = "s", passes: int = 1) -> set[tuple[str, ...]]:
    groups = [probe.members for probe in follow_up(diagnosis, frozenset(), seed=seed, passes=passes)]
    members = [node for group in groups for node in group]
    assert len(members) == len(set(members)), "groups of a round are disjoint"
    return set(groups)


def nodes_of(groups: set[tuple[str, ...]]) -> set[str]:
    return {node for group in groups for node in group}


def test_the_rest_of_a_suspected_leaf_waits() -> None:
    """Four nodes represent it, and two pairs of others meet inside."""
    bad = [ran(f"n{n}", f"n{n + 10}", at=0.3) for n in range(10)]
    passed = [ran(f"n{n}", f"n{n + 1}") for n in range(20, 50, 2)] + [ran(f"n{n}", f"n{n + 10}") for n in (10, 11, 12)]
    groups = asked(diagnosed(fleet(50, leaf_of=10), *bad, *passed))
    assert nodes_of(groups) & {f"n{n}" for n in range(10)} == {f"n{n}" for n in range(8)}
    assert {("n4", "n5"), ("n6", "n7")} <= groups


def test_partners_of_a_suspected_leaf_clear_each_other() -> None:
    """The leaf explains their bad runs, so none of them runs alone."""
    bad = [ran(*pair, at=0.3) for pair in (("a1", "b1"), ("a2", "b2"), ("a3", "c1"), ("a4", "c2"))]
    groups = asked(diagnosed(THREE_LEAVES, *bad, ran("b3", "c3"), ran("b4", "c4")))
    assert {("b1", "b2"), ("c1", "c2")} <= groups


def test_where_most_pairs_are_slow_alike_each_node_runs_alone() -> None:
    """They may be of other hardware, and other pairs would be as slow. If links are shared, other pairs tell."""
    inside = [ran(f"n{n}", f"n{n + 1}", at=1.5 if n == 0 else 0.75) for n in range(0, 32, 2)]
    groups = asked(diagnosed(fleet(32, leaf_of=8), *inside))
    assert {(f"n{n}",) for n in range(2, 32)} <= groups
    across = [replace(ran(f"n{n}", f"n{n + 16}", at=0.75), beside=16) for n in range(2, 16)]
    groups = asked(diagnosed(fleet(32, leaf_of=8), inside[0], ran("n16", "n17"), *across))
    assert all(len(group) == 2 for group in groups)
    assert {f"n{n}" for n in (*range(2, 16), *range(18, 32))} <= nodes_of(groups)


def test_links_wait_for_the_paths_between_leaves() -> None:
    """A bad path explains a bad link to a node without a leaf, and few groups should run beside the path."""
    sites = {**THREE_LEAVES, "d": Site("d")}
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4)]
    link = [ran("d", "b1"), ran("d", "c2", at=0.3)]
    assert ("c2", "d") in asked(diagnosed(sites, *passed, *link))
    groups = asked(diagnosed(sites, *passed, *link, ran("a1", "c1", at=0.3)))
    assert any({node[0] for node in group} == {"a", "c"} for group in groups)
    assert ("c2", "d") not in groups


def test_two_suspects_without_partners_run_alone() -> None:
    """There is nothing else to learn from."""
    assert asked(diagnosed(nowhere("ab"), failed("a", "b"))) == {("a",), ("b",)}


def test_seven_partners_are_enough() -> None:
    """Two nodes that fail alike stay inconclusive, and take no more time of others."""
    bad = [ran(node, partner, at=0.5) for node in "ab" for partner in "cdefghi"]
    passed = [ran(*pair) for pair in itertools.pairwise("cdefghijklmno")]
    diagnosis = diagnosed(nowhere("abcdefghijklmno"), *passed, *bad, ran("a", "b", at=0.5), alone=False)
    assert diagnosis.inconclusive == ("a", "b")
    assert asked(diagnosis) == set()


def test_controls_had_no_bad_run() -> None:
    """A node that was bad with somebody else may be what a suspect is to be compared with."""
    bad = [ran("n0", "n1", at=0.3), ran("n2", "n3", at=0.3)]
    bad += [ran(suspect, f"n{n}", at=0.3) for suspect, those in (("n0", (4, 5, 6)), ("n2", (7, 8, 9))) for n in those]
    diagnosis = diagnosed(fleet(16), *bad, *well(16, first=4))
    for seed in SEEDS:
        controls = {node for node, *others in asked(diagnosis, seed=seed) if not others} - {"n0", "n1", "n2", "n3"}
        assert len(controls) == 2
        assert controls <= {f"n{n}" for n in range(10, 16)}


def test_the_next_partner_stands_on_another_side() -> None:
    """B and c have passed together, and so may be behind the same switch."""
    diagnosis = diagnosed(nowhere("abcdefgh"), ran("b", "c"), ran("d", "e"), ran("a", "b", at=0.3), alone=False)
    partners = {other for seed in SEEDS for group in asked(diagnosis, seed=seed) if "a" in group for other in group}
    assert partners - {"a"} <= {"d", "e"}


def test_a_path_that_was_bad_once_is_tried_once_more_by_other_nodes() -> None:
    """Most paths are good then; and one of the two nodes may come and go."""
    sites = fleet(128, leaf_of=32, places_itself=False)
    passed = [ran(f"n{n}", f"n{n + 64}") for n in range(64)]
    diagnosis = diagnosed(sites, *passed, replace(ran("n0", "n32", at=0.3), beside=64))
    for seed in SEEDS:
        groups = asked(diagnosis, seed=seed)
        across = [group for group in groups if {sites[node].leaf for node in group} == {"leaf0", "leaf1"}]
        assert len(across) == 1
        assert {"n0", "n32"}.isdisjoint(across[0])


def test_all_nodes_meet_again_while_passes_are_left() -> None:
    """In as many groups as before."""
    diagnosis = diagnosed(fleet(16), *well(16, first=0))
    assert nodes_of(asked(diagnosis, passes=2)) == fleet(16).keys()
    assert asked(diagnosis, passes=1) == set()


def test_nodes_without_a_result_meet_healthy_ones() -> None:
    """Together they might get nowhere once more."""
    groups = asked(diagnosed(nowhere("abcdef"), void("a", "b"), ran("c", "d"), ran("e", "f"), alone=False))
    assert len(groups) == 2
    assert ("a", "b") not in groups


LEAVES = fleet(64, leaf_of=16, places_itself=False)
ACROSS = [replace(ran(f"n{n}", f"n{n + 32}", at=0.75), beside=31) for n in range(32)]
"""All 64 nodes in pairs that share links between leaves."""


def other_paths(at: float) -> list[GroupRun]:
    """Runs across the paths that pairs of nodes n and n + 32 do not cross."""
    pairs = (("n11", "n27"), ("n12", "n60"), ("n28", "n44"), ("n45", "n61"))
    return [replace(ran(*pair, at=at), beside=31) for pair in pairs]


INSIDE = [ran(f"n{n}", f"n{n + 1}") for n in range(2, 64, 2)]


def test_control_pairs_run_beside_a_suspect_where_runs_share_links() -> None:
    """They cross leaves, too, and have passed. Once is enough, and where links are not shared, none is needed."""
    bad = [ran("n0", partner, at=0.8) for partner in ("n2", "n4", "n6")]
    alone = [ran(f"n{n}") for n in (0, 20, 40, 60)]
    runs = [*ACROSS, *other_paths(0.75), *INSIDE, ran("n1", "n3"), *bad, *alone]
    (first, second), (suspect,) = (
        [group for group in asked(diagnosed(LEAVES, *runs)) if ("n0" in group) == is_suspect]
        for is_suspect in (False, True)
    )
    assert all(LEAVES[one].leaf != LEAVES[other].leaf for one, other in (first, second, suspect))
    controls = [replace(ran(*pair), beside=2) for pair in (first, second)]
    assert {"n0"} < nodes_of(asked(diagnosed(LEAVES, *runs, *controls)))
    assert len(asked(diagnosed(LEAVES, *runs, *controls))) == 1


def test_a_pair_of_its_leaf_runs_beside_a_node_whose_link_is_about_to_be_convicted() -> None:
    """If it is slow, too, the switch of the leaf is bad at times. Otherwise the link is convicted."""
    first = [ran(f"n{n}", f"n{n + 32}", at=1.5 if n else 0.6) for n in range(32)]
    bad = [replace(ran("n0", partner, at=0.6), round=2) for partner in ("n2", "n21", "n41")]
    runs = [*first, *other_paths(1.5), ran("n32", "n33"), *(ran(f"n{n}") for n in (0, 20, 40, 60)), *bad]
    (suspect,), (control,) = (
        [group for group in asked(diagnosed(LEAVES, *runs)) if ("n0" in group) == is_suspect]
        for is_suspect in (True, False)
    )
    assert len(suspect) == 2
    assert {LEAVES[node].leaf for node in control} == {"leaf0"}
    assert asked(diagnosed(LEAVES, *runs, replace(ran(*control), round=2))) == set()


def test_a_node_that_is_never_clear_runs_alone_once() -> None:
    """Two old nodes would run with each other again and again."""
    again = [replace(ran(*pair, at=0.75), beside=31) for pair in (("n0", "n17"), ("n1", "n18"))]
    once, twice = (asked(diagnosed(LEAVES, *ACROSS, *INSIDE, *runs)) for runs in ([], again))
    assert {("n0",), ("n1",)}.isdisjoint(once)
    assert {("n0",), ("n1",)} <= twice
    alone = [ran("n0"), ran("n1")]
    assert {("n0",), ("n1",)}.isdisjoint(asked(diagnosed(LEAVES, *ACROSS, *INSIDE, *again, *alone)))


def test_one_pair_at_a_time_crosses_the_links_of_a_leaf_that_runs_share() -> None:
    """Others would slow it."""
    bad = [replace(run, objective=0.3) for run in ACROSS[2:6]]
    bad += [replace(ran(f"n{n}", f"n{n + 16}", at=0.3), beside=31) for n in (6, 7, 8, 9)]
    planned = asked(diagnosed(LEAVES, *ACROSS, *other_paths(0.75)[1:], *INSIDE, ran("n0", "n1"), *bad))
    assert sum(LEAVES[node].leaf == "leaf0" for node in nodes_of(planned)) == 1


def test_what_contention_made_slow_runs_not_alone_again() -> None:
    """It says little about a fault that comes and goes; a slow run inside a leaf says more."""
    good = [replace(ran("n4", "n20"), beside=0), *(ran(f"n{n}") for n in (30, 50))]
    runs = [*ACROSS, *INSIDE, *good]
    across = asked(diagnosed(LEAVES, *runs, ran("n2", "n18", at=0.3)))
    assert {("n2",), ("n18",)}.isdisjoint(across)
    assert {("n2",), ("n5",)} <= asked(diagnosed(LEAVES, *runs, ran("n2", "n5", at=0.3)))


@cases(("slow", "tried"), [(1, True), (3, False)])
def test_what_happens_often_by_chance_is_not_worth_a_run(*, slow: int, tried: bool) -> None:
    """One slow pair that passes later may be a fault that comes and goes; where several are, others fill the links."""
    once = [replace(ran(f"n{n}", f"n{n + 33}", at=0.3), beside=31) for n in range(slow)]
    passed = [replace(ran(f"n{n}", f"n{n + 32}"), beside=31) for n in range(32)]
    planned = asked(diagnosed(LEAVES, *passed, *once))
    assert ({("n0",), ("n33",)} <= planned) == tried


def test_many_suspects_at_unknown_leaves_meet_each_other_a_few_at_a_time() -> None:
    """Links that they shared may be the cause, and a run beside few other groups shows that."""
    slow = [ran(f"n{n}", f"n{n + 1}", at=0.3) for n in range(0, 32, 2)]
    first = [replace(run, beside=31) for run in (*slow, *well(64, first=32))]
    planned = asked(diagnosed(fleet(64), *first))
    assert len(planned) == 8
    assert all(len(group) == 2 for group in planned)
    assert nodes_of(planned) < {f"n{n}" for n in range(32)}


def test_nodes_that_fail_alike_run_no_more_when_that_tells_nothing() -> None:
    """Nobody can tell their links from a switch that they may share."""
    sites = fleet(24)
    slow = [ran(f"n{n}", f"n{n + partner}", at=0.3) for n in range(4) for partner in (8, 12)]
    among = [ran(*pair, at=0.3) for pair in (("n0", "n1"), ("n2", "n3"), ("n0", "n2"), ("n1", "n3"))]
    alone = [ran(f"n{n}") for n in range(6)]
    planned = asked(diagnosed(sites, *well(24, first=4), *slow, *among, *alone))
    assert nodes_of(planned).isdisjoint({"n0", "n1", "n2", "n3"})


def test_suspects_that_meet_each_other_run_rail_by_rail() -> None:
    """Slow rails tell two bad nodes from a switch that they share."""
    slow = [ran("n0", "n8", at=0.3), ran("n1", "n9", at=0.3), ran("n0", "n12", at=0.3), ran("n1", "n13", at=0.3)]
    alone = [ran(f"n{n}") for n in range(6)]
    diagnosis = diagnosed(fleet(24), *well(24, first=4), *slow, *alone)
    (together,) = (probe for probe in follow_up(diagnosis, frozenset(), seed="s", passes=1) if "n0" in probe.members)
    assert (together.members, together.by_rail) == (("n0", "n1"), True)


def test_a_control_that_may_have_straggled_runs_again_before_it_is_a_partner() -> None:
    """It shows what n0 alone should reach, and beside n0 it might be slow."""
    bad = [ran("n0", "n1", at=0.3), ran("n0", "n3", at=0.3)]
    alone = [ran("n0", at=0.9), ran("n4", at=0.6), ran("n6", at=2.0)]
    diagnosis = diagnosed(fleet(8), *bad, *well(8), ran("n1", "n5"), *alone)
    assert all(("n4",) in asked(diagnosis, seed=seed) for seed in SEEDS)


def test_others_run_alone_while_a_slow_node_may_be_one_of_many() -> None:
    """Each pair reached what n0 alone would allow. Twelve nodes have to be seen, and five are."""
    pairs = [ran("n0", "n1", at=0.5), *(ran(f"n{n}", f"n{n + 1}", at=0.9) for n in range(2, 24, 2))]
    seen = [*(ran("n0", at=1.0) for _ in range(3)), *(ran(f"n{n}", at=2.0) for n in (1, 2, 4, 6))]
    diagnosis = diagnosed(fleet(24), *pairs, *seen)
    for seed in SEEDS:
        alone = {group[0] for group in asked(diagnosis, seed=seed) if len(group) == 1}
        assert len(alone) == 7
        assert alone.isdisjoint({"n0", "n1", "n2", "n4", "n6"})
    assert len({frozenset(asked(diagnosis, seed=seed)) for seed in SEEDS}) > 1, "they are drawn"


def test_one_path_of_a_leaf_is_tried_at_a_time() -> None:
    """Others that fill the links of the leaf slow all its paths at once."""
    slow = [replace(ran("n0", "n16", at=0.3), beside=31), replace(ran("n1", "n32", at=0.3), beside=31)]
    passed = [ran(f"n{n}", f"n{n + 48}") for n in range(16)] + [ran(f"n{n}", f"n{n + 1}") for n in range(16, 48, 2)]
    planned = asked(diagnosed(LEAVES, *passed, *slow))
    leaves = [{LEAVES[node].leaf for node in group} for group in planned]
    assert sum(len(ends) == 2 and "leaf0" in ends for ends in leaves) == 1


@cases(
    ("across_ac", "across_bc", "leaf_met"),
    [
        ((0.3,), (), "b"),
        ((0.3,), (1.5,), "b"),
        ((0.3,), (1.5, 1.5), "a"),
        ((0.3,), (0.3, 1.5), "b"),
        ((0.3,), (0.3, 1.5, 1.5), "a"),
        ((0.3, 0.3, 0.3), (0.3, 0.3, 0.3), None),
    ],
)
def test_a_slow_node_of_a_small_leaf_crosses_other_paths_before_its_path_is_tried_again(
    across_ac: tuple[float, ...], across_bc: tuple[float, ...], leaf_met: str | None
) -> None:
    """Two runs that are fast there show that its uplinks are not the cause; after three runs they may be."""
    sites = {node: site for node, site in THREE_LEAVES.items() if node not in {"c3", "c4"}}
    passed = [*(ran(f"a{n}", f"b{n}") for n in (1, 2, 3, 4)), ran("c1", "c2")]
    bad = [ran("c1", f"a{n}", at=at) for n, at in enumerate(across_ac, start=1)]
    others = [replace(ran("c1", f"b{n}", at=at), round=n) for n, at in enumerate(across_bc, start=1)]
    groups = asked(diagnosed(sites, *passed, *bad, *others))
    met = {sites[node].leaf for group in groups if len(group) == 2 and {"c1", "c2"} & {*group} for node in group}
    assert met - {"c"} == ({leaf_met} if leaf_met else set())


def test_nodes_without_a_result_cross_paths_that_nobody_has_crossed() -> None:
    """Prevents: members decline, the only pairs across a bad path are void, and nobody crosses it again."""
    passed = [ran(f"n{n}", f"n{n + 32}") for n in (*range(1, 16), *range(17, 32))]
    planned = asked(diagnosed(LEAVES, *passed, ran("n1", "n2"), void("n0", "n16")))
    leaves = {frozenset(LEAVES[node].leaf for node in group) for group in planned}
    uncrossed = ({"leaf0", "leaf1"}, {"leaf0", "leaf3"}, {"leaf1", "leaf2"}, {"leaf2", "leaf3"})
    assert leaves == {*map(frozenset, uncrossed)}


def test_paths_that_no_group_has_crossed_are_crossed_if_they_are_few() -> None:
    """Of twelve nodes of two kinds, three pairs of each kind cross four of six paths."""
    sites = fleet(12, leaf_of=3)
    crossed = [ran("n0", "n3"), ran("n6", "n9"), ran("n1", "n6"), ran("n4", "n10"), ran("n2", "n8"), ran("n7", "n11")]
    groups = asked(diagnosed(sites, *crossed, ran("n5", "n3")))
    leaves = {tuple(sorted(sites[node].leaf or "" for node in group)) for group in groups}
    assert leaves == {("leaf0", "leaf3"), ("leaf1", "leaf2")}


@cases(("nodes", "bad"), [("abcd", "bc"), ("abc", "bc")])
def test_in_the_smallest_fleets_all_nodes_are_controls(nodes: str, bad: str) -> None:
    """Each of the others was bad with a or is needed to tell whether a or its link is bad."""
    slow = [ran("a", partner, at=0.3) for partner in bad]
    passed = [ran("b", "d"), ran("c", "d")] if "d" in nodes else [ran("b", "c")]
    assert asked(diagnosed(nowhere(nodes), *slow, *passed)) == {(node,) for node in nodes}


def test_a_pair_that_was_not_cleared_across_slow_uplinks_meets_others_inside_leaves() -> None:
    """Together they would cross the same links again, and show as little as before."""
    across = [ran(f"n{n}", f"n{n + 8}", at=1.1) for n in (1, 2, 3, 4, 16, 17, 18, 19)]
    inside = [ran(f"n{n}", f"n{n + 1}") for n in (5, 13, 20, 28)]
    groups = asked(diagnosed(fleet(32, leaf_of=8), *across, *inside, ran("n0", "n8", at=1.0)))
    met = {node: {*group} for group in groups for node in group}
    assert met["n0"] <= {f"n{n}" for n in range(8)}
    assert met["n8"] <= {f"n{n}" for n in range(8, 16)}


def test_after_one_bad_pair_inside_a_small_leaf_its_nodes_cross_its_uplinks_one_at_a_time() -> None:
    """While all three crossed them at once, each reached half of what its switch lets through inside."""
    sites = {node: site for node, site in THREE_LEAVES.items() if node != "a4"}
    passed = [ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)] + [ran("b1", "b2"), ran("c1", "c2")]
    bad = [*(replace(ran(f"a{n}", f"b{n}", at=0.3), beside=5) for n in (1, 2, 3)), ran("a1", "a2", at=0.6)]
    alone = [ran(node) for node in ("a1", "a2", "a3", "b1", "c1")]
    outside = [ran("a1", "c3", at=0.6), ran("a2", "c3", at=0.6)]
    for number in range(3):
        planned = asked(diagnosed(sites, *passed, *bad, *alone, *outside[:number]))
        assert nodes_of(planned) & {"a1", "a2", "a3"} == {f"a{number + 1}"}


def test_a_path_is_tried_again_by_a_pair_that_has_not_crossed_it() -> None:
    """Both nodes of each leaf have, and a pair counts once."""
    sites = {node: site for node, site in THREE_LEAVES.items() if site.leaf == "b" or int(node[1:]) <= 2}
    passed = [ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2)]
    inside = [ran(*pair) for pair in (("a1", "a2"), ("c1", "c2"), ("b1", "b2"), ("b3", "b4"))]
    bad = [replace(ran(f"a{n}", f"c{n}", at=0.3), round=n, beside=5) for n in (1, 2)]
    (planned,) = asked(diagnosed(sites, *passed, *inside, *bad))
    assert planned in (("a1", "c2"), ("a2", "c1"))


def test_a_node_that_slows_several_that_are_well_otherwise_meets_no_more_of_them() -> None:
    """No partner can tell more about it: it passes with some and blames each path to others."""
    bad = [ran("n1", f"n{4 * number}", at=0.3) for number in (1, 2, 3)]
    passed = [ran("n1", "n0"), *well(24), *(ran(f"n{n}", f"n{n + 12}") for n in range(3, 12))]
    diagnosis = diagnosed(fleet(24, leaf_of=4), *passed, *bad, *(ran(f"n{n}") for n in (1, 5, 9)))
    assert diagnosis.clearance.spoilers == {"n1"}
    assert "n1" in diagnosis.inconclusive
    assert "n1" not in nodes_of(asked(diagnosis))
