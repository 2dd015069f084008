import pytest

from muster.errors import Refused
from muster.model import Finding, Severity, Topology, Verdict
from muster_coordinator.model.sweep_records import Blame, Ending, FailedLink, FailedNode, GroupState
from muster_coordinator.views.sweeps.explained import Explanation, SweepStanding
from muster_coordinator.views.sweeps.explanation import explain
from muster_coordinator.views.sweeps.explanation_text import explanation_text
from muster_coordinator.views.sweeps.matrix.pairs import pairs

CONCLUSIONS = {
    "n1": (SweepStanding.CONVICTED, "n1, its link when it sends, is at fault (collective.slow, confidence 0.88)"),
    "n2": (SweepStanding.CLEARED, "n2 is cleared: it passed with n5 at 10.2 GB/s in round 2"),
    "n4": (SweepStanding.CLEARED, "n4 is cleared: it passed with n3 at 10 GB/s in round 1"),
    "n6": (SweepStanding.INCONCLUSIVE, "n6 is inconclusive: lost: its agent has vanished"),
}


@pytest.mark.parametrize("node", CONCLUSIONS)
def test_every_standing_has_its_conclusion(bad_link, node):
    """Convicted with the confidence, cleared with the run that did it, inconclusive with the reason."""
    it = explain(bad_link, node, {})
    assert (it.standing, it.conclusion) == CONCLUSIONS[node]
    assert it.confidence == (0.875 if node == "n1" else None)


def test_what_speaks_against_a_node_and_what_is_excluded(bad_link):
    """The judgement's reasons; and the runs by which it is neither the node itself nor anybody that it met."""
    it = explain(bad_link, "n1", {})
    assert it.against == bad_link.failed_nodes[0].reasons
    assert it.excluded == (
        "n1 itself is not to blame: it passed alone at 90 GB/s in round 2",
        "no single link or partner is to blame: it was bad with each of n2, n3, n5",
        "n2 is not to blame: it passed with n5 at 10.2 GB/s in round 2",
        "n3 is not to blame: it passed with n4 at 10 GB/s in round 1",
        "n5 is not to blame: it passed with n2 at 10.2 GB/s in round 2",
    )


def test_a_node_that_is_bad_alone_clears_what_lies_around_it(group, sweep):
    """Nothing that a run alone does not use is to blame for it."""
    record = sweep(
        [group("n1", "n2", verdict=Verdict.FAIL), group("n3", "n4", at=10.0)],
        [group("n1", at=3.0, verdict=Verdict.FAIL)],
        failed_nodes=(FailedNode(node="n1", confidence=0.75, reasons=()),),
    )
    assert explain(record, "n1", {}).excluded == (
        "no partner, link or switch is to blame: it was bad alone at 3 GB/s in round 2",
    )


def test_bad_runs_of_a_cleared_node_are_explained(bad_link):
    """By what is at fault."""
    it = explain(bad_link, "n2", {})
    assert it.against == ()
    assert it.excluded == ("the bad run with n1 at 1 GB/s in round 1 is explained by n1",)


CRASHED = {"verdict": Verdict.UNKNOWN, "blamed": (Blame(node="n2", reason="run.killed", detail="signal 9"),)}


def test_a_run_in_which_somebody_else_crashed_speaks_against_nobody_else(group, sweep):
    """In a large group. Nor does one that another convicted node explains, or that was interrupted or formed again."""
    record = sweep(
        [group("n1", "n2", "n6", "n7", **CRASHED), group("n3", "n4", at=10.0)],
        [group("n1", "n5", at=1.0, verdict=Verdict.FAIL), group("n2", at=90.0)],
        [group("n1", "n3", verdict=Verdict.FAIL, ending=Ending.INTERRUPTED)],
        [group("n1", "n4", verdict=Verdict.FAIL, ending=Ending.NOT_FORMED, formed_again=True)],
        [group("n1", "n3", at=1.0, verdict=Verdict.FAIL)],
        failed_nodes=(
            FailedNode(node="n1", confidence=0.75, reasons=()),
            FailedNode(node="n5", confidence=0.75, reasons=()),
        ),
        cleared_nodes=("n2", "n3", "n4"),
    )
    assert explain(record, "n1", {}).excluded == ("n3 is not to blame: it passed with n4 at 10 GB/s in round 1",)
    crashed = explain(record, "n2", {})
    assert crashed.excluded == ()
    assert "n2: run.killed (signal 9)" in crashed.rounds[0].groups[0].told


def test_a_run_that_speaks_against_others_is_explained_by_them(group, sweep):
    """A node that crashed once in a large group explains it, also if it passed since; in a pair, either may have."""
    many, pair = ("n1", "n2", "n3", "n4"), ("n1", "n2")
    told = [
        explain(sweep([group(*those, **CRASHED)], [group(*pair, at=10.0)], cleared_nodes=those), "n1", {}).excluded
        for those in (many, pair)
    ]
    assert told == [("the bad run with n2, n3, n4 in round 1 is explained by n2",), ()]


def test_what_broke_without_a_verdict_was_bad(group, sweep):
    """Ranks that fail on both ends report no failure of the hardware and speak against the node all the same."""
    broken = Blame(node="n2", reason="run.raised", detail="peer closed")
    unknown = {"verdict": Verdict.UNKNOWN, "blamed": (broken,)}
    bad = [group("n1", other, at=5.0, **unknown) for other in ("n2", "n3")]
    bad = [it.model_copy(update={"places": tuple(_unknown(place) for place in it.places)}) for it in bad]
    record = sweep(*([it] for it in bad), failed_nodes=(FailedNode(node="n1", confidence=0.75, reasons=()),))
    assert explain(record, "n1", {}).excluded == (
        "no single link or partner is to blame: it was bad with each of n2, n3",
    )


def _unknown(place):
    return place.model_copy(update={"verdict": Verdict.UNKNOWN})


def test_a_run_that_made_way_for_work_clears_nobody(group, sweep):
    """One member measured and passed, the other was not there to say; the matrix has no such pair."""
    preempted = (Blame(node="n2", reason="run.preempted", detail="a job began"),)
    void = group("n1", "n2", at=10.0, blamed=preempted)
    first, second = void.places
    void = void.model_copy(update={"places": (first, second.model_copy(update={"verdict": Verdict.SKIPPED}))})
    record = sweep([void], [group("n1", "n3", at=10.0)], cleared_nodes=("n1", "n3"))
    it = explain(record, "n1", {})
    assert it.conclusion == "n1 is cleared: it passed with n3 at 10 GB/s in round 2"
    assert "n2: run.preempted (a job began)" in it.rounds[0].groups[0].told
    assert [pair.nodes for pair in pairs(record)] == [("n1", "n3")]


def test_nothing_is_concluded_from_a_run_that_measured_nothing(group, sweep):
    """One rank alone has nobody to exchange with."""
    link = FailedNode(node="n1", part="node_link", confidence=0.75, reasons=())
    record = sweep([group("n1", "n2", at=1.0, verdict=Verdict.FAIL)], [group("n1", at=0.0)], failed_nodes=(link,))
    assert explain(record, "n1", {}).excluded == ()


def test_every_group_is_told_in_order(bad_link):
    """With whom, as which ranks, why it was formed, what was measured, what came of it, what was judged then."""
    first, second, *_ = explain(bad_link, "n1", {}).rounds
    (told,) = first.groups
    assert (told.others, told.first_rank, told.objective, told.typical) == (("n2",), 0, 1.0, 10.2)
    assert told.told == (
        "with n2; n1 had ranks 0 to 1 of 4",
        "formed because: every node once",
        "verdict FAIL: busbw 1 GB/s is slow: typical here is 10 GB/s",
        "n1 reported PASS",
        "n1 measured algbw_gbps 0.8 GB/s, busbw_gbps 1 GB/s, wrong_elements 0",
    )
    assert first.learned == ("cleared: n3, n4", "suspected: n1, n2")
    assert second.groups[0].told[2] == "reached 90 GB/s, typical for groups of one node alone here is 91 GB/s"


def test_rounds_without_the_node_are_there_too(bad_link):
    """It waited, and others were judged."""
    assert [len(stage.groups) for stage in explain(bad_link, "n2", {}).rounds] == [1, 1, 0, 0]
    assert "round 3\n  n2 was in no group" in explanation_text(explain(bad_link, "n2", {}))


def test_a_group_that_did_not_run_says_why(group, sweep):
    """Who kept it from forming, and that it was formed again."""
    silent = Blame(node="n1", reason="silent", detail="sent nothing while FORMING")
    broken = {"verdict": Verdict.UNKNOWN, "ending": Ending.NOT_FORMED, "blamed": (silent,), "formed_again": True}
    going = {"state": GroupState.RUNNING, "ending": None, "verdict": None}
    record = sweep([group("n1", "n2", places=(), **broken), group("n3", "n2", **going)], ended_at=None)
    before, after = explain(record, "n2", {}).rounds[0].groups
    assert before.told == (
        "with n1",
        "formed because: every node once",
        "the group could not be formed, and was formed again",
        "n1: silent (sent nothing while FORMING)",
        "verdict UNKNOWN",
    )
    assert after.told[-1] == "it is RUNNING now"


def test_findings_of_the_nodes_own_ranks_are_counted(group, sweep):
    """The same finding of both ranks is told once."""
    wrong = Finding(code="collective.wrong", summary="12 elements are wrong", severity=Severity.ERROR)
    made = group("n1", "n2", at=9.0, verdict=Verdict.FAIL)
    place = made.places[0].model_copy(update={"findings": (wrong, wrong), "verdict": Verdict.FAIL})
    record = sweep([made.model_copy(update={"places": (place, made.places[1])})])
    told = explain(record, "n1", {}).rounds[0].groups[0].told
    assert told[-1] == "n1 found collective.wrong: 12 elements are wrong (2 times)"
    assert "reached 9 GB/s, and there are too few runs to compare it with" in told


def test_a_node_behind_its_leaf(bad_leaf, places):
    """What speaks against the leaf is told; whoever met the node is not blamed."""
    it = explain(bad_leaf, "n3", places)
    assert it.standing is SweepStanding.BEHIND
    assert it.conclusion == "n3 itself is inconclusive; leaf l2, where it stands, is at fault"
    assert it.against == ("none passes",)
    assert it.notes == bad_leaf.notes
    assert explain(bad_leaf, "n1", places).excluded == (
        "the bad run with n3 at 1 GB/s in round 1 is explained by leaf l2",
    )


def test_without_places_the_notes_have_to_do(bad_leaf):
    """Nobody knows any more where the node stood."""
    it = explain(bad_leaf, "n3", {})
    assert it.standing is SweepStanding.INCONCLUSIVE
    assert it.notes == bad_leaf.notes


def test_a_link_of_a_cleared_node(group, sweep):
    """The node is cleared and its link to the other one is named."""
    link = FailedLink(between=("n1", "n2"), confidence=0.94, reasons=("bad four times",))
    record = sweep(
        [group("n1", "n2", at=1.0, verdict=Verdict.FAIL), group("n3", "n4", at=10.0)],
        [group("n1", "n3", at=10.0), group("n2", "n4", at=10.0)],
        failed_links=(link,),
        cleared_nodes=("n1", "n2", "n3", "n4"),
    )
    it = explain(record, "n2", {})
    assert it.standing is SweepStanding.CLEARED
    assert it.conclusion.endswith("; its link to n1 is at fault")
    assert it.against == ("bad four times",)
    assert "\nevidence against what connects it\n  bad four times\n" in explanation_text(it)
    assert it.excluded == ("the bad run with n1 at 1 GB/s in round 1 is explained by link n1 - n2",)


def test_while_the_sweep_runs(group, sweep):
    """Nothing is settled; suspicion is told."""
    record = sweep([group("n1", "n2", verdict=Verdict.FAIL)], suspects=("n1",), ended_at=None)
    assert explain(record, "n1", {}).conclusion == "n1 is neither convicted nor cleared yet, and is a suspect"
    assert explain(record, "n2", {}).conclusion == "n2 is neither convicted nor cleared yet"


def test_a_cleared_node_that_has_left(bad_link):
    """Why it took no part from then on stands in the notes, once."""
    left = bad_link.model_copy(update={"absent": {"n4": "busy: another run", "n6": "lost: its agent has vanished"}})
    assert explain(left, "n4", {}).notes[-1] == "n4 took no part: busy: another run"
    assert explain(left, "n6", {}).notes == ("n6: lost: its agent has vanished",)


def test_notes_about_others_are_left_out(group, sweep):
    """Whoever has passed is named as the partner that a thousand others still need."""
    others = [f"m{number}" for number in range(1000)]
    notes = (
        *(f"{other}: it needs a good run with a node that has passed, such as n1" for other in others),
        "n1 is late",
    )
    record = sweep([group("n1", "n2", at=1.0)], nodes=("n1", "n2", *others), inconclusive=tuple(others), notes=notes)
    assert explain(record, "n1", {}).notes == ("n1 is late",)
    assert explain(record, "m7", {}).notes == (notes[7],)


def test_of_whom_the_same_is_said_share_a_line(group, sweep):
    """However large the group was."""
    nodes = [f"n{number}" for number in range(512)]
    silent = tuple(Blame(node=node, reason="silent", detail="sent nothing\nwhile FORMING") for node in nodes[1:])
    lost = {"ending": Ending.NOT_FORMED, "verdict": Verdict.UNKNOWN, "blamed": silent}
    told = explain(sweep([group(*nodes, **lost)]), "n0", {}).rounds[0].groups[0].told
    assert told[3] == "n1, n2, n3, n4, n5, n6, n7, n8 and 503 others: silent (sent nothing while FORMING)"


def test_hundreds_of_members_are_counted(group, sweep):
    """Neither the company nor what is excluded grows with the group."""
    everybody = [f"n{number}" for number in range(512)]
    record = sweep(
        [group(*everybody, at=2.0, verdict=Verdict.FAIL)],
        [group(*everybody[1:], at=10.0)],
        failed_nodes=(FailedNode(node="n0", confidence=0.5, reasons=()),),
        cleared_nodes=tuple(everybody[1:]),
    )
    it = explain(record, "n0", {})
    assert it.rounds[0].groups[0].told[0].startswith("with n1, n2, n3, n4, n5, n6, n7, n8 and 503 others; n0 had ranks")
    assert len(it.excluded) == 9
    assert it.excluded[-1] == "503 other partners are not to blame either: they passed without it"


def test_a_node_of_another_sweep_is_refused(bad_link):
    """With the name that comes nearest."""
    with pytest.raises(Refused, match=r"unknown node of sweep s: 'n11'; did you mean 'n1'\? \(valid: n1, n2"):
        explain(bad_link, "n11", {})


def test_the_text_begins_with_the_conclusion(bad_link):
    """Then what it rests on, each part under its title."""
    it = explain(bad_link, "n1", {"n1": Topology(leaf="l1")})
    lines = explanation_text(it).splitlines()
    assert lines[0] == it.conclusion
    titles = [line for line in lines[1:] if line and not line.startswith(" ")]
    assert titles == ["evidence against it", "ruled out", "round 1", "round 2", "round 3", "round 4"]
    assert "  after this round, suspected: n1, n2" in lines
    assert Explanation.model_validate_json(it.model_dump_json()) == it
