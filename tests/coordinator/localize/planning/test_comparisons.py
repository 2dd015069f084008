"""Groups without which there would be nothing to compare."""

from tests.coordinator.localize.runs import diagnosed, failed, nowhere, ran

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.planning.follow_up import comparisons, follow_up
from muster_coordinator.model.probes import GroupRun, RunOutcome, Site


def asked(sites: dict[str, Site], *runs: str, absent: str = "") -> list[str]:
    done = tuple(GroupRun(group=run, members=tuple(run), outcome=RunOutcome.GOOD, objective=1.0) for run in runs)
    return ["".join(probe.members) for probe in comparisons(GroupEvidence(sites, done), frozenset(absent))]


def test_of_three_nodes_every_two_meet() -> None:
    """One after the other, without those that are not to be had."""
    three = {node: Site(node) for node in "abc"}
    assert asked(three, "abc") == ["ab"]
    assert asked(three, "ab", "ac") == ["bc"]
    assert asked(three, "ab", "ac", "bc") == asked(three, "ab", absent="c") == []


def test_most_sweeps_need_nothing() -> None:
    """Two pairs can be compared."""
    assert asked({node: Site(node) for node in "abcd"}, "ab", "cd") == []


def test_of_three_nodes_every_two_meet_again_after_a_run_that_was_barely_slow() -> None:
    """With so few runs it may be noise. A run that is far too slow needs no such thing."""
    three = {node: Site(node) for node in "abc"}
    for at, again in ((0.75, [("a", "b")]), (0.3, [])):
        runs = (ran("a", "b", at=at), ran("a", "c", at=at), ran("b", "c", at=1.0))
        assert [probe.members for probe in comparisons(GroupEvidence(three, runs), frozenset())] == again


def test_two_others_meet_if_a_node_was_in_every_run() -> None:
    """Nothing else says what is normal. Where there are no two others, nothing more can be learned."""
    both = [ran("a", "b"), ran("b", "c")]
    for more, members in ((failed("d", "a"), [("a", "c")]), (ran("a", "c"), [])):
        diagnosis = diagnosed(nowhere("abcd"), *both, more, alone=False)
        found = follow_up(diagnosis, frozenset("d"), seed="s", passes=1)
        assert [probe.members for probe in found] == members
    assert follow_up(diagnosed(nowhere("ab"), ran("a", "b")), frozenset(), seed="s", passes=1) == []
