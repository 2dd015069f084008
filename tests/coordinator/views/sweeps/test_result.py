import time

from tests.cases import cases

from muster_coordinator.model.sweep_records import FailedLink, FailedNode
from muster_coordinator.views.sweeps.naming import failed_part
from muster_coordinator.views.sweeps.result import smallest_loss_in_words, sweep_report
from muster_coordinator.views.sweeps.rounds import sweep_rounds


def test_the_whole_report(bad_link):
    """Who failed and why, who is open and why, what else was seen, who is cleared, what it cost."""
    assert sweep_report(bad_link).splitlines() == [
        "sweep s finished: FAIL (collective, adaptive, 6 nodes, 4 rounds)",
        "failed node n1, its link when it sends (confidence 0.88)",
        "  it passes alone, so that its link is to blame",
        "  busbw 1 GB/s with n2 (which passed)",
        "inconclusive: n6 (lost: its agent has vanished)",
        "note: n2 and n4 were bad together and well otherwise",
        "cleared: 4 of 6 nodes",
        "spent: 420 node-seconds in 9 groups and 4 rounds, 60 s in all",
    ]


def test_links_and_fabric_are_named(bad_leaf):
    """As what they are."""
    link = FailedLink(between=("n1", "n2"), confidence=0.94, reasons=("bad four times",))
    lines = sweep_report(bad_leaf.model_copy(update={"failed_links": (link,)})).splitlines()
    assert "failed link n1 - n2 (confidence 0.94)" in lines
    assert "failed leaf l2 (confidence 0.90)" in lines
    path = bad_leaf.failed_fabric[0].model_copy(update={"leaves": ("l1", "l2")})
    assert "failed path l1 - l2 (confidence 0.90)" in sweep_report(
        bad_leaf.model_copy(update={"failed_fabric": (path,)})
    )


def test_nodes_that_are_open_for_the_same_reason_share_a_line(bad_leaf):
    """However many they are."""
    notes = ("n3: no partner could tell", "n4: no partner could tell")
    lines = sweep_report(bad_leaf.model_copy(update={"notes": notes})).splitlines()
    assert "inconclusive: n3, n4 (no partner could tell)" in lines
    assert "inconclusive: n3, n4" in sweep_report(bad_leaf.model_copy(update={"notes": ()})).splitlines()


def test_thousands_of_open_nodes_are_told_in_no_time(sweep):
    """Also when each is open for a reason of its own."""
    nodes = tuple(f"n{number}" for number in range(20_000))
    record = sweep(nodes=nodes, inconclusive=nodes, notes=tuple(f"{node}: lost at {node}" for node in nodes))
    began = time.process_time()
    assert len(sweep_report(record).splitlines()) == 20_003
    assert time.process_time() - began < 5.0


def test_a_sweep_that_runs_has_no_cost_yet(bad_link):
    """Its suspects stand in the place of a verdict."""
    running = bad_link.model_copy(update={"ended_at": None, "verdict": None, "suspects": ("n1",), "reason": "why not"})
    lines = sweep_report(running).splitlines()
    assert "no verdict yet" in lines[0]
    assert lines[1] == "  why not"
    assert "suspects: n1" in lines
    assert not any(line.startswith("spent") for line in lines)


@cases(
    ("values", "words"),
    [
        ({}, ""),
        ({"part": "node_link"}, ", its link"),
        ({"part": "node_link", "direction": "receive"}, ", its link when it receives"),
        ({"part": "rail", "rails": (3,)}, ", its rail 3"),
        ({"part": "rail", "rails": (3, 5), "direction": "send"}, ", its rails 3, 5 when it sends"),
        ({"direction": "send"}, ", when it sends"),
    ],
)
def test_what_of_a_node_failed(values, words):
    """The node as a whole needs no words."""
    assert failed_part(FailedNode(node="n1", confidence=0.5, reasons=(), **values)) == words


def test_the_rounds_show_every_group(bad_link):
    """And what each round has changed."""
    lines = sweep_rounds(bad_link).splitlines()
    assert lines[:7] == [
        "",
        "round 1",
        "  n1 + n2: FAIL 1 GB/s",
        "  n3 + n4: PASS 10 GB/s",
        "  n5 + n6: UNKNOWN, aborted; n6: lost (its agent has vanished)",
        "  cleared: n3, n4",
        "  suspected: n1, n2",
    ]


@cases(
    ("smallest_loss", "words"),
    [
        (0.184, "A node that loses less than 18 % would not have been found."),
        (1.0, "Nothing was compared: how much speed a node has lost is not known."),
        (None, ""),
    ],
    ids=["a share", "any", "nothing measured"],
)
def test_the_loss_that_an_ended_sweep_could_not_have_found(smallest_loss, words, bad_link):
    """It stands below what was cleared. A sweep that runs may still find it."""
    record = bad_link.model_copy(update={"smallest_loss": smallest_loss})
    assert smallest_loss_in_words(record) == words
    assert not words or words in sweep_report(record).splitlines()
    assert smallest_loss_in_words(record.model_copy(update={"ended_at": None})) == ""
