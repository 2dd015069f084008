"""What happened lately in the whole fleet: entries of all stories, requests of people, and transitions."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import ColumnElement, Select, or_, select

from muster_coordinator.model.nodes import StoryEntry
from muster_coordinator.model.quarantine_events import Asked
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.store.database import Database
from muster_coordinator.store.paging import Page, read_page
from muster_coordinator.store.tables import ACTIONS, REQUESTS, STORY

EntryT = TypeVar("EntryT", bound=BaseModel)


async def story_since(
    database: Database, since: float, kinds: Sequence[str], limit: int
) -> tuple[tuple[StoryEntry, ...], bool]:
    """The entries of these kinds since then, the latest first, at most `limit`; and whether there are more.

    The kind stands in the body only. The database looks for it there, otherwise a sweep, which writes an entry for each
    of its nodes, would hide all others.
    """
    of_kind = or_(*map(_is_of_kind, kinds))
    query = select(STORY.c.number, STORY.c.body).where(STORY.c.at >= since, of_kind).order_by(STORY.c.number.desc())
    found, is_cut = await _read(database, "story", query, StoryEntry.model_validate_json, limit)
    return tuple(entry for entry in found if entry.kind in kinds), is_cut


async def timeline(
    database: Database, limit: int, cursor: str | None, *, node: str | None = None, kind: str | None = None
) -> Page[StoryEntry]:
    """The story entries of all nodes, or of one, and of all kinds, or of one, the latest first.

    A page may be shorter than `limit`, see `read_page`. Raises Refused if the cursor is not valid.
    """
    query = select(STORY.c.number, STORY.c.body)
    if node is not None:
        query = query.where(STORY.c.node == node)
    if kind is not None:
        query = query.where(_is_of_kind(kind))

    def read(body: str) -> StoryEntry | None:
        entry = StoryEntry.model_validate_json(body)
        return entry if kind in (None, entry.kind) else None

    return await read_page(database, query, read, table="story", limit=limit, cursor=cursor)


def _is_of_kind(kind: str) -> ColumnElement[bool]:
    """Whether the body may be that of an entry of this kind: another entry may have such a text in its data."""
    return STORY.c.body.contains(f'"kind":"{kind}"', autoescape=True)


async def asked_since(database: Database, since: float, limit: int) -> tuple[tuple[Asked, ...], bool]:
    """What people requested since then, the latest first, at most `limit`; and whether there is more."""
    query = select(REQUESTS.c.id, REQUESTS.c.body).where(REQUESTS.c.at >= since).order_by(REQUESTS.c.at.desc())
    return await _read(database, "requests", query, Asked.model_validate_json, limit)


async def transitions_since(database: Database, since: float, limit: int) -> tuple[tuple[TransitionRecord, ...], bool]:
    """The transitions of all nodes since then, the latest first, at most `limit`; and whether there are more."""
    query = select(ACTIONS.c.id, ACTIONS.c.body).where(ACTIONS.c.at >= since).order_by(ACTIONS.c.at.desc())
    return await _read(database, "actions", query, TransitionRecord.model_validate_json, limit)


async def _read(
    database: Database, table: str, query: Select[Any], read: Callable[[str], EntryT], limit: int
) -> tuple[tuple[EntryT, ...], bool]:
    async with database.reading() as connection:
        rows = [(key, body) for key, body in await connection.execute(query.limit(limit + 1))]
    # Hundreds of entries take tens of milliseconds, in which other requests must be answered.
    found = await asyncio.to_thread(lambda: tuple(database.unread.leave_out(table, rows[:limit], read)))
    return found, len(rows) > limit
