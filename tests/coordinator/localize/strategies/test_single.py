"""Each node by itself."""

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.strategies.single import Single
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

SITES = {node: Site(node) for node in "abcde"}
NOBODY: frozenset[str] = frozenset()


def ran(node: str, at: float | None = 1.5, run: int = 1) -> GroupRun:
    return GroupRun(group=f"{node} {run}", members=(node,), outcome=RunOutcome.GOOD, objective=at)


def failed(node: str, *, hard: bool = True) -> GroupRun:
    return GroupRun(group=node, members=(node,), outcome=RunOutcome.BAD, hard=hard, detail="wrong elements")


def void(node: str) -> GroupRun:
    return GroupRun(group=node, members=(node,), outcome=RunOutcome.VOID)


def asked(*runs: GroupRun, absent: frozenset[str] = NOBODY, passes: int = 1) -> list[str]:
    return ["".join(probe.members) for probe in Single(SITES, passes).next_groups(runs, absent)]


def judged(*runs: GroupRun) -> Diagnosis:
    return Diagnosis(GroupEvidence(SITES, runs), CheckAbilities())


def test_every_node_runs_alone_as_often_as_there_are_passes() -> None:
    """And no more when all are well; nodes that are not to be had are left out."""
    once = [ran(node) for node in SITES]
    assert asked() == asked(*once, passes=2) == [*SITES]
    assert asked(*once) == asked(*once, *once, passes=2) == []
    assert asked(absent=frozenset("bd")) == ["a", "c", "e"]
    assert Single(SITES, 3).max_rounds == 6


def test_passing_alone_clears_where_nothing_else_was_asked() -> None:
    """Also when there is nothing to measure."""
    diagnosis = judged(*(ran(node, at=None) for node in SITES))
    assert diagnosis.evidence.cleared == SITES.keys()
    assert diagnosis.inconclusive == ()


def test_a_failed_verdict_convicts_at_once() -> None:
    """It comes from the node itself and from a reference, not from a comparison."""
    runs = (failed("a"), *(ran(node) for node in "bcde"))
    (culprit,) = judged(*runs).culprits
    assert (culprit.of, culprit.slow, culprit.confidence) == (("a",), False, 0.8)
    assert asked(*runs) == []


def test_who_was_slow_is_tried_again() -> None:
    """Slow three times alike convicts; slow in other ways needs a fourth time; well the second time clears."""
    slow = (ran("a", at=0.1), *(ran(node) for node in "bcde"))
    assert (judged(*slow).culprits, judged(*slow).inconclusive, asked(*slow)) == ((), ("a",), ["a"])
    again = judged(*slow, ran("a", at=0.11, run=2), ran("a", at=0.1, run=3))
    assert [(culprit.of, culprit.slow) for culprit in again.culprits] == [(("a",), True)]
    otherwise = (*slow, ran("a", at=0.5, run=2))
    assert (judged(*otherwise).culprits, asked(*otherwise)) == ((), ["a"])
    assert judged(*otherwise, ran("a", at=0.3, run=3), ran("a", at=0.3, run=4)).convicted == {"a"}
    well = (*slow, ran("a", run=2))
    assert (judged(*well).culprits, judged(*well).inconclusive, asked(*well)) == ((), (), [])


def test_a_run_that_says_nothing_is_repeated_once() -> None:
    """Then the node stays open, and so does one rank that had nobody to exchange with."""
    runs = (void("a"), ran("b", at=0.0), *(ran(node) for node in "cde"))
    assert asked(*runs) == ["a", "b"]
    twice = (*runs, void("a"), ran("b", at=0.0, run=2))
    assert (asked(*twice), judged(*twice).inconclusive) == ([], ("a", "b"))


def test_a_noisy_fleet_convicts_no_node() -> None:
    """Its own spread counts as soon as there are values enough."""
    sites = {f"n{number}": Site(f"n{number}") for number in range(21)}
    runs = tuple(ran(node, at=1 + 0.02 * (number - 10)) for number, node in enumerate(sites))
    assert not Diagnosis(GroupEvidence(sites, runs), CheckAbilities()).evidence.histories["n0"].bad
