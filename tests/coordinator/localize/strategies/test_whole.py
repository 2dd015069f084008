"""All nodes in one group."""

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.strategies.whole import Whole
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

SITES = {node: Site(node) for node in "abcd"}


def ran(outcome: RunOutcome, *, crashed: str = "", number: int = 1) -> GroupRun:
    return GroupRun(group=str(number), members=tuple(SITES), outcome=outcome, crashed=frozenset(crashed))


def judged(*runs: GroupRun) -> Diagnosis:
    return Diagnosis(GroupEvidence(SITES, runs), CheckAbilities())


def test_all_that_are_there_run_together_once_in_each_pass() -> None:
    """And not at all when only one is left."""
    (probe,) = Whole(SITES).next_groups((), frozenset("b"))
    assert probe.members == ("a", "c", "d")
    assert Whole(SITES).next_groups([ran(RunOutcome.BAD)], frozenset()) == []
    assert len(Whole(SITES, 2).next_groups([ran(RunOutcome.GOOD)], frozenset())) == 1
    assert Whole(SITES).next_groups((), frozenset("abc")) == []
    assert Whole(SITES, 3).max_rounds == 3


def test_a_group_that_fails_convicts_nobody() -> None:
    """However often; all its members are suspects, or the one whose ranks crashed."""
    diagnosis = judged(ran(RunOutcome.BAD), ran(RunOutcome.BAD, number=2), ran(RunOutcome.BAD, number=3))
    assert (diagnosis.culprits, diagnosis.inconclusive) == ((), tuple(SITES))
    assert all(map(diagnosis.nodes.is_suspect, SITES))
    diagnosis = judged(ran(RunOutcome.BAD, crashed="b"))
    assert (diagnosis.culprits, [*filter(diagnosis.nodes.is_suspect, SITES)]) == ((), ["b"])


def test_a_group_that_passes_clears_all() -> None:
    """They have passed with others."""
    assert judged(ran(RunOutcome.GOOD)).inconclusive == ()
