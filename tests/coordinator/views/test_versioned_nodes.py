"""A viewer gets what changed since its version, each node once and as it is now."""

from itertools import pairwise

from tests.cases import cases

from muster.model import Health, ServiceState
from muster_coordinator.views.node_rows import NodeRow
from muster_coordinator.views.versioned_nodes import MOST_ROWS, PERIOD_S, VersionedNodes

SICK = {"n1": Health.FAILED, "n2": Health.SUSPECT, "n3": Health.DEGRADED}


def row(name, health=Health.HEALTHY):
    return NodeRow(
        name, health, ServiceState.IN_SERVICE, False, False, False, (None, None, None), None, None, 0, None, 0
    )


def versioned(*cuts):
    """Three healthy nodes, then these cuts: each the nodes that break (`n1`), recover (`+n1`) or go (`-n1`) before."""
    nodes = VersionedNodes()
    for name in SICK:
        nodes.seed(row(name), None)
    for at, changes in enumerate(cuts, 1):
        for change in changes.split():
            name = change.lstrip("+-")
            if change.startswith("-"):
                nodes.drop(name, at)
            else:
                nodes.note(row(name, Health.HEALTHY if change.startswith("+") else SICK.get(name, "")), at)
        nodes.cut(float(at))
    return nodes


def told(nodes, since):
    """The rows and the nodes gone since that version, by name; None if a snapshot is needed."""
    changed = nodes.since(since)
    if changed is None:
        return None
    rows = [f"{'+' if dated.row.health is Health.HEALTHY else ''}{dated.row.name}" for dated in changed.rows]
    return sorted([*rows, *(f"-{name}" for name in changed.gone)])


@cases(
    "cuts, since, expected",
    [
        ([], 0, []),
        (["n1"], 0, ["n1"]),
        (["n1"], 1, []),
        (["n1", "n2"], 1, ["n2"]),
        (["n1", "n2"], 0, ["n1", "n2"]),
        (["n1", "+n1"], 0, ["+n1"]),  # the latest state only
        (["n1 +n1"], 0, []),  # nobody has seen it
        (["n1", "", "n2"], 1, ["n2"]),  # a cut without changes is no version
        (["-n1"], 0, ["-n1"]),
        (["-n1", "n1"], 0, ["n1"]),
        (["-n1", "n1", "n2"], 2, ["n2"]),
        (["n4"], 0, ["n4"]),
        (["n4 -n4"], 0, []),
        (["n4", "-n4"], 0, ["-n4"]),
        (["-n4"], 0, []),  # was never there
        (["n1"], 2, None),  # from the future
        (["n1"], -1, None),
    ],
)
def test_what_changed_since_a_version(cuts, since, expected):
    """Each node once, as it is now, and those that are gone."""
    assert told(versioned(*cuts), since) == expected


def test_too_many_changes_need_a_snapshot():
    """Of changed nodes and of nodes that are gone; what came later is still known."""
    names = [f"m{number}" for number in range(MOST_ROWS)]
    nodes = versioned(" ".join(f"+{name}" for name in names), "+m0 n1")
    assert (len(told(nodes, 0) or []), told(nodes, 1)) == (0, ["n1"])
    assert len(told(versioned(" ".join(f"+{name}" for name in names)), 0) or []) == MOST_ROWS
    nodes = versioned(" ".join(f"+{name}" for name in names), " ".join(f"-{name}" for name in names), "-n1", "-n2")
    assert (told(nodes, 0), told(nodes, 1), told(nodes, 2)) == (None, None, ["-n1", "-n2"])


def test_a_viewer_of_differences_ends_with_the_fleet():
    """However many versions it skips, what it has is what a new snapshot has."""
    cuts = ["n1", "n2 -n3", "+n1 n3", "-n2", "n4 -n1", "n2", "+n4 n1", "-n4 +n3"]
    for step in range(1, len(cuts) + 1):
        seen = {dated.row.name: dated.row for dated in versioned().rows}
        for before, now in pairwise([*range(0, len(cuts), step), len(cuts)]):
            nodes = versioned(*cuts[:now])
            changed = nodes.since(before)
            assert changed is not None
            seen |= {dated.row.name: dated.row for dated in changed.rows}
            seen = {name: row for name, row in seen.items() if name not in changed.gone}
            assert seen == {dated.row.name: dated.row for dated in nodes.rows}


@cases(
    "cut_at, now, expected",
    [(None, 0.0, 0.0), (10.0, 10.0, PERIOD_S), (10.0, 10.1, PERIOD_S - 0.1), (10.0, 10.25, 0.0), (10.0, 99.0, 0.0)],
)
def test_when_a_version_is_due(cut_at, now, expected):
    """At once after a quiet time, and at most four in a second."""
    nodes = VersionedNodes()
    if cut_at is not None:
        nodes.note(row("n1"), 0.0)
        assert nodes.cut(cut_at)
    assert round(nodes.due_in(now), 6) == round(expected, 6)


def test_a_cut_without_changes_waits_for_none():
    """So the first change after it is seen at once; numbers that changed make a version without any node."""
    nodes = VersionedNodes()
    assert not nodes.cut(10.0)
    assert nodes.due_in(10.0) == 0.0
    assert nodes.cut(10.0, always=True)
    assert nodes.version == 1


def test_the_first_rows_are_part_of_the_present_version():
    """A change that has come before is newer, and stays."""
    nodes = VersionedNodes()
    nodes.note(row("n1", Health.FAILED), 5.0)
    nodes.seed(row("n1"), None)
    nodes.cut(5.0)
    nodes.seed(row("n1"), None)
    nodes.seed(row("n2"), 3.0)
    assert [(dated.row.health, dated.version, dated.changed_at) for dated in nodes.rows] == [
        (Health.FAILED, 1, 5.0),
        (Health.HEALTHY, 1, 3.0),
    ]
    assert told(nodes, 1) == []
