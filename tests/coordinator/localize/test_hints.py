"""Hints at whom to try first."""

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.hints import Hints, hints_of, in_words
from muster_coordinator.localize.probe import Abilities, Site
from muster_coordinator.localize.settling import settling
from muster_coordinator.localize.trial import Outcome, Trial

BAD = Trial(
    group="g",
    members=("a", "b", "c"),
    outcome=Outcome.BAD,
    latest={"a": 0.9, "b": 0.1},
    work_s={"a": 3.0, "b": 1.0, "c": 1.0},
)


def test_what_stands_out_is_told() -> None:
    """The worst of all runs, in words with the numbers."""
    hints = hints_of("a", [BAD])
    assert hints == Hints(crashes=0, slower=3.0, latest=0.9)
    assert [*in_words(hints)] == [
        "its own work took 3.0 times as long as that of the others",
        "it came last in 90% of the rounds",
    ]


def test_what_does_not_stand_out_is_not() -> None:
    """Nor what was not measured, nor what healthy nodes differ by where something else works on their hosts."""
    assert [*in_words(hints_of("b", [BAD]))] == [*in_words(Hints(slower=1.2))] == []
    assert hints_of("d", []) == hints_of("a", [Trial(group="g", members=("a",), outcome=Outcome.BAD)]) == Hints()


def test_a_crash_says_more_than_slow_work_and_that_more_than_coming_last() -> None:
    """Who waits for others may come last."""
    assert Hints(crashes=1) > Hints(slower=9.0, latest=1.0) > Hints(slower=1.0, latest=1.0)


def test_whoever_came_last_is_first_to_get_a_partner() -> None:
    """And is convicted by nobody for it."""
    sites = {node: Site(node) for node in "abcd"}
    good = Trial(group="good", members=("c", "d"), outcome=Outcome.GOOD)
    for last, first in (("a", "a"), ("b", "b")):
        bad = [
            Trial(group=f"{n}", members=("a", "b"), outcome=Outcome.BAD, latest={last: 1.0}, crashed=frozenset())
            for n in range(9)
        ]
        judgement = Judgement(Evidence(sites, (*bad, good)), Abilities(alone=False, by_rail=False))
        assert judgement.culprits == ()
        assert first in settling(judgement, frozenset("c"), seed="s", passes=1)[0].members
