"""Groups without which there would be nothing to compare."""

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.planning.follow_up import comparisons
from muster_coordinator.model.probes import GroupRun, RunOutcome, Site


def asked(sites: dict[str, Site], *runs: str, absent: str = "") -> list[str]:
    done = tuple(GroupRun(group=run, members=tuple(run), outcome=RunOutcome.GOOD, objective=1.0) for run in runs)
    return ["".join(probe.members) for probe in comparisons(GroupEvidence(sites, done), frozenset(absent))]


LEAVES = {node: Site(node, leaf="x" if node in "abc" else "y") for node in "abcdef"}


def test_of_three_nodes_every_two_meet() -> None:
    """One after the other, without those that are not to be had."""
    three = {node: Site(node) for node in "abc"}
    assert asked(three, "abc") == ["ab"]
    assert asked(three, "ab", "ac") == ["bc"]
    assert asked(three, "ab", "ac", "bc") == asked(three, "ab", absent="c") == []


def test_two_leaves_are_tried_inside_too() -> None:
    """As long as all runs have crossed the one path between them."""
    assert asked(LEAVES, "ad", "be", "cf") == ["ab", "de"]
    assert asked(LEAVES, "ad", "be", "cf", absent="ae") == ["bc", "df"]
    assert asked(LEAVES, "ad", "be", "cf", "ab") == []


def test_most_sweeps_need_nothing() -> None:
    """Those that have crossed several paths, or of which nobody said where the nodes stand."""
    assert asked({**LEAVES, "g": Site("g", leaf="z"), "h": Site("h", leaf="z")}, "ad", "bg", "eh") == []
    assert asked({node: Site(node) for node in "abcd"}, "ab", "cd") == []
