"""The row of a node for viewers, and rows in columns."""

from tests.cases import cases

from muster.model import Device, Health, ServiceState, Severity, Topology
from muster_coordinator.model.nodes import NodeFinding, NodeView
from muster_coordinator.views.node_rows import DatedRow, changed_before, columns, row_of


def finding(code, severity=Severity.ERROR, since=1.0, **evidence):
    return NodeFinding(code=code, summary="", severity=severity, check="c", run="r", since=since, evidence=evidence)


def view(name="n1", **more):
    fields = {"health": Health.HEALTHY, "service": ServiceState.IN_SERVICE, "lost": False, "last_seen": 9.0}
    return NodeView(**{"name": name, "devices": (), "findings": (), **fields, **more})


@cases(
    "findings, worst",
    [
        ((), (None, None, 0)),
        ((finding("a.x"),), ("a.x", Severity.ERROR, 1)),
        ((finding("a.x", Severity.WARNING), finding("b.y", Severity.ERROR, 2.0)), ("b.y", Severity.ERROR, 2)),
        ((finding("a.x", Severity.UNKNOWN), finding("b.y", Severity.WARNING)), ("b.y", Severity.WARNING, 2)),
        ((finding("a.x", since=2.0), finding("b.y", since=1.0)), ("b.y", Severity.ERROR, 2)),
        ((finding("kernel_log.xid", xid=79),), ("kernel_log.xid 79", Severity.ERROR, 1)),
    ],
)
def test_the_worst_finding_of_a_node(findings, worst):
    """By severity, then the one that was there first; with the number of an XID."""
    row = row_of(view(findings=findings))
    assert (row.worst, row.severity, row.findings) == worst


@cases(
    "more, moment",
    [
        ({}, None),
        ({"findings": (finding("a.x", since=3.0), finding("b.y", since=5.0))}, 5.0),
        ({"lost": True}, 9.0),
        ({"lost": True, "findings": (finding("a.x", since=3.0),)}, 9.0),
    ],
)
def test_when_a_node_changed_before_the_start(more, moment):
    """Findings and silence outlast a restart."""
    assert changed_before(view(**more)) == moment


def test_rows_in_columns():
    """A name that several nodes share stands once."""
    gpu = Device(index=0, uuid="u", model="H100", memory_bytes=1)
    rack = Topology(block="b1", rack="r1", host="h1")
    views = [
        view("n1", devices=(gpu, gpu), topology=rack),
        view("n2", health=Health.FAILED, service=ServiceState.CORDONED, findings=(finding("a.x"),), topology=rack),
        view("n3", lost=True, left=True, dry_run=True),
    ]
    rows = [DatedRow(row_of(each), 1, moment) for each, moment in zip(views, (None, 90.0, 0.0), strict=True)]
    names, nodes = columns(rows, 100.0)
    assert nodes.model_dump() == {
        "name": ("n1", "n2", "n3"),
        "health": (1, 4, 1),
        "service": (1, 3, 1),
        "lost": (0, 0, 1),
        "left": (0, 0, 1),
        "dry_run": (0, 0, 1),
        "place": (0, 0, 1),
        "worst": (None, 0, None),
        "severity": (None, 4, None),
        "findings": (0, 1, 0),
        "model": (0, None, None),
        "devices": (2, 0, 0),
        "changed_s": (None, 10, 100),
    }
    assert names.model_dump() == {
        "health": tuple(Health),
        "service": tuple(ServiceState),
        "severity": tuple(Severity),
        "place": {"block": ("b1", None), "rack": ("r1", None), "leaf": (None, None)},
        "worst": ("a.x",),
        "model": ("H100",),
    }


@cases(
    "seconds, shown",
    [(0, 0), (-5, 0), (59.6, 60), (3600, 3600), (3649, 3600), (90_061, 90_000), (2_592_000, 2_600_000)],
)
def test_ages_above_an_hour_have_two_digits(seconds, shown):
    """More digits would double the size of the column, and lists show no more."""
    _, nodes = columns([DatedRow(row_of(view()), 1, 1e9 - seconds)], 1e9)
    assert nodes.changed_s == (shown,)
