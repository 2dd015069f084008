"""Hints at whom to try first."""

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hints import Hints, hints_of
from muster_coordinator.localize.planning.follow_up import follow_up
from muster_coordinator.localize.wording.sentences import hint_words
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

BAD = GroupRun(
    group="g",
    members=("a", "b", "c"),
    outcome=RunOutcome.BAD,
    latest={"a": 0.9, "b": 0.1},
    work_s={"a": 3.0, "b": 1.0, "c": 1.0},
)


def test_what_stands_out_is_told() -> None:
    """The worst of all runs, in words with the numbers."""
    hints = hints_of("a", [BAD])
    assert hints == Hints(crashes=0, slower=3.0, latest=0.9)
    assert [*hint_words(hints)] == [
        "its own work took 3.0 times as long as that of the others",
        "it came last in 90% of the rounds",
    ]


def test_what_does_not_stand_out_is_not() -> None:
    """Nor what was not measured, nor what healthy nodes differ by where something else works on their hosts."""
    assert [*hint_words(hints_of("b", [BAD]))] == [*hint_words(Hints(slower=1.2))] == []
    assert hints_of("d", []) == hints_of("a", [GroupRun(group="g", members=("a",), outcome=RunOutcome.BAD)]) == Hints()


def test_a_crash_says_more_than_slow_work_and_that_more_than_coming_last() -> None:
    """Who waits for others may come last."""
    assert Hints(crashes=1) > Hints(slower=9.0, latest=1.0) > Hints(slower=1.0, latest=1.0)


def test_whoever_came_last_is_first_to_get_a_partner() -> None:
    """And is convicted by nobody for it."""
    sites = {node: Site(node) for node in "abcd"}
    good = GroupRun(group="good", members=("c", "d"), outcome=RunOutcome.GOOD)
    for last, first in (("a", "a"), ("b", "b")):
        bad = [
            GroupRun(group=f"{n}", members=("a", "b"), outcome=RunOutcome.BAD, latest={last: 1.0}, crashed=frozenset())
            for n in range(9)
        ]
        diagnosis = Diagnosis(GroupEvidence(sites, (*bad, good)), CheckAbilities(alone=False, by_rail=False))
        assert diagnosis.culprits == ()
        assert first in follow_up(diagnosis, frozenset("c"), seed="s", passes=1)[0].members
