"""Which bad runs count against a node when its partners may lie: every known way to get a healthy node convicted."""

import itertools
import math

import pytest
from tests.cases import cases

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.planning.follow_up import follow_up
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.rules.evidence_against import drawn_partners, drawn_partners_missing, may_be_all_liars
from muster_coordinator.localize.significance import FALSE_NODES, controls_needed, liars_may_explain
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site
from muster_coordinator.normal.normality import liars_among

_numbers = itertools.count()

V, L = "n0", "n1"
"""A healthy node, and one that lies about it."""


def ran(*members: str, at: float = 1.5) -> GroupRun:
    return GroupRun(group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.GOOD, objective=at)


def crashed(*members: str, by: str) -> GroupRun:
    return GroupRun(
        group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.BAD, crashed=frozenset({by}), hard=True
    )


def fleet(count: int, *, leaf_of: int = 0, places_itself: bool = True) -> dict[str, Site]:
    """Nodes of which `leaf_of` share a leaf; with 0, the leaves are unknown."""
    return {
        f"n{number}": Site(
            f"n{number}", leaf=f"leaf{number // leaf_of}" if leaf_of else None, places_itself=places_itself
        )
        for number in range(count)
    }


def judged(sites: dict[str, Site], *runs: GroupRun, alone: bool = False) -> Diagnosis:
    return Diagnosis(GroupEvidence(sites, runs), CheckAbilities(alone=alone, by_rail=False))


def well(count: int, first: int = 2) -> list[GroupRun]:
    """Pairs that passed: all nodes from `first` on."""
    return [ran(f"n{number}", f"n{number + 1}") for number in range(first, count - 1, 2)]


@cases(
    ("nodes", "liars", "partners", "measures"),
    [(2, 1, 2, 2), (16, 1, 2, 2), (39, 1, 2, 2), (40, 2, 3, 3), (128, 6, 4, 3), (1024, 51, 5, 3), (10_000, 500, 6, 3)],
)
def test_the_number_of_partners_grows_with_the_fleet(nodes: int, liars: int, partners: int, measures: int) -> None:
    """So few that they are all liars, for any node of the fleet, in one of a thousand sweeps at most."""
    assert liars_among(nodes) == liars
    drawn = [(1, nodes - 1)] * partners
    assert not liars_may_explain(nodes, drawn)
    assert liars_may_explain(nodes, drawn[1:])
    assert controls_needed(nodes, nodes) == measures


def test_the_probability_of_lies_is_that_of_drawing_only_liars() -> None:
    """Without replacement, and for each node that could be convicted."""
    nodes, partners = 64, 2
    exact = nodes * math.comb(liars_among(nodes), partners) / math.comb(nodes - 1, partners)
    drawn = [(1, nodes - 1)] * partners
    assert liars_may_explain(nodes, drawn, exact * 0.999)
    assert not liars_may_explain(nodes, drawn, exact * 1.001)
    assert exact > FALSE_NODES


def test_two_crashes_beside_the_same_partner_convict_nobody() -> None:
    """They count as much against the partner, which may have sent what made the ranks crash."""
    diagnosis = judged(fleet(8), crashed(V, L, by=V), *well(8), crashed(V, L, by=V))
    assert diagnosis.culprits == ()
    assert {V, L} == {node for node in diagnosis.inconclusive if diagnosis.nodes.is_suspect(node)}


def test_crashes_with_several_partners_convict_the_common_node() -> None:
    """Not the nodes that crashed with it and pass with others."""
    victims = ("n2", "n4", "n6")
    beside = [crashed(victim, L, by=victim) for victim in victims]
    others = [ran("n2", "n3"), ran("n4", "n5"), ran("n6", "n7")]
    diagnosis = judged(fleet(8), *well(8), *beside, *others)
    assert diagnosis.convicted == {L}
    assert diagnosis.cleared >= set(victims)


@pytest.mark.parametrize(("nodes", "partners"), [(16, 2), (64, 4)])
def test_crashes_with_enough_partners_convict_a_node(nodes: int, partners: int) -> None:
    """So many that they are hardly ever all liars; one fewer is not enough."""
    crashes = [crashed(V, f"n{number}", by=V) for number in range(2, 2 + 2 * partners, 2)]
    assert judged(fleet(nodes), *well(nodes), *crashes[1:]).culprits == ()
    (culprit,) = judged(fleet(nodes), *well(nodes), *crashes).culprits
    assert (culprit.part, culprit.of) == (Part.NODE, (V,))


def test_a_crash_alone_needs_no_partner() -> None:
    """No other node can be the cause."""
    alone = GroupRun(group="alone", members=(V,), outcome=RunOutcome.BAD, crashed=frozenset({V}), hard=True)
    (culprit,) = judged(fleet(64), crashed(V, L, by=V), *well(64), alone).culprits
    assert culprit.of == (V,)


def test_crashes_in_a_large_group_convict_nobody() -> None:
    """Any of the others may be the cause, however often they run together; only the crashed node is a suspect."""
    everybody = tuple(fleet(16))
    diagnosis = judged(fleet(16), *(crashed(*everybody, by=V) for _ in range(3)))
    assert diagnosis.culprits == ()
    assert [node for node in diagnosis.inconclusive if diagnosis.nodes.is_suspect(node)] == [V]


def test_partners_that_were_not_drawn_at_random_do_not_count() -> None:
    """Suspects meet each other, so a liar could fail on purpose to choose whom it meets."""
    sites = fleet(16)
    suspects = [ran("n2", "n3", at=0.5), ran(L, "n4", at=0.5), ran(V, "n5", at=0.5)]
    among_them = [ran(V, L, at=0.5), ran(V, "n2", at=0.5)]
    passed_since = [ran(L, "n2"), ran("n5", "n6")]
    runs = (*well(16, first=6), *suspects, *among_them, *passed_since)
    evidence = GroupEvidence(sites, runs)
    assert drawn_partners(evidence, V, runs[-5:]) == [("n5",)]
    assert drawn_partners_missing(evidence, V, runs[-5:]) == 1


@pytest.mark.parametrize(("gathered", "missing"), [(0, 0), (12, 3)])
def test_several_partners_from_one_leaf_count_less(gathered: int, missing: int) -> None:
    """All liars may claim the leaf of their victim."""
    sites = fleet(256, leaf_of=20)
    near, far = [f"n{number}" for number in (2, 4, 6, 8)], [f"n{number}" for number in (40, 60, 80, 100)]
    partners = [near[0], *far[:3]] if not gathered else near
    runs = (*well(256), *(ran(V, partner, at=0.5) for partner in partners))
    assert drawn_partners_missing(GroupEvidence(sites, runs), V, runs[-4:]) == missing


def test_one_impossible_measurement_makes_no_other_node_slow() -> None:
    """A liar that runs alone claims an impossible bandwidth, beside a suspect and two randomly drawn nodes."""
    suspects = [ran(V, L, at=0.5), *well(16)]
    alone = [ran(V), ran(L, at=1e300), ran("n2"), ran("n4")]
    evidence = GroupEvidence(fleet(16), (*suspects, *alone))
    threshold = evidence.thresholds.of(ran(V))
    assert threshold is not None
    assert threshold.typical == 1.5
    assert judged(fleet(16), *suspects, *alone, alone=True).culprits == ()
    slow = [ran(V, at=0.7), *alone[1:], ran(V, at=0.7)]
    assert judged(fleet(16), *suspects, *slow, alone=True).convicted == {V}


@cases("count", [2, 3, 4, 5, 20])
def test_nodes_alone_are_not_compared_with_the_best(count: int) -> None:
    """One node that claims an impossible bandwidth makes no other node slow, however few there are."""
    runs = [ran(f"n{number}", at=1e300 if number == 1 else 1.5) for number in range(count)] * 2
    assert judged(fleet(count), *runs, alone=True).convicted == frozenset()


def test_an_impossible_measurement_of_a_pair_makes_nobody_slow() -> None:
    """The lower measurement of a pair counts, so both of its nodes must lie."""
    pairs = [ran("n0", "n1", at=1e300), *well(64)]
    assert judged(fleet(64), *pairs).nodes.suspects == {}


def test_always_the_same_node_makes_no_path_bad() -> None:
    """A liar is bad with each node of one leaf. To convict the path, other pairs must be bad too."""
    sites = fleet(12, leaf_of=4, places_itself=False)
    passed = [ran("n0", "n8"), ran("n1", "n9"), ran("n4", "n10"), ran("n5", "n11"), ran("n6", "n2"), ran("n7", "n3")]
    sites_passed = [*passed[:4], ran("n6", "n8"), ran("n7", "n9"), ran("n2", "n10"), ran("n3", "n11")]
    by_one = [ran("n0", victim, at=0.3) for victim in ("n4", "n5", "n6", "n7")]
    assert judged(sites, *sites_passed, *by_one).culprits == ()
    by_all = [ran(f"n{number}", f"n{number + 4}", at=0.3) for number in range(4)]
    (culprit,) = judged(sites, *sites_passed, *by_all).culprits
    assert (culprit.part, culprit.of) == (Part.PATH, ("leaf0", "leaf1"))


@pytest.mark.parametrize(("places_itself", "culprits"), [(True, 0), (False, 1)])
def test_liars_with_their_own_leaf_make_no_path_bad(places_itself: bool, culprits: int) -> None:
    """If only the nodes themselves claim the leaf, all of its few nodes may lie."""
    sites = fleet(128, leaf_of=6, places_itself=places_itself)
    passed = [ran(f"n{number}", f"n{number + 12}") for number in range(104) if number % 24 < 12]
    across = [ran(f"n{number}", f"n{number + 6}", at=0.3) for number in range(6)]
    assert len(judged(sites, *passed, *across).paths.convicted) == culprits


@pytest.mark.parametrize(("places_itself", "pairs"), [(True, 0), (False, 2)])
def test_a_path_that_cannot_be_convicted_is_not_tested_further(*, places_itself: bool, pairs: int) -> None:
    """If all nodes at one end may lie, no number of runs settles it."""
    sites = fleet(128, leaf_of=6, places_itself=places_itself)
    passed = [ran(f"n{number}", f"n{number + 12}") for number in range(104) if number % 24 < 12]
    across = [ran(f"n{number}", f"n{number + 6}", at=0.3) for number in range(2)]
    asked = follow_up(judged(sites, *passed, *across), frozenset(), seed="s", passes=1)
    assert sum({sites[node].leaf for node in probe.members} == {"leaf0", "leaf1"} for probe in asked) == pairs


@pytest.mark.parametrize(
    ("nodes", "places_itself", "expected"), [(256, True, True), (256, False, False), (16, True, False)]
)
def test_a_leaf_that_may_consist_of_liars(nodes: int, places_itself: bool, expected: bool) -> None:
    """It has no more nodes than may lie, and only they claim it."""
    evidence = GroupEvidence(fleet(nodes, leaf_of=4, places_itself=places_itself), ())
    assert may_be_all_liars(evidence, "leaf0") is expected


def test_a_node_that_is_bad_with_several_good_nodes_is_not_cleared() -> None:
    """Although one node passes with it. No node and no path is convicted."""
    sites = fleet(16)
    framed = [ran(L, victim, at=0.3) for victim in ("n2", "n4", "n6")]
    diagnosis = judged(sites, *well(16), ran(L, V), *framed)
    assert diagnosis.inconclusive == (L,)
    assert diagnosis.nodes.is_suspect(L)
    assert diagnosis.clearance.spoilers == {L}
    assert not diagnosis.paths.unexplained
    assert judged(sites, *well(16), ran(L, V), *framed[1:]).clearance.spoilers == frozenset()


def test_a_liar_cannot_claim_a_shared_host_for_another_node() -> None:
    """Nodes on one host may be slower. That is no excuse for a node that shares no host with its other partners."""
    shared = GroupRun(group="s", members=(V, L), outcome=RunOutcome.GOOD, objective=1.5, on_one_host=True)
    evidence = GroupEvidence(fleet(16), (shared, *well(16), ran(V, "n2"), ran(V, "n4"), ran("n2"), ran("n4")))
    assert evidence.thresholds.is_slow(ran(V, at=0.9))
    assert not evidence.thresholds.is_slow(ran(L, at=0.9)), "which meets nobody else"
