"""Nodes that are slow alike in themselves are a population and no culprits."""

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import culprits, diagnosed, failed, fleet, ran

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.wording.missing_evidence import missing_evidence
from muster_coordinator.model.probes import GroupRun


def fleet_with_slow(slow: dict[str, float]) -> list[GroupRun]:
    """Of 16 nodes in pairs, n0 and others of each pair are slow; then they run alone, beside controls."""
    pairs = [(f"n{number}", f"n{number + 1}") for number in range(0, 16, 2)]
    together = [ran(one, other, at=1.5 * slow.get(one, 1.0)) for one, other in pairs]
    alone = [ran(node, at=2.0 * share) for node, share in slow.items() for _ in range(2)]
    fast = [ran(f"n{number}", at=2.0) for number in range(1, 16, 2)]
    return [*together, *alone, *fast]


@pytest.mark.parametrize(("count", "named"), [(3, True), (4, False)])
def test_a_quarter_of_the_fleet_that_is_slow_alike_has_something_in_common(count: int, *, named: bool) -> None:
    """Nobody is at fault, and it is said what to look for; fewer may have broken one by one."""
    slow = {f"n{2 * number}": 0.5 + number / 100 for number in range(count)}
    diagnosis = diagnosed(fleet(16), *fleet_with_slow(slow))
    assert diagnosis.convicted == (slow.keys() if named else frozenset())
    assert bool(culprits(diagnosis)) is named
    if not named:
        assert slow.keys() <= {*diagnosis.inconclusive}
        assert missing_evidence(diagnosis)["n0"].startswith("alone it is as slow as n2, n4, n6: look what they have")


def test_nodes_that_are_slow_differently_are_at_fault() -> None:
    """However many they are: hardware breaks node by node."""
    slow = {f"n{2 * number}": 0.2 + number / 12 for number in range(5)}
    assert diagnosed(fleet(16), *fleet_with_slow(slow)).convicted == slow.keys()


def test_nodes_that_are_slow_alike_are_compared_with_each_other() -> None:
    """As if they had declared their kind: of 32 nodes, 16 are half as fast. One of these has a bad link."""
    sites = fleet(32, leaf_of=8)
    speed = {node: 0.5 if number % 2 else 1.0 for number, node in enumerate(sites)}
    runs = [ran(f"n{n}", f"n{n + 2}", at=1.5 * speed[f"n{n}"]) for n in range(28) if n % 4 < 2]
    runs += [ran("n28", "n29", at=0.75), ran("n31", "n30", at=0.2)]
    runs += [ran(node, at=2.0 * share) for node, share in speed.items()]
    runs += [ran("n31", other, at=0.2) for other in ("n29", "n27", "n1", "n9", "n17")]
    diagnosis = diagnosed(sites, *runs)
    slower = {node for node, share in speed.items() if share < 1}
    assert diagnosis.evidence.hardware.slow_alike == dict.fromkeys(slower, "of unknown kind at 50% of normal")
    assert culprits(diagnosis) == {(Part.NODE_LINK, "n31")}
    assert slower - {"n31"} <= {*diagnosis.inconclusive}
    assert not slower & diagnosis.cleared


def test_a_population_is_found_where_others_are_broken_in_every_degree() -> None:
    """Of 64 nodes, 40 reach half. Most that run alone are such nodes, and there is no gap below them."""
    broken = {f"n{number}": 0.45 * 0.93 ** (number - 40) for number in range(40, 52)}
    speed = {f"n{number}": 0.49 + number / 2000 if number < 40 else 1.0 for number in range(64)} | broken
    pairs = [(f"n{number}", f"n{number + 1}") for number in range(0, 64, 2)]
    together = [ran(*pair, at=1.5 * min(map(speed.__getitem__, pair))) for pair in pairs]
    alone = [ran(node, at=2.0 * speed[node]) for node in speed for _ in range(2)]
    diagnosis = diagnosed(fleet(64), *together, *alone)
    assert not diagnosis.convicted - broken.keys()
    assert {f"n{number}" for number in range(40)} <= diagnosis.evidence.hardware.slow_alike.keys()


def test_each_population_is_a_kind_of_its_own() -> None:
    """There is a gap between what nodes of one and of another reach alone."""
    speed = {f"n{number}": (1.0, 0.75, 0.5, 1.0)[number % 4] for number in range(32)}
    runs = [ran(f"n{n}", f"n{n + 4}", at=1.5 * speed[f"n{n}"]) for n in range(32) if n % 8 < 4]
    alone = [ran(node, at=2.0 * share) for node, share in speed.items()]
    kinds = diagnosed(fleet(32), *runs, *alone).evidence.hardware.kinds
    assert {kind: len(nodes) for kind, nodes in kinds.items()} == {
        None: 16,
        "of unknown kind at 75% of normal": 8,
        "of unknown kind at 50% of normal": 8,
    }


def test_nodes_behind_a_bad_leaf_do_not_count_for_the_share() -> None:
    """Of 32 nodes, 16 stand behind a bad leaf. Of the others, five are slow alike, and not of the whole fleet."""
    slow = {f"n{number}": 0.6 for number in range(0, 10, 2)}
    outside = [ran(f"n{number}", f"n{number + 16}", at=0.4) for number in range(16)]
    inside = [ran(f"n{number}", f"n{number + 1}", at=0.4) for number in (16, 18)]
    runs = [*outside, *inside, *fleet_with_slow(slow)]
    assert not diagnosed(fleet(32, leaf_of=8), *runs).nodes.convicted


@pytest.mark.parametrize(("n10", "convicted"), [(1.0, set()), (2.0, {"n0"})])
def test_passing_tells_nothing_if_a_node_passes_that_is_slow_alone(n10: float, convicted: set) -> None:
    """Most nodes may be as slow as n10 is: every pair has one, so all reach the same. Only a few have run alone."""
    passed = [ran(f"n{number}", f"n{number + 1}") for number in (1, 2, 4, 6, 8, 10)]
    bad = [ran("n0", "n1", at=0.6), ran("n0", at=1.0), ran("n0", at=1.0)]
    alone = [ran("n10", at=n10), *(ran(f"n{number}", at=2.0) for number in (1, 3, 5))]
    assert diagnosed(fleet(12), *passed, *bad, *alone).convicted == convicted


def test_two_nodes_of_four_that_are_slow_alike_are_at_no_fault() -> None:
    """They are as many as the others. Nobody knows which is the older kind, if it is one."""
    pairs = [ran("n0", "n1"), *(ran(*pair, at=0.75) for pair in (("n2", "n3"), ("n0", "n2"), ("n1", "n3")))]
    alone = [ran(node, at=at) for node, at in (("n0", 2.0), ("n1", 2.0), ("n2", 1.0), ("n3", 1.0)) for _ in range(2)]
    diagnosis = diagnosed(fleet(4), *pairs, *alone)
    assert (diagnosis.convicted, diagnosis.inconclusive) == (frozenset(), ("n2", "n3"))


@pytest.mark.parametrize(("slow", "convicted"), [(3, False), (2, True)])
def test_three_nodes_of_a_leaf_that_are_slow_alike_have_something_in_common(slow: int, *, convicted: bool) -> None:
    """Leaf d is bad, so only runs alone show what its nodes can do. Everybody else has passed."""
    sites = fleet(64, leaf_of=16, places_itself=False)
    passed = [ran(f"n{number}", f"n{number + 16}") for number in range(16)]
    passed += [ran(f"n{number}", f"n{number + 1}") for number in range(32, 48, 2)]
    bad = [ran(f"n{number}", f"n{number - 48}", at=0.4) for number in range(48, 56)]
    alone = [ran(f"n{number}", at=2.0) for number in (*range(20, 24), *range(48 + slow, 54))]
    alone += [ran(f"n{number}", at=1.0) for number in range(48, 48 + slow) for _ in range(3)]
    assert bool(diagnosed(sites, *passed, *bad, *alone).nodes.convicted) == convicted


def behind_a_leaf(*others_alone: float, pairs_at: float = 0.9) -> list[GroupRun]:
    """Leaf0 of 16 nodes lets through less than pairs elsewhere reach. n0 reaches 1.0 alone, others from n4 on these."""
    slow = [ran("n0", "n1", at=0.5), ran("n2", "n3", at=0.5)]
    passed = [ran(f"n{n}", f"n{n + 1}", at=pairs_at) for n in range(4, 16, 2)]
    alone = [ran(f"n{number}", at=at) for number, at in enumerate(others_alone, start=4)]
    return [*slow, *passed, *alone, *(ran("n0", at=1.0) for _ in range(3))]


@cases(
    ("pairs_at", "alone", "convicted"),
    [
        (0.9, (2.0,) * 4, False),
        (0.9, (2.0,) * 11, True),
        (0.9, (2.0,) * 8 + (1.0,) * 3, False),
        (1.5, (2.0,) * 4, True),
    ],
)
def test_a_slow_node_may_be_one_of_many_that_nobody_has_seen(
    pairs_at: float, alone: tuple[float, ...], *, convicted: bool
) -> None:
    """Each pair may have an older node. Twelve runs alone would show one, and so would faster pairs."""
    diagnosis = diagnosed(fleet(16, leaf_of=4), *behind_a_leaf(*alone, pairs_at=pairs_at))
    assert ("n0" in diagnosis.convicted) is convicted
    assert ("n0" in diagnosis.evidence.hardware.slow_alike) is not convicted


def test_it_is_said_that_too_few_others_have_run_alone() -> None:
    """There is nobody yet who is as slow."""
    told = missing_evidence(diagnosed(fleet(16, leaf_of=4), *behind_a_leaf(2.0, 2.0, 2.0, 2.0)))
    assert told["n0"].startswith("it is slow alone, and too few others have shown what is normal")


def test_two_normal_nodes_convict_none_of_four() -> None:
    """n0 is broken. Of the others, n2 is half as fast, or the other two are twice as fast as usual."""
    pairs = [ran("n1", "n2", at=0.75), ran("n2", "n3", at=0.75), ran("n1", "n3"), ran("n1", "n3")]
    alone = [ran("n1", at=2.0), ran("n3", at=2.0), ran("n2", at=1.0)]
    broken = [failed("n0", "n3"), failed("n0", "n2"), failed("n0")]
    assert diagnosed(fleet(4), *pairs, *alone, *broken).convicted == {"n0"}
    well = [ran("n0", "n3"), ran("n0", "n2", at=0.75), ran("n0", at=2.0)]
    assert diagnosed(fleet(4), *pairs, *alone, *well).convicted == {"n2"}
