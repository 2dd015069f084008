"""What would settle the nodes that are left open."""

from dataclasses import replace

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.wording.missing_evidence import missing_evidence
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

NODES = "abcdefgh"
NOWHERE = {node: Site(node) for node in NODES}


def run(*members: str, outcome: RunOutcome = RunOutcome.GOOD, crashed: str = "") -> GroupRun:
    return GroupRun(group="".join(members), members=members, outcome=outcome, crashed=frozenset(crashed))


def bad(*members: str, crashed: str = "") -> GroupRun:
    return run(*members, outcome=RunOutcome.BAD, crashed=crashed)


def missing(*runs: GroupRun, sites: dict[str, Site] = NOWHERE) -> dict[str, str]:
    return dict(missing_evidence(Diagnosis(GroupEvidence(sites, runs), CheckAbilities(alone=False, by_rail=False))))


WELL = (run("c", "d"), run("e", "f"), run("g", "h"))


def test_who_has_not_run_needs_a_partner() -> None:
    """Of which some are named; nobody else is mentioned."""
    needs = "it needs a good run with a node that has passed, such as c or d or e"
    assert missing(*WELL) == {"a": needs, "b": needs}


def test_a_node_of_a_large_leaf_needs_others_that_pass_beside_it() -> None:
    """Its leaf may be bad at times."""
    sites = {f"{leaf}{number}": Site(f"{leaf}{number}", leaf=leaf) for leaf in "pq" for number in range(8)}
    first = [bad("p0", "q0"), run("q0", "q1"), *(run(f"p{number}", f"q{number}") for number in range(1, 8))]
    later = [replace(bad("p0", partner), round=number) for number, partner in enumerate(("p1", "q1", "p2", "q2"), 2)]
    needs = "it failed with others: it needs one more run beside other nodes of leaf p that pass"
    assert missing(*first, *later, sites=sites) == {"p0": needs}


def test_who_failed_with_others_needs_more_of_them() -> None:
    """As many as it takes to convict, none of them met before, with the figures while chance may explain the runs."""
    told = missing(*WELL, bad("a", "b"), bad("a", "c"))
    more = "at least one more run with a node that has passed, such as d or e or f"
    assert told["a"] == f"it failed with others: it needs {more}"
    assert told["b"].startswith(
        "it failed with others, and these runs are 56 times as likely if the link is bad as by chance;"
        " 64,000 times convict a link of this fleet: it needs at least 2 more runs, each with a node"
    )


def test_nobody_to_ask_is_said() -> None:
    """Where no node has passed."""
    assert missing(bad("a", "b"), sites={node: Site(node) for node in "ab"})["a"].endswith(
        "with another node that passes; this sweep has found none"
    )


def test_who_failed_by_itself_once_runs_again() -> None:
    """With others where others were asked, alone in a sweep of single nodes; with the figures of its runs alone."""
    assert missing(*WELL, run("a", "b"), bad("a", "c", crashed="a"))["a"].startswith(
        "it failed by itself: run it again with a node that has passed"
    )
    assert missing(bad("a"))["a"] == (
        "it failed by itself, and its runs are 54 times as likely if the node is bad as by chance;"
        " 64,000 times convict a node of this fleet: run it again alone"
    )


def test_who_fails_like_others_needs_the_topology() -> None:
    """Each says which others."""
    chain = [run(*pair) for pair in ("de", "ef", "fg", "gh")]
    broken = [bad(node, partner) for node in "abc" for partner in "defg"]
    assert missing(*chain, *broken) == {
        node: f"it fails like {others}: declare which nodes share a leaf, because their switch may be bad"
        for node, others in (("a", "b, c"), ("b", "a, c"), ("c", "a, b"))
    }
    sites = {node: Site(node, leaf=node if node in "abc" else "x") for node in "abcdefgh"}
    why = missing(*chain, *broken, sites=sites)["a"]
    assert why == "it fails like b, c, and each is alone at its leaf: inspect these links, and what the leaves share"


def test_who_is_of_rare_hardware_needs_more_of_it() -> None:
    """As long as nobody with that hardware has passed."""
    sites = {node: Site(node, hardware_kind="a3" if node in "ab" else "a4") for node in NODES}
    slow = GroupRun(group="ab", members=("a", "b"), outcome=RunOutcome.GOOD, objective=0.5)
    well = [
        GroupRun(group=pair, members=(*pair,), outcome=RunOutcome.GOOD, objective=1.0) for pair in ("cd", "ef", "gh")
    ]
    needs = (
        "no node with its hardware (a3) has passed, and this sweep has too few of them (2) to compare them with each"
        " other: sweep at least 4 together, or set a reference for this check (muster reference set)"
    )
    assert missing(slow, *well, sites=sites) == {"a": needs, "b": needs}


def test_who_is_behind_a_bad_leaf_waits_for_its_repair() -> None:
    """Its own health cannot be seen."""
    sites = {f"{leaf}{n}": Site(f"{leaf}{n}", leaf=leaf) for leaf in "xy" for n in range(4)}
    runs = [
        run("y0", "y1"),
        run("y2", "y3"),
        bad("x0", "x1"),
        bad("x2", "x3"),
        *(bad(f"x{n}", f"y{n}") for n in range(4)),
    ]
    told = missing(*runs, sites=sites)
    assert told["x0"] == "it is behind leaf x, which is convicted: sweep it again after the repair"
    assert told.keys() == {"x0", "x1", "x2", "x3"}


def test_who_was_compared_with_nothing_needs_others_or_a_reference() -> None:
    """Two nodes need a third. Of more nodes, too few have passed."""
    pair = replace(run("a", "b"), objective=1.0)
    (one, other) = missing(pair, sites={node: Site(node) for node in "ab"}).values()
    assert one == other
    assert one.startswith("it worked, but nothing says how fast it should be: sweep it with a third node, or set")
    assert "with two nodes that pass" in missing(pair)["a"]


def test_who_reached_too_little_to_tell_it_from_noise_needs_a_better_run() -> None:
    """Runs that differ much hide a great loss."""
    values = (1.0, 0.9, 0.82, 0.75, 0.68, 0.6)
    runs = [replace(run(f"n{place}", f"m{place}"), objective=value) for place, value in enumerate(values)]
    sites = {node: Site(node) for each in runs for node in each.members}
    told = missing(*runs, sites=sites)
    assert told.keys() == {"n5", "m5"}
    assert told["n5"].startswith("it reached too little to exclude a loss: it needs a better run with a node")


def test_a_suspected_leaf_shows_its_figures() -> None:
    """Two pairs inside convict a leaf of a fleet with four; one is 57 times as likely if the switch is bad."""
    sites = {f"{leaf}{n}": Site(f"{leaf}{n}", leaf=leaf) for leaf in "wxyz" for n in range(4)}
    passed = [run(f"{leaf}{n}", f"{leaf}{n + 1}") for leaf in "wyz" for n in (0, 2)]
    outside = [bad(f"x{n}", f"{leaf}{n}") for n, leaf in enumerate("wyzw")]
    told = missing(*passed, *outside, bad("x0", "x1"), sites=sites)
    assert told["x3"] == (
        "its whole leaf x is suspected, and runs inside it are 57 times as likely if the leaf is bad as by chance;"
        " 4,000 times convict a leaf of this fleet: nodes of other leaves must pass first"
    )
