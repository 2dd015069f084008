"""The table of nodes and of groups: in the order of the API, in pages, with selections that its links can carry."""

import pytest
from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, found, row

from muster.errors import Refused
from muster.model import Health, ServiceState, Topology
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.pages.ages import age_text
from muster_coordinator.views.pages.group_lines import MOST_LABELS, group_keys, group_lines
from muster_coordinator.views.pages.node_table import (
    NodeTable,
    TableAddress,
    finding_labels,
    in_order,
    table_line,
    table_part,
)
from muster_coordinator.views.pages.page_row import (
    RowCondition,
    condition_counts,
    needs_view,
    row_of_candidate,
)
from muster_coordinator.views.pages.selection_link import selection


def node(name, health=Health.HEALTHY, service=ServiceState.IN_SERVICE, *, rack=None, lost=False, left=False, **labels):
    return Candidate(name, Topology(rack=rack), labels, health, service, lost=lost, left=left)


NODES = [
    node("n1", rack="r2"),
    node("n2", Health.DEGRADED, rack="r1"),
    node("n3", Health.FAILED, lost=True, left=True),
    node("n5", Health.FAILED, rack="r2"),
    node("n4", Health.FAILED, rack="r2"),
    node("n6", Health.UNKNOWN, lost=True, rack="r3"),
]


@cases(
    "sort, names",
    [
        ("urgency", ["n4", "n5", "n2", "n6", "n1", "n3"]),
        ("-urgency", ["n3", "n1", "n6", "n2", "n5", "n4"]),
        ("rack", ["n2", "n1", "n4", "n5", "n6", "n3"]),
        ("-name", ["n6", "n5", "n4", "n3", "n2", "n1"]),
    ],
)
def test_the_order_is_that_of_the_api(sort, names):
    """By urgency the worst first, and what has left last; `-` turns the order around."""
    assert [each.name for each in in_order(NODES, sort)] == names


def test_a_wrong_key_says_what_it_was_for():
    """The page has two fields for keys."""
    with pytest.raises(Refused, match=r"^sort: unknown key 'rak'.*rack"):
        in_order(NODES, "-rak")
    with pytest.raises(Refused, match=r"^group: unknown key 'rak'.*rack"):
        group_lines(NODES, "rak", None, is_current=True)


@cases("page, shown, first", [(1, 100, 1), (3, 50, 201), (99, 50, 201)])
def test_a_table_has_pages(page, shown, first):
    """After the last page comes the last one."""
    part = table_part(range(250), page)
    assert (len(part.items), part.first, part.pages, part.total) == (shown, first, 3, 250)


@cases("nodes, select, text", [(0, None, "No node has reported yet"), (5, "health=FAILED", "No node fits")])
def test_an_empty_table_says_why(nodes, select, text):
    """And what to do."""
    address = TableAddress(select=select)
    table = NodeTable(at=NOW, address=address, nodes=nodes, found=0, counts={}, part=table_part((), 1))
    assert table.why_empty.startswith(text)


def test_conditions_are_counted():
    """The worst first, without nodes that have left. While no node is heard, faults stand and the rest is unknown."""
    failed, silent, degraded = RowCondition.FAILED, RowCondition.SILENT, RowCondition.DEGRADED
    counts = condition_counts(NODES, is_current=True)
    assert [*counts.items()] == [(failed, 2), (silent, 1), (degraded, 1), (RowCondition.HEALTHY, 1)]
    counts = condition_counts(NODES, is_current=False)
    assert [*counts.items()] == [(failed, 2), (silent, 1), (degraded, 1), (RowCondition.UNKNOWN, 1)]


def test_groups_with_the_most_faults_come_first():
    """Each opens as a selection within the selection of the page; one without a value has none."""
    lines = group_lines(NODES, "rack", "name=n*", is_current=True)
    assert [(line.value, line.nodes, line.select) for line in lines] == [
        ("r2", 3, "name=n* rack=r2"),
        ("r3", 1, "name=n* rack=r3"),
        ("r1", 1, "name=n* rack=r1"),
        (None, 1, None),
    ]
    assert lines[0].counts == {RowCondition.FAILED: 2, RowCondition.HEALTHY: 1}


@cases("value, select", [("a", "label:pool=a"), ("a b", "'label:pool=a b'"), ("a,b", None), ("", None)])
def test_a_group_opens_as_the_selection_of_its_nodes(value, select):
    """A value that a selection cannot name has no link."""
    (line,) = group_lines([node("n1", pool=value)], "label:pool", None, is_current=True)
    assert line.select == select
    if select:
        assert parse_selection(select).fitting([node("n1", pool=value), node("n2")], {}).nodes == ("n1",)


def test_the_page_suggests_keys_of_groups():
    """Labels among them, as many as a person may read."""
    keys = group_keys([node("n1", **{f"label-{number:03}": "x" for number in range(200)})])
    assert {"rack", "service", "label:label-000"} <= {*keys}
    assert "name" not in keys
    assert sum(key.startswith("label:") for key in keys) == MOST_LABELS


def test_a_line_says_when_the_last_of_it_began():
    """A finding, or silence."""
    old, new = found(since=NOW - 600), found("host.load", since=NOW - 60)
    assert table_line(row("n1"), is_current=True).changed_at is None
    assert table_line(row("n1", Health.FAILED, findings=(new, old)), is_current=True).changed_at == NOW - 60
    silent = row("n1", Health.FAILED, findings=(old,), lost=True, last_seen=NOW - 90)
    assert table_line(silent, is_current=True).changed_at == NOW - 90


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
    "given, query",
    [
        ({}, {}),
        ({"select": "a"}, {"select": "a"}),
        ({"page": 2, "sort": "urgency"}, {"page": "2"}),
        (
            {"select": "a", "sort": "-rack", "group": "leaf", "page": 2},
            {"select": "a", "sort": "-rack", "group": "leaf", "page": "2"},
        ),
    ],
)
def test_links_leave_out_what_is_usual(given, query):
    """URLs stay short."""
    assert TableAddress(**given).parameters == query


@cases(
    "sort, direction, after",
    [("rack", "ascending", "-rack"), ("-rack", "descending", "rack"), ("leaf", "", "rack"), ("urgency", "", "rack")],
)
def test_a_head_turns_the_order_around(sort, direction, after):
    """It says how it sorts, and sorts by its key first."""
    address = TableAddress(sort=sort)
    assert (address.direction("rack"), address.sort_after("rack")) == (direction, after)


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
