"""What the adaptive strategy tries next, and whom it holds at fault."""

import itertools
from dataclasses import replace

import pytest
from tests.cases import cases

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.localize.strategies.adaptive import Adaptive
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

_numbers = itertools.count()

PLACES = {f"{leaf}{number}": Site(f"{leaf}{number}", f"rack-{leaf}", leaf) for leaf in "abc" for number in range(1, 5)}
ALL = CheckAbilities()
PASSED = (("a1", "a2"), ("a1", "b1"), ("a2", "b2"), ("a3", "c1"), ("b3", "c2"), ("b4", "c3"))


def ran(*members: str, at: float = 1.0, rails: tuple[float, ...] = ()) -> GroupRun:
    """A run that went well at this share of normal."""
    return GroupRun(
        group=f"g{next(_numbers)}",
        members=members,
        outcome=RunOutcome.GOOD,
        objective=min(rails, default=at),
        rails=rails,
    )


def crashed(*members: str, by: tuple[str, ...] = ()) -> GroupRun:
    return GroupRun(
        group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.BAD, crashed=frozenset(by), hard=bool(by)
    )


def void(*members: str) -> GroupRun:
    return GroupRun(group=f"g{next(_numbers)}", members=members, outcome=RunOutcome.VOID)


def judged(*runs: GroupRun, abilities: CheckAbilities = ALL) -> Diagnosis:
    """What the runs say, beside six pairs that have passed; a4 and c4 have been in none of them."""
    return Adaptive(PLACES, abilities=abilities).diagnose([*(ran(*pair) for pair in PASSED), *runs])


def planned(*runs: GroupRun, absent: frozenset[str] = frozenset()) -> set[tuple[str, ...]]:
    """The groups of the next round, after six pairs that have passed."""
    probes = Adaptive(PLACES).next_groups([*(ran(*pair) for pair in PASSED), *runs], absent)
    members = [node for probe in probes for node in probe.members]
    assert len(members) == len(set(members)), "groups of a round are disjoint"
    return {probe.members for probe in probes}


def culprits(diagnosis: Diagnosis) -> set[tuple[Part, tuple[str, ...], tuple[int, ...]]]:
    return {(culprit.part, culprit.of, culprit.rails) for culprit in diagnosis.culprits}


ALONE = (ran("a1"), ran("b1"))
"""Two nodes that have passed, as measure."""

CONVICTIONS = {
    "nobody without a bad run": ((ran("a4", "c4"),), set()),
    "nobody for one bad run": ((ran("a4", "c4", at=0.3),), set()),
    "nobody for a bad run alone only": ((*ALONE, ran("a4", at=0.3)), set()),
    "nobody by a void run": ((void("a4", "c4"), void("a4"), void("c4")), set()),
    "a node that is slow alone too": (
        (ran("a4", "c4", at=0.3), *ALONE, ran("a4", at=0.3), ran("a4", at=0.3), ran("c4")),
        {(Part.NODE, ("a4",), ())},
    ),
    "a node that crashes alone too": (
        (crashed("a4", "c4"), *ALONE, crashed("a4"), ran("c4")),
        {(Part.NODE, ("a4",), ())},
    ),
    "a node whose own ranks crash twice": (
        (crashed("a4", "c4", by=("a4",)), crashed("a1", "a4", by=("a4",))),
        {(Part.NODE, ("a4",), ())},
    ),
    "nobody for a run that another explains and one alone, when it is good otherwise": (
        (ran("a4", "c4", at=0.2), *ALONE, ran("a4", at=0.2), ran("c4", at=0.7), ran("c4"), ran("c4", "b1")),
        {(Part.NODE, ("a4",), ())},
    ),
    "a node that comes and goes when it is bad three times without such a one": (
        (
            *(ran("a4", "c4", at=0.2), *ALONE, ran("a4", at=0.2), ran("a4", at=0.2), ran("c4", at=0.7), ran("c4")),
            *(ran("b1", "c4", at=0.7), ran("c4", at=0.7)),
        ),
        {(Part.NODE, ("a4",), ()), (Part.NODE, ("c4",), ())},
    ),
    "a node's link when it passes alone and with nobody": (
        (
            ran("a4", "c4", at=0.3),
            ran("c1", "c4"),
            *ALONE,
            ran("a4"),
            *(ran("a4", node, at=0.3) for node in ("a1", "b1")),
        ),
        {(Part.NODE_LINK, ("a4",), ())},
    ),
    "not with two bad partners": (
        (ran("a4", "c4", at=0.3), *ALONE, ran("a4"), ran("a1", "a4", at=0.3)),
        set(),
    ),
    "not with three that came to different things": (
        (ran("a4", "c4", at=0.15), *ALONE, ran("a4"), ran("a1", "a4", at=0.75), ran("a4", "b1", at=0.4)),
        set(),
    ),
    "not without a bad run at its own leaf": (
        (
            *ALONE,
            ran("a4"),
            ran("a4", "c1", at=0.3),
            ran("a4", "c2", at=0.3),
            ran("a4", "c3", at=0.3),
        ),
        set(),
    ),
    "the rail that is slow whenever rails are tried apart": (
        (
            ran("a4", "c4", at=0.3),
            ran("c1", "c4"),
            *ALONE,
            ran("a4"),
            ran("a1", "a4", rails=(1.0, 1.0, 0.3, 1.0)),
            ran("a4", "b1", rails=(1.0, 1.0, 0.3, 1.0)),
        ),
        {(Part.RAIL, ("a4",), (2,))},
    ),
}


@cases(("runs", "expected"), CONVICTIONS.values(), ids=CONVICTIONS)
def test_only_what_nothing_else_explains_is_at_fault(
    runs: tuple[GroupRun, ...], expected: set[tuple[Part, tuple[str, ...], tuple[int, ...]]]
) -> None:
    """Each rule, and what falls just short of it."""
    assert culprits(judged(*runs)) == expected


def test_only_what_counts_against_a_node_that_comes_and_goes_makes_it_certain() -> None:
    """A run that another one explains adds nothing to the confidence."""
    own = (ran("c4", at=0.7), ran("c4", at=0.7), ran("c4", at=0.7), ran("c4"))
    (culprit,) = (
        it for it in judged(ran("a4", "c4", at=0.2), *ALONE, ran("a4", at=0.2), *own).culprits if it.of == ("c4",)
    )
    assert (culprit.intermittent, culprit.runs, culprit.confidence) == (True, own[:3], 0.875)


def test_where_alone_tells_nothing_the_node_is_named() -> None:
    """Node and link cannot be told apart then."""
    runs = (ran("a4", "c4", at=0.3), ran("c1", "c4"), ran("a1", "a4", at=0.3), ran("a4", "b1", at=0.3))
    assert culprits(judged(*runs, abilities=CheckAbilities(alone=False, by_rail=False))) == {(Part.NODE, ("a4",), ())}


def test_a_leaf_is_named_and_not_its_nodes() -> None:
    """All its nodes fail with all others, and pass alone; those behind it are neither cleared nor convicted."""
    pairs = [("a1", "b1"), ("a2", "b2"), ("a3", "c1"), ("a4", "c2")]
    runs = [ran(*pair, at=0.3) for pair in pairs] + [ran("b3", "c3"), ran("b4", "c4")]
    strategy = Adaptive(PLACES)
    groups = {probe.members for probe in strategy.next_groups(runs, frozenset())}
    assert {("a1",), ("a2",), ("a3",), ("a4",)} < groups
    runs += [ran(node) for node in ("a1", "a2", "a3", "a4", "b3", "c3")] + [ran("b1", "b2"), ran("c1", "c2")]
    assert culprits(strategy.diagnose(runs)) == set()
    inside = {("a1", "a2"), ("a3", "a4")}
    assert inside <= {probe.members for probe in strategy.next_groups(runs, frozenset())}
    runs += [ran(*pair, at=0.3) for pair in sorted(inside)]
    diagnosis = strategy.diagnose(runs)
    assert culprits(diagnosis) == {(Part.LEAF, ("a",), ())}
    assert diagnosis.leaves.behind == {"a1", "a2", "a3", "a4"}
    assert diagnosis.inconclusive == ()
    assert strategy.next_groups(runs, frozenset()) == []


@pytest.mark.parametrize("good_again", [False, True])
def test_a_path_is_named_when_its_nodes_are_well(good_again: bool) -> None:
    """It takes four bad runs over it and none that was good; its nodes stay cleared."""
    bad = [ran(f"a{number}", f"c{number}", at=0.3) for number in (1, 2, 3)]
    well = [ran(f"{leaf}{number}", f"b{number}") for leaf in "ac" for number in (1, 2, 3, 4)]
    last = ran("a1", "c2") if good_again else ran("a4", "c4", at=0.3)
    diagnosis = Adaptive(PLACES).diagnose([*bad, *well, last])
    assert culprits(diagnosis) == (set() if good_again else {(Part.PATH, ("a", "c"), ())})
    assert diagnosis.inconclusive == ()


def test_a_link_is_at_fault_only_while_its_nodes_are_still_well_with_others() -> None:
    """Everything may have become slower since; so after two bad runs one of its ends meets somebody else."""
    sites = {node: Site(node) for node in ("a", "b", "c")}
    strategy = Adaptive(sites, abilities=CheckAbilities(alone=False, by_rail=False), seed="s")
    before = [ran("a", "b"), ran("b", "c"), ran("a", "c", at=0.5), ran("a", "c", at=0.5)]
    (control,) = strategy.next_groups(before, frozenset())
    assert set(control.members) in ({"a", "b"}, {"b", "c"})
    repeated = [ran("a", "c", at=0.5) for _ in range(4)]
    assert culprits(strategy.diagnose([*before, *repeated])) == set()
    assert culprits(strategy.diagnose([*before, ran(*control.members, at=0.5), *repeated])) == set()
    assert culprits(strategy.diagnose([*before, ran(*control.members), *repeated])) == {(Part.LINK, ("a", "c"), ())}


@cases("seed", range(10))
def test_the_only_path_between_two_leaves_is_named(seed: int) -> None:
    """When it was never good, every node has failed across it, and all are well among their neighbours."""
    sites = {f"{leaf}{number}": Site(f"{leaf}{number}", None, leaf) for leaf in "ab" for number in range(3)}
    strategy = Adaptive(sites, abilities=CheckAbilities(alone=False, by_rail=False), seed=str(seed))
    runs: list[GroupRun] = []
    for _ in range(strategy.max_rounds):
        groups = strategy.next_groups(runs, frozenset())
        leaves = [{sites[node].leaf for node in group.members} for group in groups]
        runs += [ran(*it.members, at=1.0 if len(at) == 1 else 0.1) for it, at in zip(groups, leaves, strict=True)]
    diagnosis = strategy.diagnose(runs)
    assert culprits(diagnosis) == {(Part.PATH, ("a", "b"), ())}
    assert (diagnosis.inconclusive, diagnosis.evidence.cleared) == ((), frozenset(sites))


def test_many_suspects_run_alone_beside_two_that_have_passed() -> None:
    """These show what a node alone should reach; a single one may lie."""
    runs = [*(ran(*pair) for pair in PASSED[:-1]), ran("a4", "c4", at=0.3), ran("b4", "c3", at=0.3)]
    groups = {probe.members for probe in Adaptive(PLACES).next_groups(runs, frozenset())}
    assert {("a4",), ("b4",), ("c3",), ("c4",)} < groups
    assert sorted(map(len, groups)) == [1] * 6


def test_two_suspects_meet_others_before_they_run_alone() -> None:
    """One is cleared at once, and only the other needs a run alone, beside two that have passed."""
    first = ran("a4", "c4", at=0.3)
    assert sorted(map(len, planned(first))) == [2, 2]
    groups = planned(first, ran("c1", "c4"), ran("a1", "a4", rails=(0.3, 0.3, 0.3, 0.3)))
    assert ("a4",) in groups
    assert sorted(map(len, groups)) == [1, 1, 1]


def test_a_slow_rail_is_not_looked_for_in_a_run_alone() -> None:
    """Where only one was slow, the suspect meets the next partner at once."""
    groups = planned(ran("a4", "c4", at=0.4), ran("c1", "c4"), ran("a1", "a4", rails=(1.0, 1.0, 0.3, 1.0)))
    (group,) = groups
    assert group[0] == "a4"
    assert group[1].startswith("b")


def test_a_suspect_that_is_well_alone_meets_one_that_has_passed_from_its_rack_first() -> None:
    """And then one from another leaf; nodes that are not to be had are nobody's partners."""
    first = (ran("a4", "c4", at=0.3), *ALONE, ran("a4"), ran("c4"))
    (partner,) = {group[0] for group in planned(*first) if "a4" in group}
    assert partner in {"a1", "a2", "a3"}
    (partner,) = {group[0] for group in planned(*first, absent=frozenset({"a1", "a3"})) if "a4" in group}
    assert partner == "a2"
    (second,) = {group for group in planned(*first, ran("a1", "a4", at=0.3)) if "a4" in group}
    assert second[1].startswith("b")


def test_nodes_that_somebody_else_explains_clear_each_other() -> None:
    """No partner that has passed is spent on them as long as they are even in number."""
    broken = [crashed("a4", "c4"), crashed("a4", by=("a4",)), crashed("b4", "c3"), crashed("b4", by=("b4",))]
    found = [*broken, ran("c4"), ran("c3")]
    groups = Adaptive(PLACES).next_groups([*(ran(*pair) for pair in PASSED[:-1]), *found], frozenset())
    assert [probe.members for probe in groups] == [("c3", "c4")]


def test_with_more_passes_it_runs_alone_more_often() -> None:
    """A fault that comes and goes has the more chances to show."""
    runs = [*(ran(*pair) for pair in PASSED), ran("a1", "b2", at=0.3), ran("a4", "c4")]
    runs += [ran(node) for node in ("a1", "b2") for _ in range(3)]
    assert Adaptive(PLACES).next_groups(runs, frozenset()) == []
    groups = {probe.members for probe in Adaptive(PLACES, passes=2).next_groups(runs, frozenset())}
    assert {("a1",), ("b2",)} <= groups


def test_a_replay_asks_for_the_same_groups_in_the_same_order() -> None:
    """In the order of the nodes; that of a set would be another one in every process."""
    hung = replace(ran("a1", "b2"), outcome=RunOutcome.BAD, objective=None)
    runs = [*(ran(*pair) for pair in PASSED), hung, ran("b3", "c3", at=0.3)]
    groups = [probe.members for probe in Adaptive(PLACES).next_groups(runs, frozenset())]
    assert [node for group in groups if len(group) == 1 for node in group][:4] == ["a1", "b2", "b3", "c3"]


def test_what_was_bad_once_runs_alone_a_few_times() -> None:
    """Its path is good otherwise; it ends when nothing more was seen."""
    runs = [ran("a1", "b2", at=0.3)]
    for _ in range(3):
        groups = planned(*runs)
        assert {("a1",), ("b2",)} <= groups
        runs += [ran(*group) for group in groups]
    assert planned(*runs, ran("a4", "c4")) == set()
    assert culprits(judged(*runs)) == set()
