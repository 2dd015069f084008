"""The pages of sweeps: running ones first, culprits by name and with reasons, everything bounded."""

from tests.cases import cases
from tests.coordinator.views.pages.page_sweeps import NOW, SLOW, bad_node, convicted, group, rounds, sweep

from muster.model import Verdict
from muster_coordinator.model.sweep_records import FailedFabric, FailedLink, FailedNode, GroupState, SweepState
from muster_coordinator.views.pages.sweep_page import MOST_DRAWN, MOST_PAIRS, MOST_ROUNDS, sweep_page
from muster_coordinator.views.pages.sweep_table import MOST_CULPRITS, sweep_table

RUNS = {"state": SweepState.RUNNING, "verdict": None, "ended_at": None}


def page(record, **more):
    return sweep_page(record, {}, at=NOW, **more)


def test_running_sweeps_come_first_and_once():
    """The latest of them first; the store has them, too."""
    running = [sweep("one", **RUNS), sweep("two", **{**RUNS, "created_at": NOW - 10})]
    table = sweep_table(running, [*running, sweep("three")], at=NOW)
    assert [line.id for line in table.running.items] == ["two", "one"]
    assert [line.id for line in table.ended] == ["three"]


def test_a_sweep_runs_until_its_end_is_stored():
    """It is no longer among the running sweeps, and the list of those that have ended does not have it yet."""
    table = sweep_table([], [sweep("one", **RUNS), sweep("two")], at=NOW)
    assert [line.id for line in table.running.items] == ["one"]
    assert [line.id for line in table.ended] == ["two"]


@cases("is_first, text", [(True, "No sweep has ended yet."), (False, "There are no earlier sweeps.")])
def test_an_empty_table_says_why(is_first, text):
    """On the first page and on a later one."""
    assert sweep_table([], [], at=NOW, is_first=is_first).why_empty == text


def test_culprits_have_names():
    """Nodes with the faulty part, links, leaves and paths; a list names some of them and counts the rest."""
    record = sweep(
        failed_nodes=(convicted(FailedNode, node="n1", part="node_link", direction="send"),),
        failed_links=(convicted(FailedLink, between=("n2", "n3")),),
        failed_fabric=tuple(convicted(FailedFabric, leaves=leaves) for leaves in (("l1",), ("l1", "l2"), ("l3",))),
    )
    found = page(record).culprits.items
    assert [(item.culprit.kind, item.culprit.nodes, item.culprit.part) for item in found] == [
        ("node", ("n1",), ", its link when it sends"),
        ("link", ("n2", "n3"), ""),
        ("leaf", (), "l1"),
        ("path", (), "l1 - l2"),
        ("leaf", (), "l3"),
    ]
    (line,) = sweep_table([], [record], at=NOW).ended
    assert (len(line.culprits.items), line.culprits.rest) == (MOST_CULPRITS, 1)


def test_a_culprit_has_its_reasons_and_what_they_rule_out():
    """As `muster sweep show --why` says it."""
    (item,) = page(bad_node()).culprits.items
    assert item.culprit.reasons == ("busbw 1 GB/s with n2, which passed",)
    assert item.excluded[0] == "no single link or partner is to blame: it was bad with each of n2, n3"


@cases(
    "more, text",
    [
        (RUNS, "Nothing is convicted yet"),
        ({}, "Nothing: every node has passed."),
        ({"verdict": Verdict.UNKNOWN, "inconclusive": ("n1",)}, "Nothing: the runs do not suffice"),
        ({"verdict": None, "state": SweepState.ABORTED}, "Nothing was convicted."),
    ],
)
def test_a_sweep_without_culprit_says_why(more, text):
    """By its verdict."""
    assert page(sweep(**more)).why_no_culprit.startswith(text)


def test_nodes_without_result_stand_by_what_is_missing():
    """Inconclusive ones by their note, absent ones by their reason; other notes by themselves."""
    record = sweep(
        inconclusive=("n1", "n2", "n3"),
        absent={"n8": "is lost", "n9": "is lost"},
        notes=("n1: too few partners", "n2: too few partners", "n3 and n4 were slow together"),
    )
    shown = page(record)
    assert [(each.sentence, each.nodes.items) for each in shown.inconclusive.items] == [
        ("too few partners", ("n1", "n2")),
        ("", ("n3",)),
    ]
    assert [(each.sentence, each.nodes.items) for each in shown.absent.items] == [("is lost", ("n8", "n9"))]
    assert shown.notes.items == ("n3 and n4 were slow together",)


def test_a_round_counts_its_groups_and_lists_those_that_did_not_pass():
    """A group that still runs is in the count only."""
    running = group("n5", "n6", state=GroupState.RUNNING, ending=None, verdict=None, objective=None, ended_at=None)
    stages = rounds((group("n1", "n2", at=1.0, **SLOW), group("n3", "n4"), running), waiting=1)
    (stage,) = page(sweep(nodes=tuple(f"n{number}" for number in range(1, 7)), rounds=stages, **RUNS)).rounds.items
    assert stage.line == "round 1: 4 groups: 1 passed, 1 failed, 1 running, 1 waiting"
    assert (stage.ended, stage.groups, stage.not_passed.items) == (2, 4, ("n1 + n2: FAIL 1 GB/s",))


def test_failed_pairs_come_first_then_the_slowest():
    """With the unit of the metric."""
    found = page(bad_node()).pairs.items
    assert [(pair.nodes, pair.reached, pair.failed) for pair in found] == [
        (("n1", "n2"), "1 GB/s", 1),
        (("n1", "n3"), "1.5 GB/s", 1),
        (("n3", "n4"), "10 GB/s", 0),
        (("n2", "n4"), "11 GB/s", 0),
    ]


@cases("nodes, is_drawn", [(2, True), (MOST_DRAWN, True), (MOST_DRAWN + 2, False)])
def test_large_sweeps_stay_short(nodes, is_drawn):
    """Lists count what they leave out, and the drawing of too many nodes is only linked."""
    names = tuple(f"n{number}" for number in range(nodes))
    pairs = tuple(group(*names[number : number + 2]) for number in range(0, nodes, 2))
    shown = page(sweep(nodes=names, rounds=rounds(*[pairs] * (MOST_ROUNDS + 1)), suspects=names, inconclusive=names))
    assert shown.is_drawn is is_drawn
    assert (len(shown.rounds.items), shown.rounds.rest) == (MOST_ROUNDS, 1)
    assert shown.pairs.total == nodes // 2
    assert len(shown.pairs.items) <= MOST_PAIRS
    assert shown.suspects.total == shown.inconclusive.items[0].nodes.total == nodes
    assert len(shown.suspects.items) <= 20
