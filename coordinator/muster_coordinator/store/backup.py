"""Copies a database of SQLite into a file, also while a coordinator writes to it.

The copy is the database at one moment: SQLite reads it in one transaction, which keeps nobody from writing. It gets its
name when it is complete and has been looked through.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from muster.config import Settings
from muster.errors import Refused, Unavailable
from muster_coordinator.store.opening import open_to_read

WAITS_S = 30.0
"""For a coordinator that is just starting, or ending."""


def back_up(settings: Settings, target: Path) -> int:
    """Writes the copy and returns its size in bytes. Raises Refused if there is nothing to copy, or `target` exists.

    Raises Unavailable if the database cannot be read, or the copy cannot be written or is damaged.
    """
    source = _file_of(settings)
    if target.exists():
        raise Refused(f"{target} exists: give the name of a new file")
    partial = target.with_name(f".{target.name}.partial")
    try:
        partial.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # before SQLite creates it for all
        _copy(source, partial)
        _look_through(partial)
        _sync(partial)
        partial.rename(target)
        _sync(target.parent)
    except sqlite3.Error as error:
        raise Unavailable(f"cannot copy {source} to {target}: {error}") from None
    except OSError as error:
        raise Unavailable(f"cannot write {target}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size


def _file_of(settings: Settings) -> Path:
    engine = open_to_read(settings)
    if engine is None:
        raise Refused("there is no database yet; store.url or data_dir must be those of the coordinator")
    if engine.dialect.name != "sqlite":
        raise Refused("the database is at a server: use its own tools, such as pg_dump, which may run at any time")
    return Path(str(engine.url.database).removeprefix("file:"))


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True, timeout=WAITS_S)) as database:
        database.execute("VACUUM INTO ?", (str(target),))


def _look_through(copy: Path) -> None:
    """A damaged database may be copied without an error."""
    with closing(sqlite3.connect(copy)) as database:
        (answer,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        raise Unavailable(f"the database is damaged, and so is its copy: {answer}; keep an earlier backup")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
