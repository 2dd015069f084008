"""What the record of an adaptive sweep tells."""

from dataclasses import replace

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.wording.report import DiagnosisReport, report_of
from muster_coordinator.model.probes import CheckAbilities, GroupRun, RunOutcome, Site

SITES = {f"{leaf}{number}": Site(f"{leaf}{number}", None, leaf) for leaf in "abc" for number in range(1, 5)}
NOWHERE = {node: Site(node) for node in SITES}


def ran(*members: str, at: float = 1.5, rails: tuple[float, ...] = ()) -> GroupRun:
    """A run that went well at `at` GB/s."""
    group = " + ".join(members)
    return GroupRun(
        group=group, members=members, outcome=RunOutcome.GOOD, objective=min(rails, default=at), rails=rails
    )


def ruling(*runs: GroupRun, sites: dict[str, Site] = SITES) -> DiagnosisReport:
    return report_of(Diagnosis(GroupEvidence(sites, runs), CheckAbilities()), "collective", "busbw_gbps")


def test_a_slow_node_is_told_with_the_numbers() -> None:
    """With whom it was slow, what is typical, and from where on it counts as slow."""
    told = ruling(
        *(ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)),
        ran("a1", "a2", at=0.3),
        *map(ran, ("b1", "b2")),
        ran("a1", at=0.28),
        replace(ran("a1", at=0.28), group="a1 again"),
    )
    (failed,) = told.failed_nodes
    assert (failed.node, failed.part, failed.code, failed.confidence) == ("a1", "node", "collective.slow", 0.875)
    typical = "typical here is 1.5 GB/s, and less than 1.27 GB/s is slow"
    alone = f"busbw 0.28 GB/s alone: {typical}"
    assert failed.reasons == (f"busbw 0.3 GB/s with a2: {typical}", alone, alone)
    assert told.why_slow["a1"] == f"busbw 0.28 GB/s is slow: {typical}"
    assert told.cleared == {f"{leaf}{n}" for leaf in "bc" for n in (1, 2, 3, 4)}
    assert "a2" in told.inconclusive
    assert told.anything_failed


def test_a_rail_is_told_by_its_number() -> None:
    """As a part of its node."""
    good = (ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4))
    rails = (1.5, 1.5, 0.4, 1.5)
    met = (ran("a1", "a2", rails=rails), ran("a1", "b1", rails=rails), ran("a1", "c2", rails=rails))
    told = ruling(*good, ran("a2", "a3"), ran("a3", "b2"), ran("a1"), ran("b1"), *met)
    (failed,) = told.failed_nodes
    assert (failed.node, failed.part, failed.rails) == ("a1", "rail", (2,))
    assert failed.reasons[0] == "only rail 2 is bad"


def test_a_leaf_is_told_with_the_nodes_behind_it() -> None:
    """These are open, and a note says why."""
    bad = (ran(f"a{n}", f"b{n}", at=0.3) for n in (1, 2, 3, 4))
    alone = (ran(f"a{n}") for n in (1, 2, 3, 4))
    good = (*(ran(f"c{n}", f"c{n + 1}") for n in (1, 3)), ran("b1", "b2"), ran("b3", "b4"))
    told = ruling(*bad, *alone, *good, ran("a1", "a2", at=0.3), ran("a3", "a4", at=0.3))
    (failed,) = told.failed_fabric
    assert (failed.leaves, failed.code, told.failed_nodes) == (("a",), "collective.slow", ())
    assert told.inconclusive == ("a1", "a2", "a3", "a4")
    assert told.observations == ("the health of a1, a2, a3, a4 is unknown because leaf a is convicted",)


def test_a_path_is_told_by_its_leaves_and_a_link_by_its_nodes() -> None:
    """The first when the leaves are known, the second when they are not."""
    good = (*(ran(f"a{n}", f"b{n}") for n in (1, 2, 3, 4)), *(ran(f"b{n}", f"c{n}") for n in (1, 2, 3, 4)))
    told = ruling(*good, *(ran(f"a{n}", f"c{n}", at=0.3) for n in (1, 2, 3, 4)))
    assert [part.leaves for part in told.failed_fabric] == [("a", "c")]
    four_times = tuple(
        GroupRun(group=f"g{n}", members=("a1", "c1"), outcome=RunOutcome.BAD, detail="hung") for n in range(4)
    )
    told = ruling(*good, *four_times, ran("a1", "b1"), sites=NOWHERE)
    assert [link.between for link in told.failed_links] == [("a1", "c1")]
    assert told.failed_links[0].reasons[0] == "between a1 (which passed) and c1 (which passed): hung"


def test_what_was_bad_once_is_noted() -> None:
    """And held against nobody."""
    told = ruling(*(ran(f"a{n}", f"b{n}") for n in (1, 2, 3, 4)), ran("a1", "b2", at=0.3))
    assert not told.anything_failed
    assert told.observations == ("a1 and b2 were bad together but passed with others",)


def test_a_path_that_was_never_good_shows_its_figures() -> None:
    """The note says how far it is from a conviction. Runs beside many groups do not count for that."""
    good = (ran(f"{leaf}{n}", f"b{n}") for leaf in "ac" for n in (1, 2, 3, 4))
    crowded = replace(ran("a2", "c2", at=0.3), beside=9)
    told = ruling(*good, ran("a1", "c1", at=0.3), crowded)
    assert told.observations == (
        "a1 and c1 were bad together but passed with others",
        "a2 and c2 were bad together but passed with others",
        "the path between a and c was bad in all its 2 runs, and those beside few other groups are 58 times as likely"
        " if the path is bad as by chance; 3,000 times convict a path of this fleet",
    )


def of_kinds(**kinds: str) -> dict[str, Site]:
    """The nodes of SITES by number, each number with its hardware, new without one."""
    return {node: Site(node, None, site.leaf, kinds.get(node, "new")) for node, site in SITES.items()}


def test_each_kind_of_hardware_is_told_by_itself() -> None:
    """How many nodes it has, what is typical of it, and with what a slow run was compared."""
    sites = of_kinds(**{f"{leaf}{n}": "old" for leaf in "abc" for n in (3, 4)})
    new = [ran("a1", "b1"), ran("a2", "c1"), ran("b2", "c2")]
    old = [ran("a3", "b3", at=0.8), ran("a4", "c3", at=0.8), ran("b4", "c4", at=0.3)]
    told = ruling(*new, *old, sites=sites)
    assert told.observations[:2] == (
        "6 nodes with hardware new were compared with each other: typical is 1.5 GB/s",
        "6 nodes with hardware old were compared with each other: typical is 0.8 GB/s",
    )
    assert told.why_slow["b4 + c4"].startswith("busbw 0.3 GB/s is slow: typical with hardware old here is 0.8 GB/s, ")
    assert {kind: len(nodes) for kind, nodes in told.hardware.items()} == {"new": 6, "old": 6}


def test_rare_hardware_is_told_with_what_it_was_compared() -> None:
    """One such node, or two; the others are not told."""
    runs = [ran("a1", "b1"), ran("a2", "c1"), ran("b2", "c2")]
    told = ruling(*runs, sites=of_kinds(a3="old", b3="older", c3="older"))
    assert told.observations == (
        "a3 is the only node with hardware old: compared with hardware new",
        "b3 and c3 are the only nodes with hardware older: compared with hardware new",
    )
    assert told.hardware == {}
    assert ruling(*runs).observations == ()


def test_paths_between_kinds_of_hardware_are_told_if_no_group_crossed_them() -> None:
    """Groups of one kind do not."""
    sites = of_kinds(**{f"c{n}": "old" for n in range(1, 5)})
    inside = [ran("a1", "b1"), ran("a2", "b2"), ran("c1", "c2", at=0.8), ran("c3", "c4", at=0.8)]
    sentence = (
        "no group crossed 2 paths between leaves with different hardware, such as a to c; another sweep crosses others"
    )
    assert sentence in ruling(*inside, sites=sites).observations
    crossed = ruling(*inside, ran("a3", "c1", at=0.8), ran("b3", "c3", at=0.8), sites=sites)
    assert not any("no group crossed" in told for told in crossed.observations)
