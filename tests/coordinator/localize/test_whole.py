"""All nodes in one group."""

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Abilities, Site
from muster_coordinator.localize.trial import Outcome, Trial
from muster_coordinator.localize.whole import Whole

SITES = {node: Site(node) for node in "abcd"}


def ran(outcome: Outcome, *, crashed: str = "", number: int = 1) -> Trial:
    return Trial(group=str(number), members=tuple(SITES), outcome=outcome, crashed=frozenset(crashed))


def judged(*trials: Trial) -> Judgement:
    return Judgement(Evidence(SITES, trials), Abilities())


def test_all_that_are_there_run_together_once_in_each_pass() -> None:
    """And not at all when only one is left."""
    (probe,) = Whole(SITES).next_groups((), frozenset("b"))
    assert probe.members == ("a", "c", "d")
    assert Whole(SITES).next_groups([ran(Outcome.BAD)], frozenset()) == []
    assert len(Whole(SITES, 2).next_groups([ran(Outcome.GOOD)], frozenset())) == 1
    assert Whole(SITES).next_groups((), frozenset("abc")) == []
    assert Whole(SITES, 3).max_rounds == 3


def test_a_group_that_fails_convicts_nobody() -> None:
    """However often; all its members are suspects, or the one whose ranks crashed."""
    judgement = judged(ran(Outcome.BAD), ran(Outcome.BAD, number=2), ran(Outcome.BAD, number=3))
    assert (judgement.culprits, judgement.open) == ((), tuple(SITES))
    assert all(map(judgement.is_suspect, SITES))
    judgement = judged(ran(Outcome.BAD, crashed="b"))
    assert (judgement.culprits, [*filter(judgement.is_suspect, SITES)]) == ((), ["b"])


def test_a_group_that_passes_clears_all() -> None:
    """They have passed with others."""
    assert judged(ran(Outcome.GOOD)).open == ()
