"""Reads records from rows of the database, which a broken disk or a person may have damaged.

If an indispensable row is damaged, the command that needs it ends; the error names table and row. A damaged row in a
list of many, such as runs, is left out, counted and logged: a list without one run is better than no list.
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

RecordT = TypeVar("RecordT")
BodyT = TypeVar("BodyT")

_MOST_REASON = 200
"""Maximum length of a reason in characters: an error may quote the text that it could not read."""

log = structlog.get_logger()


class Unreadable(Unavailable):
    """The database, or a row of it, cannot be read."""


def read_row(table: str, key: object, body: BodyT, read: Callable[[BodyT], RecordT]) -> RecordT:
    """The record that `read` makes of the body. Raises Unreadable if the body is damaged."""
    try:
        return read(body)
    except (ValueError, TypeError, LookupError, StopIteration, zlib.error) as error:
        raise Unreadable(
            f"database: row {str(key)!r} of table {table} cannot be read: {_reason(error)}; "
            "restore a backup of the database, or delete that row"
        ) from None


def read_rows(table: str, rows: Iterable[Any], read: Callable[[Any], RecordT]) -> tuple[RecordT, ...]:
    """The records of all rows, each a key and a body. Raises Unreadable if one is damaged."""
    return tuple(read_row(table, key, body, read) for key, body in rows)


class Unread:
    """Counts and logs the damaged rows that were left out."""

    def __init__(self) -> None:
        self.count = 0
        self._limit = LogLimit()

    def leave_out(self, table: str, rows: Iterable[Any], read: Callable[[Any], RecordT]) -> Iterator[RecordT]:
        """The records that `read` makes of the rows, without those of damaged rows."""
        for key, body in rows:
            try:
                yield read_row(table, key, body, read)
            except Unreadable as error:
                self.count += 1
                left_out = self._limit.admit(table, time.monotonic())
                if left_out is not None:
                    log.error("row_unreadable", table=table, row=str(key), error=str(error), left_out=left_out)


def _reason(error: Exception) -> str:
    """The error in one line, without the unreadable content, which may be long."""
    if isinstance(error, ValidationError):
        (first, *_) = error.errors(include_url=False, include_input=False, include_context=False)
        place = ".".join(map(str, first["loc"]))
        said = f"{place}: {first['msg']}" if place else first["msg"]
    else:
        said = f"{type(error).__name__}: {error}"
    return in_one_line(said)[:_MOST_REASON]
