"""What happened lately in the whole fleet, as pages read it."""

import pytest
from tests.coordinator.store.stored_records import START

from muster.model import ServiceState
from muster.transition import Transition
from muster_coordinator.model.events import AppendStory
from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.quarantine_events import Asked, HoldRequested, SaveRequest, SaveTransition
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.store.recent import asked_since, story_since, timeline, transitions_since


def entry(number, kind, **more):
    return AppendStory(
        StoryEntry(id=f"e{number}", at=START + number, node=f"n{number}", kind=kind, **{"text": "x", **more})
    )


async def test_entries_of_a_kind_are_found_among_many_others(store):
    """The latest first; also if another entry speaks of the kind."""
    told = entry(3, "note", text='"kind":"health"', data={"kind": "health"})
    await store.write([entry(1, "health"), entry(2, "lost"), told, *(entry(n, "sweep_begun") for n in range(4, 50))])
    found, is_cut = await story_since(store.database, START, ("health", "lost"), 10)
    assert ([each.id for each in found], is_cut) == (["e2", "e1"], False)
    found, _ = await story_since(store.database, START + 2, ("health", "lost"), 10)
    assert [each.id for each in found] == ["e2"]


@pytest.mark.parametrize(("limit", "is_cut"), [(2, True), (3, False)])
async def test_a_list_that_is_cut_says_so(store, limit, is_cut):
    """The oldest are left out."""
    saved = [entry(n, "health") for n in range(3)]
    for number in range(3):
        at = START + number
        request = HoldRequested(node="n1", by="ann", reason="fan")
        transition = Transition(
            id=f"t{number}",
            node="n1",
            before=ServiceState.IN_SERVICE,
            after=ServiceState.HELD,
            reason="",
            at=at,
        )
        saved += [
            SaveRequest(asked=Asked(id=f"q{number}", at=at, request=request)),
            SaveTransition(record=TransitionRecord(transition=transition)),
        ]
    await store.write(saved)
    records, records_are_cut = await transitions_since(store.database, START, limit)
    for found, cut in (
        await story_since(store.database, START, ("health",), limit),
        await asked_since(store.database, START, limit),
        ([record.transition for record in records], records_are_cut),
    ):
        assert ([each.id[1:] for each in found], cut) == (["2", "1", "0"][:limit], is_cut)


@pytest.mark.parametrize(
    ("node", "kind", "found"),
    [
        (None, None, ["e9", "e8", "e7", "e6", "e5", "e4", "e3", "e2", "e1", "e0"]),
        ("n3", None, ["e3"]),
        (None, "lost", ["e8", "e6", "e4", "e2", "e0"]),
        ("n4", "health", []),
    ],
)
async def test_the_timeline_is_read_in_pages(store, node, kind, found):
    """Of all nodes and kinds, or of one; also if another entry speaks of the kind."""
    await store.write([entry(n, ("health", "lost")[n % 2 == 0], data={"kind": "lost"}) for n in range(10)])
    page = await timeline(store.database, 4, None, node=node, kind=kind)
    read = [*page.items]
    while page.next_cursor is not None:
        page = await timeline(store.database, 4, page.next_cursor, node=node, kind=kind)
        read += page.items
    assert [each.id for each in read] == found
