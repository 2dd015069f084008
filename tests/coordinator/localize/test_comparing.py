"""Groups without which there would be nothing to compare."""

from muster_coordinator.localize.comparing import to_compare
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Site
from muster_coordinator.localize.trial import Outcome, Trial


def asked(sites: dict[str, Site], *runs: str, absent: str = "") -> list[str]:
    trials = tuple(Trial(group=run, members=tuple(run), outcome=Outcome.GOOD, objective=1.0) for run in runs)
    return ["".join(probe.members) for probe in to_compare(Evidence(sites, trials), frozenset(absent))]


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
