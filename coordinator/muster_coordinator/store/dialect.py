"""The one statement that differs between SQLite and PostgreSQL: INSERT … ON CONFLICT.

SQLAlchemy loads a dialect when it opens a database of that kind. PostgreSQL's takes 0.15 s, so it is not loaded for
SQLite.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlalchemy import Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def insert_of(dialect: str) -> "Callable[[Table], postgresql.Insert | sqlite.Insert]":
    """What makes an INSERT with `on_conflict_do_update` and `on_conflict_do_nothing` in the dialect of this name."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert  # noqa: PLC0415 (see above)

        return insert
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert  # noqa: PLC0415 (see above)

    return sqlite_insert
