"""The table of nodes: the worst first, in pages, with selections that its links can carry."""

from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, found, row

from muster.model import Health, ServiceState, Topology
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.pages.ages import age_text
from muster_coordinator.views.pages.node_table import finding_labels, node_table, table_query
from muster_coordinator.views.pages.page_row import needs_view, row_of_candidate
from muster_coordinator.views.pages.selection_link import selection


def test_the_worst_come_first_and_what_has_left_last():
    """Of equal condition by name."""
    rows = [
        row("n1"),
        row("n2", Health.DEGRADED),
        row("n3", Health.FAILED, lost=True, left=True),
        row("n5", Health.FAILED),
        row("n4", Health.FAILED),
        row("n6", Health.UNKNOWN, lost=True),
    ]
    table = node_table(rows, at=NOW, nodes=6, select=None, page=1)
    assert [line.row.name for line in table.lines] == ["n4", "n5", "n6", "n2", "n1", "n3"]


@cases("page, shown, first", [(1, 100, 1), (3, 50, 201), (99, 50, 201)])
def test_a_table_has_pages(page, shown, first):
    """After the last page comes the last one."""
    table = node_table([row(f"n{n:03}") for n in range(250)], at=NOW, nodes=250, select=None, page=page)
    assert (len(table.lines), table.first, table.pages) == (shown, first, 3)


@cases("nodes, select, text", [(0, None, "No node has reported yet"), (5, "health=FAILED", "No node fits")])
def test_an_empty_table_says_why(nodes, select, text):
    """And what to do."""
    assert node_table([], at=NOW, nodes=nodes, select=select, page=1).why_empty.startswith(text)


def test_a_finding_stands_once_with_all_its_gpus():
    """As `muster node list` has it."""
    findings = (found(device=0), found(device=3), found("host.load"), found("k.xid", device=1, evidence={"xid": 79}))
    assert finding_labels(findings) == ("gemm.slow GPU0,3", "host.load", "XID 79 GPU1")


@cases(
    "terms, text",
    [
        ({"block": "b1", "rack": "r1"}, "block=b1 rack=r1"),
        ({"block": None, "leaf": "leaf 1"}, "'leaf=leaf 1'"),
        ({"rack": "a,b"}, None),
        ({"rack": 'say "x"'}, None),
        ({"rack": "n[1-3]"}, None),
        ({}, None),
    ],
)
def test_a_link_selects_what_it_names(terms, text):
    """What a selection cannot name has no link."""
    assert selection(**terms) == text
    if text is not None:
        values = {term.key: term.values for term in parse_selection(text).terms}
        assert values == {key: (value,) for key, value in terms.items() if value is not None}


@cases(
    "select, page, query",
    [(None, 1, {}), ("a", 1, {"select": "a"}), (None, 2, {"page": "2"}), ("a", 2, {"select": "a", "page": "2"})],
)
def test_links_leave_out_what_is_usual(select, page, query):
    """URLs stay short."""
    assert table_query(select, page) == query


def test_a_plain_node_needs_no_view():
    """Most nodes are plain, and a view takes ten times as long. Both rows are the same but for when it was heard."""
    candidate = Candidate("n1", Topology(rack="r1"), {}, Health.HEALTHY, ServiceState.IN_SERVICE)
    assert not needs_view(candidate)
    made, viewed = row_of_candidate(candidate, is_away=False), row("n1", place={"rack": "r1"})
    assert (made.name, made.place, made.condition) == (viewed.name, viewed.place, viewed.condition)


@cases("seconds, text", [(-3, "0 s"), (59, "59 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (400_000, "5 d")])
def test_ages_are_short(seconds, text):
    """And never less precise than they need be."""
    assert age_text(seconds) == text
