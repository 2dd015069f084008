"""Reads records from rows of the database, where a disk or somebody's hand may have changed them.

A row that nobody can do without ends the command that needs it, with the table and the row named. Of those of which
there are many, such as runs, one that cannot be read is left out, counted and logged: a list with one run missing tells
more than no list.
"""

import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError

from muster.errors import Unavailable
from muster.log_limit import LogLimit
from muster.terminal import in_one_line

Record = TypeVar("Record")
Body = TypeVar("Body", str, bytes)

_MOST_REASON = 200
"""Characters: an error may quote what it could not read."""

log = structlog.get_logger()


class Unreadable(Unavailable):
    """What the database holds cannot be read."""


def read_row(table: str, key: object, body: Body, read: Callable[[Body], Record]) -> Record:
    """What `read` makes of the body; Unreadable when it is none."""
    try:
        return read(body)
    except (ValueError, TypeError, zlib.error) as error:
        raise Unreadable(
            f"row {str(key)!r} of table {table} in the database cannot be read: {_reason(error)}; "
            "restore a backup of the database, or delete that row"
        ) from None


def read_rows(table: str, rows: Iterable[Any], read: Callable[[Any], Record]) -> tuple[Record, ...]:
    """The same of every row, each of which is a key and a body."""
    return tuple(read_row(table, key, body, read) for key, body in rows)


class Unread:
    """Counts the rows that could not be read and were left out."""

    def __init__(self) -> None:
        self.count = 0
        self._limit = LogLimit()

    def leave_out(self, table: str, rows: Iterable[Any], read: Callable[[Any], Record]) -> Iterator[Record]:
        """What `read` makes of each row, without those that cannot be read."""
        for key, body in rows:
            try:
                yield read_row(table, key, body, read)
            except Unreadable as error:
                self.count += 1
                left_out = self._limit.admit(table, time.monotonic())
                if left_out is not None:
                    log.error("row_unreadable", table=table, row=str(key), error=str(error), left_out=left_out)


def _reason(error: Exception) -> str:
    """Without the content, of which there may be much."""
    if isinstance(error, ValidationError):
        (first, *_) = error.errors(include_url=False, include_input=False, include_context=False)
        place = ".".join(map(str, first["loc"]))
        said = f"{place}: {first['msg']}" if place else first["msg"]
    else:
        said = f"{type(error).__name__}: {error}"
    return in_one_line(said)[:_MOST_REASON]
