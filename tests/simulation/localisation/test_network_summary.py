"""What the scores on the network of flows come to, in the table and in the sentence below it."""

import pytest

pytest.importorskip("numpy")

from benchmarks.localisation.network_summary import HEADER, network_row, network_summary, network_totals
from benchmarks.localisation.results import Cell
from benchmarks.localisation.scoring import Answer, Played, Score, score
from benchmarks.localisation.truth import Hidden, Named, Truth

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import Probe, Site

NODE, OTHER, LEAF = Named(Part.NODE, ("n0",)), Named(Part.NODE, ("n1",)), Named(Part.LEAF, ("leaf0",))

TRUTH = Truth(
    faults=frozenset({NODE, OTHER, LEAF}),
    leaf_of=dict.fromkeys(("n0", "n1"), "leaf0"),
    hidden={LEAF: Hidden.UNLABELLED},
)


def scored(*named: Named) -> Score:
    """A sweep of one pair that names these: two nodes are bad, and a leaf that nobody can name."""
    played = Played([[Probe(("n0", "n1"), "")]], [], 0.0)
    return score({node: Site(node) for node in ("n0", "n1")}, played, Answer(frozenset(named), 0), TRUTH)


def test_hidden_faults_count_in_the_recall_of_all_only() -> None:
    """The table has both shares, and the figure of all faults is as it was."""
    found = network_summary([scored(NODE), scored(NODE, OTHER)])
    assert (found.recall, found.recall_of_visible) == ((3, 6), (3, 4))
    row = network_row(Cell(2, "calm: 5% of the nodes", "adaptive", 0.02, 1), found, 35.0)
    assert len(row) == len(HEADER)
    assert (row[HEADER.index("recall")], row[HEADER.index("of visible")]) == ("0.5", "0.75")


def test_the_totals_have_both_recalls_of_lasting_faults() -> None:
    """Those that come and go count in neither."""
    lasting, passing = (
        Cell(2, f"calm: {fault}", "adaptive", 0.02, 1) for fault in ("5% of the nodes", "a node 0.3 of the time")
    )
    (said,) = network_totals({lasting: [scored(NODE)], passing: [scored()]})
    assert "1 of 3 lasting faults found (0.3333), 1 of the 2 visible ones (0.5)" in said
