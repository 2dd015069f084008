"""The timeline of the fleet: what many nodes have in common is one line, and each kind can be chosen."""

import re
from pathlib import Path

from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW

import muster_coordinator
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.views.pages.event_list import KINDS, MOST_NODES, event_list

WRITTEN = re.compile(r"""(?:\.tell|\.found|[^_]note)\(\s*[\w.]+,\s*"(\w+)"|about="(\w+)\"""")


def entry(node, kind="health", text="HEALTHY to FAILED", *, at=NOW, cause=None):
    return StoryEntry(id=f"{node}-{kind}", at=at, node=node, kind=kind, text=text, cause=cause)


def test_the_same_of_many_nodes_is_one_line():
    """As long as nothing else lies between; the same node again begins another."""
    entries = [entry("n1"), entry("n2"), entry("n1"), entry("n3", "lost", "silent"), entry("n4")]
    lines = event_list(entries, at=NOW).lines
    assert [(line.kind, line.nodes.items) for line in lines] == [
        ("health", ("n1", "n2")),
        ("health", ("n1",)),
        ("lost", ("n3",)),
        ("health", ("n4",)),
    ]


def test_a_sweep_of_a_large_fleet_is_one_line():
    """With the first nodes, the number of the others, and its link."""
    entries = [entry(f"n{number}", "sweep_begun", "sweep s", cause="s") for number in range(150)]
    (line,) = event_list(entries, at=NOW).lines
    assert (len(line.nodes.items), line.nodes.rest, line.sweep) == (MOST_NODES, 150 - MOST_NODES, "s")
    (line,) = event_list([entry("n1", "found", cause="run")], at=NOW).lines
    assert line.sweep is None


@cases(
    "more, text",
    [
        ({}, "Nothing has happened yet"),
        ({"kind": "lost"}, "No stored event fits this filter."),
        ({"is_first": False}, "No event on this page fits."),
        ({"kind": "lost", "next_cursor": "x"}, "No event on this page fits."),
        ({"kind": "rock", "refused": "unknown kind"}, ""),
    ],
)
def test_an_empty_page_says_why(more, text):
    """And nothing beside a refusal."""
    assert event_list([], at=NOW, **more).why_empty.startswith(text)
    assert bool(text) == bool(event_list([], at=NOW, **more).why_empty)


def test_every_kind_can_be_chosen():
    """Those that the coordinator writes, and no other."""
    sources = Path(muster_coordinator.__file__).parent.rglob("*.py")
    written = {one or other for source in sources for one, other in WRITTEN.findall(source.read_text())}
    assert {kind for kinds in KINDS.values() for kind in kinds} == written
