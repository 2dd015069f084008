"""Who is at fault where fleets are small, ranks crash, and nobody said where nodes stand."""

import itertools
from dataclasses import replace

import pytest
from tests.cases import cases
from tests.coordinator.localize.runs import fleet

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.planning.follow_up import follow_up
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.rules.evidence_against import disjoint
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

_numbers = itertools.count()


def ran(*members: str, at: float = 1.5) -> GroupRun:
    """A run that went well at `at` GB/s."""
    return GroupRun(group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.GOOD, objective=at)


def failed(*members: str, by: str = "", hard: bool = False) -> GroupRun:
    """A run that failed, perhaps because the ranks of one member crashed."""
    return GroupRun(
        group=f"g{next(_numbers)}",
        members=members,
        outcome=RunOutcome.BAD,
        crashed=frozenset(by),
        hard=hard or bool(by),
        detail="wrong elements",
    )


def judged(*runs: GroupRun, nodes: str = "abcdefgh", leaf: str | None = None) -> Diagnosis:
    sites = {node: Site(node, leaf=leaf) for node in nodes}
    return Diagnosis(GroupEvidence(sites, runs), CheckAbilities(alone=False, by_rail=False))


def culprits(diagnosis: Diagnosis) -> set[tuple[Part, str]]:
    return {(culprit.part, "".join(culprit.of)) for culprit in diagnosis.culprits}


def asked(diagnosis: Diagnosis) -> set[str]:
    return {"".join(probe.members) for probe in follow_up(diagnosis, frozenset(), seed="s", passes=1)}


WELL = (ran("c", "d"), ran("e", "f"), ran("g", "h"))


def test_no_evidence_leaves_everything_open() -> None:
    """Without runs, or with void ones only."""
    void = GroupRun(group="g", members=("a", "b"), outcome=RunOutcome.VOID)
    for diagnosis in (judged(), judged(void)):
        assert (diagnosis.inconclusive, diagnosis.culprits, diagnosis.nodes.suspects) == (tuple("abcdefgh"), (), {})


def test_a_bad_pair_makes_two_suspects() -> None:
    """Membership alone convicts nobody."""
    diagnosis = judged(ran("a", "b", at=0.1), *WELL)
    assert (diagnosis.culprits, diagnosis.inconclusive) == ((), ("a", "b"))
    assert diagnosis.nodes.is_suspect("a") and diagnosis.nodes.is_suspect("b") and not diagnosis.nodes.is_suspect("c")


def test_slow_with_everyone_is_convicted() -> None:
    """Its partner is cleared by somebody else, which makes it one that speaks against it."""
    runs = [ran("a", "b", at=0.1), *WELL, ran("b", "c")]
    for partner in "ceg":
        assert culprits(judged(*runs)) == set()
        runs.append(ran("a", partner, at=0.1))
    diagnosis = judged(*runs)
    assert culprits(diagnosis) == {(Part.NODE, "a")}
    assert diagnosis.inconclusive == ()


def test_of_three_nodes_one_that_fails_with_both_is_convicted() -> None:
    """The other two have passed together."""
    pair = (ran("a", "b", at=0.3), ran("b", "c"))
    assert (culprits(judged(*pair, nodes="abc")), asked(judged(*pair, nodes="abc"))) == (set(), {"ac"})
    assert culprits(judged(*pair, ran("a", "c", at=0.3), nodes="abc")) == {(Part.NODE, "a")}
    assert culprits(judged(failed("a", "b"), failed("a", "c"), ran("b", "c"), nodes="abc")) == {(Part.NODE, "a")}
    assert culprits(judged(failed("a", "b"), failed("a", "c"), failed("b", "c"), nodes="abc")) == set()


def test_of_two_nodes_nobody_can_be_told_apart() -> None:
    """However often they fail together."""
    diagnosis = judged(*(failed("a", "b", hard=True) for _ in range(5)), nodes="ab")
    assert (diagnosis.culprits, diagnosis.inconclusive, asked(diagnosis)) == ((), ("a", "b"), set())


def test_suspects_meet_each_other_as_long_as_nobody_has_passed() -> None:
    """A node in each of two bad pairs can still be found by crossing them."""
    assert asked(judged(failed("a", "b"), failed("c", "d"), nodes="abcd")) == {"ac", "bd"}


def test_a_crash_counts_against_the_partner_too() -> None:
    """One crash makes two suspects; a second crash with another partner convicts the node."""
    once = failed("a", "b", by="b")
    diagnosis = judged(once, *WELL)
    assert [node for node in "abcdefgh" if diagnosis.nodes.is_suspect(node)] == ["a", "b"]
    assert culprits(diagnosis) == set()
    diagnosis = judged(once, *WELL, failed("b", "c", by="b"))
    assert [(culprit.of, culprit.confidence) for culprit in diagnosis.culprits] == [(("b",), 0.96)]


def test_a_crash_takes_back_an_earlier_clearance() -> None:
    """Of both members. Later good runs clear both of them again, or neither: only one of them caused the crash."""
    runs = (*WELL, ran("a", "b"), failed("a", "c", by="a"))
    assert judged(*runs).inconclusive == ("a", "c")
    assert judged(*runs, ran("a", "e")).inconclusive == ("a", "c")
    assert judged(*runs, ran("a", "e"), ran("c", "f")).inconclusive == ()
    assert judged(*runs, ran("a", "e"), failed("c", "f", by="c")).inconclusive == ("c", "f")


def test_a_pair_that_has_passed_since_can_judge_others() -> None:
    """It was slow once by chance."""
    diagnosis = judged(ran("a", "b", at=0.9), *WELL, ran("a", "c"), ran("b", "d"), ran("a", "b"))
    assert {"a", "b"} <= {*diagnosis.partners}


def test_what_a_liar_claims_in_a_broken_run_takes_back_no_clearance() -> None:
    """Its partners have passed elsewhere, if never as fast as that."""
    boasts = [replace(failed("a", partner, by=partner), objective=1e29) for partner in "be"]
    diagnosis = judged(ran("c", "e"), *boasts, ran("b", "c"), ran("b", "e"), nodes="abce")
    assert diagnosis.cleared >= {"b", "c", "e"}


def test_groups_within_groups_count_once() -> None:
    """What is bad between two nodes spoils every group that has both."""
    assert disjoint([("b", "c", "d"), ("b",), ("e", "f"), ("f",), ("b",)]) == [("b",), ("f",)]
    nested = (failed(*"abcdefgh"), failed(*"abcd"), failed("a", "b"))
    well = (ran("c", "d"), ran("e", "f"), ran("g", "h"), ran("b", "c"))
    assert culprits(judged(*nested, *well)) == set()


@pytest.mark.parametrize("alike", [True, False])
def test_many_that_fail_alike_may_stand_behind_one_switch(alike: bool) -> None:
    """Nobody is convicted of it as long as nobody said who shares a leaf; they meet each other to find out."""
    shares = (0.5, 0.5, 0.52) if alike else (0.1, 0.3, 0.9)
    partners = ("def", "efg", "fgh")
    sets = zip("abc", shares, partners, strict=True)
    bad = [ran(node, partner, at=share) for node, share, those in sets for partner in those]
    chain = [ran(*pair) for pair in itertools.pairwise("defghijk")]
    more = [ran(node, "k", at=share) for node, share in zip("abc", shares, strict=True)]
    diagnosis = judged(*bad, *chain, *more, nodes="abcdefghijk")
    if alike:
        assert diagnosis.culprits == ()
        assert diagnosis.links.one_switch.alike == {*diagnosis.inconclusive} == {*"abc"}
        assert "ab" in asked(diagnosis)
    else:
        assert culprits(diagnosis) == {(Part.NODE, node) for node in "abc"}


@pytest.mark.parametrize("tried", [4, 1])
def test_two_that_fail_alike_may_share_a_switch(tried: int) -> None:
    """Nobody is convicted of it, however few partners the second one has been tried with so far."""
    bad = [ran(node, partner, at=0.5) for node, those in (("a", 4), ("b", tried)) for partner in "cdef"[:those]]
    diagnosis = judged(*bad, *(ran(*pair) for pair in itertools.pairwise("cdefgh")))
    assert (culprits(diagnosis), diagnosis.inconclusive) == (set(), ("a", "b"))


def test_wrong_elements_are_not_like_slow_ones() -> None:
    """Who brings them about is convicted, though two others come to as little."""
    partners = [*zip("abc", ("defg", "efgh", "fghi"), strict=True)]
    slow = [ran(node, partner, at=0.5) for node, those in partners[1:] for partner in those]
    wrong = [replace(failed("a", partner), objective=0.5) for partner in partners[0][1]]
    diagnosis = judged(*wrong, *slow, *(ran(*pair) for pair in itertools.pairwise("defghijk")), nodes="abcdefghijk")
    assert culprits(diagnosis) == {(Part.NODE, "a")}
    assert diagnosis.links.one_switch.alike == {"b", "c"}


@pytest.mark.parametrize(("on_one_host", "expected"), [(False, {(Part.LINK, "ab")}), (True, set())])
def test_nodes_that_share_a_host_get_more_leave(on_one_host: bool, expected: set[tuple[Part, str]]) -> None:
    """They take its cores from each other, so that only what lacks 60 % of what others reach counts as slow."""
    well = [*WELL, ran("a", "c"), ran("b", "d")]
    apart = [*well, ran("a", "b", at=1.0), ran("a", "d"), ran("a", "b", at=1.0), ran("b", "c"), ran("a", "h")]
    runs = [replace(run, on_one_host=on_one_host) for run in apart]
    assert culprits(judged(*runs)) == expected
    assert judged(*runs).evidence.thresholds.is_slow(replace(runs[-1], objective=0.5))


def test_pairs_on_two_cores() -> None:
    """What pairs of healthy nodes reached on one host while others took its cores; e has a link of a twentieth."""
    reached = {"bf": 1.71, "ed": 0.10, "ab": 1.42, "df": 0.78, "ad": 1.00, "ef": 0.10, "bd": 0.85, "ae": 0.09}
    runs = [replace(ran(*pair, at=at), on_one_host=True) for pair, at in reached.items()]
    assert culprits(judged(*runs, nodes="abdef")) == {(Part.NODE, "e")}


def test_two_that_share_a_host_give_no_leave_to_others() -> None:
    """Beside them, a run of nodes with hosts of their own is as slow as ever."""
    shared = replace(ran("g", "h"), on_one_host=True)
    evidence = judged(*WELL, ran("a", "c"), shared, ran("a", "b", at=1.0)).evidence
    assert evidence.thresholds.is_slow(ran("a", "b", at=1.0))
    assert not evidence.thresholds.is_slow(replace(shared, objective=1.0))
    assert not evidence.thresholds.is_slow(replace(shared, objective=0.7))
    assert evidence.thresholds.is_slow(replace(shared, objective=0.5))


@cases("known", ["", "c", "bc", "abc", "d", "abcdefghijk"])
def test_the_leaf_of_some_tells_nothing_of_the_others(known: str) -> None:
    """Nobody behind a bad switch is convicted, whether its leaf is known or only that of others."""
    bad = [failed(node, partner) for node in "abc" for partner in ("h", "i", "j", "k")]
    runs = (*bad, failed("a", "b"), *(ran(*pair) for pair in itertools.pairwise("defghijk")))
    leaves = {node: "bad" if node in "abc" else "good" for node in known}
    sites = {node: Site(node, leaf=leaves.get(node)) for node in "abcdefghijk"}
    diagnosis = Diagnosis(GroupEvidence(sites, runs), CheckAbilities(alone=False, by_rail=False))
    assert (diagnosis.convicted, diagnosis.paths.convicted) == (frozenset(), {})


def test_what_has_barely_passed_may_barely_fail() -> None:
    """No path between two nodes is to blame for what they hardly exceed elsewhere."""
    values = {"ab": 1.5, "cd": 1.4, "ef": 1.3, "bc": 1.2, "de": 1.15, "fa": 1.1, "gh": 1.1}
    runs = [ran(*pair, at=at) for pair, at in values.items()]
    barely, clearly = (judged(*runs, *(ran("g", "a", at=at) for _ in range(9)), ran("a", "b")) for at in (0.9, 0.2))
    assert barely.evidence.thresholds.is_bad(barely.evidence.runs[-2])
    assert (culprits(barely), culprits(clearly)) == (set(), {(Part.LINK, "ag")})


def typed(*runs: GroupRun, old: str) -> Diagnosis:
    """What is judged where some nodes are of an older machine type."""
    sites = {node: Site(node, hardware_kind="old" if node in old else "new") for node in "abcdefgh"}
    return Diagnosis(GroupEvidence(sites, runs), CheckAbilities())


def test_rare_hardware_of_which_nobody_has_passed_is_not_at_fault() -> None:
    """Its nodes may all be slower by what they are. They are left open, and their partners are no suspects."""
    alone = [ran(node, at=0.7 if node in "ab" else 1.5) for node in "abef"]
    mixed = (*WELL, ran("a", "b", at=0.7), ran("a", "c", at=0.7), ran("b", "d", at=0.7), *alone)
    diagnosis = typed(*mixed, old="ab")
    assert (diagnosis.culprits, diagnosis.inconclusive, diagnosis.nodes.suspects) == ((), ("a", "b"), {})


def test_rare_hardware_of_which_one_has_passed_is_compared() -> None:
    """As are nodes of any type that break."""
    slow = (*WELL, ran("a", "c", at=0.7), ran("a", at=0.7), ran("a", at=0.7), *map(ran, "ef"))
    assert culprits(typed(*slow, ran("b", "d"), old="ab")) == {(Part.NODE, "a")}
    assert culprits(typed(failed("a", "c", by="a"), failed("a", "d", by="a"), *WELL, old="ab")) == {(Part.NODE, "a")}


def test_who_has_most_runs_of_its_hardware_does_not_say_what_is_usual() -> None:
    """Of two old nodes one is bad with everyone and alone, and runs more often than the other."""
    bad = [ran("a", other, at=0.7) for other in "cdef"]
    alone = [ran("a", at=0.7), ran("a", at=0.7), *map(ran, "gh")]
    assert culprits(typed(*WELL, ran("b", "d"), *bad, *alone, old="ab")) == {(Part.NODE, "a")}


def test_who_fails_on_one_side_only_may_be_behind_a_path() -> None:
    """Two sides that have not met: a node is convicted when it fails on both."""
    runs = [ran("b", "c"), ran("c", "d"), ran("d", "e"), ran("f", "g"), ran("g", "h")]
    runs += [ran("a", partner, at=0.3) for partner in "bcde"]
    assert culprits(judged(*runs)) == set()
    assert culprits(judged(*runs, ran("a", "f", at=0.3))) == {(Part.NODE, "a")}


def test_where_something_is_bad_between_others_a_node_has_to_fail_at_both_ends() -> None:
    """Otherwise it may be the same thing."""
    runs = [*(ran(*pair) for pair in itertools.pairwise("bcdefgh")), ran("b", "h", at=0.3)]
    runs += [ran("a", partner, at=0.3) for partner in "bcde"]
    assert culprits(judged(*runs)) == set()
    assert culprits(judged(*runs, ran("a", "h", at=0.3))) == {(Part.NODE, "a")}


def test_retries_do_not_shift_what_is_typical() -> None:
    """However often a slow node is tried, what the many reach stays the measure."""
    slow = [ran("a", partner, at=0.3) for partner in "bcdefgh" for _ in range(3)]
    level = judged(*WELL, ran("a", "b", at=0.3), *slow).evidence.thresholds.of(slow[0])
    assert level is not None
    assert level.typical == 1.5


def test_a_path_that_was_bad_in_its_only_run_is_inconclusive() -> None:
    """Its nodes have passed elsewhere, and nobody else could try it. A good run settles it."""
    sites = fleet(12, leaf_of=3, places_itself=False)
    passed = [ran("n0", "n6"), ran("n1", "n7"), ran("n2", "n9"), ran("n3", "n8"), ran("n4", "n10"), ran("n5", "n11")]
    hung = failed("n0", "n3")
    diagnosis = Diagnosis(GroupEvidence(sites, (*passed, hung)), CheckAbilities())
    assert [path.ends for path in diagnosis.inconclusive_paths] == [("leaf0", "leaf1")]
    assert (diagnosis.culprits, diagnosis.inconclusive) == ((), ())
    again = Diagnosis(GroupEvidence(sites, (*passed, hung, ran("n1", "n4"))), CheckAbilities())
    assert again.inconclusive_paths == ()


def test_a_run_across_slow_uplinks_does_not_clear_a_node_that_was_slow_inside() -> None:
    """Uplinks carry three quarters of what is reached inside, and n0 delivers 70 %."""
    sites = fleet(16, leaf_of=4)
    across = [ran(f"n{n}", f"n{(n + 4) % 16}", at=0.7 if n == 0 else 0.75) for n in (0, 1, 2, 3, 8, 9, 10, 11)]
    inside = [ran(f"n{n}", f"n{n + 1}") for n in range(2, 16, 2)]
    diagnosis = Diagnosis(GroupEvidence(sites, (*across, *inside, ran("n0", "n1", at=1.05))), CheckAbilities())
    assert diagnosis.inconclusive == ("n0", "n1")


def test_rare_hardware_that_passed_in_a_slow_group_is_not_proven() -> None:
    """Of three kinds that run together, one that reaches half of the best has shown nothing about itself."""
    alone = [ran(node, at=0.7 if node in "ab" else 1.5) for node in "abef"]
    diagnosis = typed(*WELL, ran("a", "b", at=0.7), ran("a", "c", at=1.2), *alone, old="ab")
    assert diagnosis.convicted == frozenset()
