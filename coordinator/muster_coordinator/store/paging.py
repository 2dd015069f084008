"""Lists in pages: a page ends with a cursor that holds the sort key of its last item and requests the next page."""

import base64
import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel
from sqlalchemy import Select, tuple_

from muster.errors import Refused
from muster.model import Data
from muster_coordinator.store.database import Database

RowT = TypeVar("RowT", bound=BaseModel)


MOST_CURSOR = 2_000
"""Maximum length of a cursor in characters. It holds a name of up to 253 characters and a number, encoded twice."""


class Page(Data, Generic[RowT]):
    """One page of a list; `next_cursor` requests the next page, None if there is none."""

    items: tuple[RowT, ...]
    next_cursor: str | None = None


async def read_page(
    database: Database,
    query: Select[Any],
    read: Callable[[str], RowT | None],
    *,
    table: str,
    limit: int,
    cursor: str | None,
) -> Page[RowT]:
    """One page of a query with the columns of the sort key, then the body that `read` reads; latest first.

    A page leaves out rows for which `read` returns None and rows that cannot be read, and may be shorter than `limit`.
    Raises Refused if the cursor is not valid. Log lines name the rows' `table`.
    """
    *key, _body = query.selected_columns
    if cursor is not None:
        query = query.where(tuple_(*key) < tuple_(*read_cursor(cursor, [column.type.python_type for column in key])))
    query = query.order_by(*(column.desc() for column in key)).limit(limit + 1)
    async with database.reading() as connection:
        rows = (await connection.execute(query)).all()
    last = rows[limit - 1][:-1] if len(rows) > limit else None
    items = database.unread.leave_out(table, ((row[-2], row[-1]) for row in rows[:limit]), read)
    return Page(
        items=tuple(item for item in items if item is not None),
        next_cursor=None if last is None else make_cursor(*last),
    )


def make_cursor(*key: str | float) -> str:
    """The position after the item with this sort key, as a word that fits into a URL."""
    # `repr`, because the key of a damaged row may be of a type that JSON lacks, and its page is served nevertheless.
    return base64.urlsafe_b64encode(json.dumps(key, default=repr).encode()).decode().rstrip("=")


def read_cursor(cursor: str, kinds: Sequence[type]) -> list[Any]:
    """The sort key in a cursor, which has values of these kinds. Raises Refused if the cursor is not valid."""
    key = _decoded(cursor) if len(cursor) <= MOST_CURSOR else None
    if not isinstance(key, list) or [type(part) for part in key] != list(kinds) or not all(map(_can_be_stored, key)):
        raise Refused("cursor: not one that this API returned; leave it out to start from the first page")
    return key


def _decoded(cursor: str) -> Any:
    try:
        return json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        return None


def _can_be_stored(part: Any) -> bool:
    """Whether a database can store the value and compare with it. Any other value cannot be the key of a row."""
    match part:
        case str():
            return part.isprintable()
        case int():
            return -(1 << 63) <= part < 1 << 63
        case float():
            return math.isfinite(part)
    return False
