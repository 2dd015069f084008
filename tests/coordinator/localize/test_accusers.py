"""Whose word counts against a node when some lie: each way in which liars could have had somebody convicted."""

import itertools
import math

import pytest

from muster_coordinator.liars import liars_among
from muster_coordinator.localize.accusers import accusers, accusers_missing, may_be_of_liars
from muster_coordinator.localize.chance import MISTAKES, may_be_lies, measures_beyond_lies
from muster_coordinator.localize.culprit import Part
from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Abilities, Site
from muster_coordinator.localize.settling import settling
from muster_coordinator.localize.trial import Outcome, Trial

_numbers = itertools.count()

V, L = "n0", "n1"
"""A healthy node, and one that lies about it."""


def ran(*members: str, at: float = 1.5) -> Trial:
    return Trial(group=f"g{next(_numbers)}", members=members, outcome=Outcome.GOOD, objective=at)


def crashed(*members: str, by: str) -> Trial:
    return Trial(group=f"g{next(_numbers)}", members=members, outcome=Outcome.BAD, crashed=frozenset({by}), hard=True)


def fleet(count: int, *, leaf_of: int = 0, places_itself: bool = True) -> dict[str, Site]:
    """Nodes of which so many share a leaf; of which nobody knows the leaf when that is 0."""
    return {
        f"n{it}": Site(f"n{it}", leaf=f"leaf{it // leaf_of}" if leaf_of else None, places_itself=places_itself)
        for it in range(count)
    }


def judged(sites: dict[str, Site], *trials: Trial, alone: bool = False) -> Judgement:
    return Judgement(Evidence(sites, trials), Abilities(alone=alone, by_rail=False))


def well(count: int, first: int = 2) -> list[Trial]:
    """All from this number on have passed in pairs."""
    return [ran(f"n{it}", f"n{it + 1}") for it in range(first, count - 1, 2)]


@pytest.mark.parametrize(
    ("nodes", "liars", "partners", "measures"),
    [(2, 1, 2, 2), (16, 1, 2, 2), (39, 1, 2, 2), (40, 2, 3, 3), (128, 6, 4, 3), (1024, 51, 5, 3), (10_000, 500, 6, 3)],
)
def test_so_many_partners_do_not_all_lie(nodes: int, liars: int, partners: int, measures: int) -> None:
    """The fewest for which chance draws liars only for one node of the whole fleet in a thousand sweeps."""
    assert liars_among(nodes) == liars
    drawn = [(1, nodes - 1)] * partners
    assert not may_be_lies(nodes, drawn)
    assert may_be_lies(nodes, drawn[1:])
    assert measures_beyond_lies(nodes) == measures


def test_the_chance_of_lies_is_that_of_drawing_liars_only() -> None:
    """Counted over all draws without putting back, for each node that could be accused."""
    nodes, partners = 64, 2
    exact = nodes * math.comb(liars_among(nodes), partners) / math.comb(nodes - 1, partners)
    drawn = [(1, nodes - 1)] * partners
    assert may_be_lies(nodes, drawn, exact * 0.999)
    assert not may_be_lies(nodes, drawn, exact * 1.001)
    assert exact > MISTAKES


def test_two_crashes_beside_the_same_partner_convict_nobody() -> None:
    """They say as much about the partner: it may have sent what no rank survives."""
    judgement = judged(fleet(8), crashed(V, L, by=V), *well(8), crashed(V, L, by=V))
    assert judgement.culprits == ()
    assert {V, L} == {node for node in judgement.open if judgement.is_suspect(node)}


def test_crashes_beside_several_partners_convict_who_is_in_all() -> None:
    """The partner of all of them, not those that crashed beside it and are well with others."""
    victims = ("n2", "n4", "n6")
    beside = [crashed(victim, L, by=victim) for victim in victims]
    others = [ran("n2", "n3"), ran("n4", "n5"), ran("n6", "n7")]
    judgement = judged(fleet(8), *well(8), *beside, *others)
    assert judgement.failed == {L}
    assert judgement.cleared >= set(victims)


@pytest.mark.parametrize(("nodes", "partners"), [(16, 2), (64, 4)])
def test_who_crashes_beside_enough_partners_is_convicted(nodes: int, partners: int) -> None:
    """As many as cannot all lie."""
    crashes = [crashed(V, f"n{it}", by=V) for it in range(2, 2 + 2 * partners, 2)]
    assert judged(fleet(nodes), *well(nodes), *crashes[1:]).culprits == ()
    (culprit,) = judged(fleet(nodes), *well(nodes), *crashes).culprits
    assert (culprit.part, culprit.of) == (Part.NODE, (V,))


def test_a_crash_alone_needs_no_accuser() -> None:
    """Nobody else can have brought it about."""
    alone = Trial(group="alone", members=(V,), outcome=Outcome.BAD, crashed=frozenset({V}), hard=True)
    (culprit,) = judged(fleet(64), crashed(V, L, by=V), *well(64), alone).culprits
    assert culprit.of == (V,)


def test_in_a_large_group_a_crash_speaks_against_nobody_else_and_convicts_nobody() -> None:
    """Any of the others may have brought it about, however often they run together."""
    everybody = tuple(fleet(16))
    judgement = judged(fleet(16), *(crashed(*everybody, by=V) for _ in range(3)))
    assert judgement.culprits == ()
    assert [node for node in judgement.open if judgement.is_suspect(node)] == [V]


def test_partners_that_lots_did_not_draw_accuse_nobody() -> None:
    """Who fails just as others do meets them, and could choose so whom it accuses."""
    sites = fleet(16)
    suspects = [ran("n2", "n3", at=0.5), ran(L, "n4", at=0.5), ran(V, "n5", at=0.5)]
    among_them = [ran(V, L, at=0.5), ran(V, "n2", at=0.5)]
    passed_since = [ran(L, "n2"), ran("n5", "n6")]
    trials = (*well(16, first=6), *suspects, *among_them, *passed_since)
    evidence = Evidence(sites, trials)
    assert accusers(evidence, V, trials[-5:]) == [("n5",)]
    assert accusers_missing(evidence, V, trials[-5:]) == 1


@pytest.mark.parametrize(("gathered", "missing"), [(0, 0), (12, 3)])
def test_partners_from_a_leaf_count_less_when_several_come_from_there(gathered: int, missing: int) -> None:
    """All liars may say that they stand at the leaf of their victim."""
    sites = fleet(256, leaf_of=20)
    near, far = [f"n{it}" for it in (2, 4, 6, 8)], [f"n{it}" for it in (40, 60, 80, 100)]
    partners = [near[0], *far[:3]] if not gathered else near
    trials = (*well(256), *(ran(V, partner, at=0.5) for partner in partners))
    assert accusers_missing(Evidence(sites, trials), V, trials[-4:]) == missing


def test_no_figure_of_one_node_alone_makes_others_slow() -> None:
    """A liar reaches a thousand times of what is possible, beside a suspect and two that lots drew as measure."""
    suspects = [ran(V, L, at=0.5), *well(16)]
    alone = [ran(V), ran(L, at=1e300), ran("n2"), ran("n4")]
    evidence = Evidence(fleet(16), (*suspects, *alone))
    assert evidence.level_alone is not None
    assert evidence.level_alone.typical == 1.5
    assert judged(fleet(16), *suspects, *alone, alone=True).culprits == ()
    slow = [ran(V, at=0.7), *alone[1:]]
    assert judged(fleet(16), *suspects, *slow, alone=True).failed == {V}


@pytest.mark.parametrize("count", [2, 3, 4, 5, 20])
def test_a_fleet_of_which_each_runs_alone_is_not_measured_by_its_best(count: int) -> None:
    """One that claims what nobody else reaches makes nobody slow, however few they are."""
    trials = [ran(f"n{it}", at=1e300 if it == 1 else 1.5) for it in range(count)] * 2
    assert judged(fleet(count), *trials, alone=True).failed == frozenset()


def test_two_that_claim_the_impossible_together_make_nobody_slow() -> None:
    """Who measures less in a pair counts, so that it takes two of them."""
    pairs = [ran("n0", "n1", at=1e300), *well(64)]
    assert judged(fleet(64), *pairs).stuck == {}


def test_always_the_same_node_makes_no_path_bad() -> None:
    """A liar is bad with each that it meets from one leaf; another pair has to be, too."""
    sites = fleet(12, leaf_of=4, places_itself=False)
    passed = [ran("n0", "n8"), ran("n1", "n9"), ran("n4", "n10"), ran("n5", "n11"), ran("n6", "n2"), ran("n7", "n3")]
    sites_passed = [*passed[:4], ran("n6", "n8"), ran("n7", "n9"), ran("n2", "n10"), ran("n3", "n11")]
    by_one = [ran("n0", victim, at=0.3) for victim in ("n4", "n5", "n6", "n7")]
    assert judged(sites, *sites_passed, *by_one).culprits == ()
    by_all = [ran(f"n{it}", f"n{it + 4}", at=0.3) for it in range(4)]
    (culprit,) = judged(sites, *sites_passed, *by_all).culprits
    assert (culprit.part, culprit.of) == (Part.PATH, ("leaf0", "leaf1"))


@pytest.mark.parametrize(("places_itself", "culprits"), [(True, 0), (False, 1)])
def test_liars_with_a_leaf_of_their_own_make_no_path_bad(places_itself: bool, culprits: int) -> None:
    """Where only they say that they stand there, as many nodes may lie as the leaf has."""
    sites = fleet(128, leaf_of=6, places_itself=places_itself)
    passed = [ran(f"n{it}", f"n{it + 12}") for it in range(104) if it % 24 < 12]
    across = [ran(f"n{it}", f"n{it + 6}", at=0.3) for it in range(6)]
    assert len(judged(sites, *passed, *across).paths) == culprits


@pytest.mark.parametrize(("places_itself", "pairs"), [(True, 0), (False, 3)])
def test_a_path_that_cannot_be_convicted_is_not_tried_on(*, places_itself: bool, pairs: int) -> None:
    """Where all nodes at one end may lie, no number of runs tells."""
    sites = fleet(128, leaf_of=6, places_itself=places_itself)
    passed = [ran(f"n{it}", f"n{it + 12}") for it in range(104) if it % 24 < 12]
    across = [ran(f"n{it}", f"n{it + 6}", at=0.3) for it in range(2)]
    asked = settling(judged(sites, *passed, *across), frozenset(), seed="s", passes=1)
    assert sum({sites[node].leaf for node in probe.members} == {"leaf0", "leaf1"} for probe in asked) == pairs


@pytest.mark.parametrize(
    ("nodes", "places_itself", "expected"), [(256, True, True), (256, False, False), (16, True, False)]
)
def test_a_leaf_that_may_be_of_liars_only(nodes: int, places_itself: bool, expected: bool) -> None:
    """As many as may lie say that they stand there, and nobody else does."""
    evidence = Evidence(fleet(nodes, leaf_of=4, places_itself=places_itself), ())
    assert may_be_of_liars(evidence, "leaf0") is expected


def test_who_is_bad_with_several_that_are_well_but_for_it_is_not_cleared() -> None:
    """Though a friend passes with it. Nobody is convicted, and no path to any of the others."""
    sites = fleet(16)
    framed = [ran(L, victim, at=0.3) for victim in ("n2", "n4", "n6")]
    judgement = judged(sites, *well(16), ran(L, V), *framed)
    assert judgement.open == (L,)
    assert judgement.is_suspect(L)
    assert judgement.spoilers == {L}
    assert not judgement.unexplained
    assert judged(sites, *well(16), ran(L, V), *framed[1:]).spoilers == frozenset()


def test_one_that_names_the_address_of_another_gives_it_no_leave() -> None:
    """Half of what others reach alone is slow for a node that shares no host with the others that it met."""
    shared = Trial(group="s", members=(V, L), outcome=Outcome.GOOD, objective=1.5, on_one_host=True)
    evidence = Evidence(fleet(16), (shared, *well(16), ran(V, "n2"), ran(V, "n4"), ran("n2"), ran("n4")))
    assert evidence.is_slow(ran(V, at=0.9))
    assert not evidence.is_slow(ran(L, at=0.9)), "which meets nobody else"
