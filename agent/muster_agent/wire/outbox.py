"""Keeps runs in SQLite until the coordinator has acknowledged them as stored.

The idea: every run gets the next number of its stream, and a number is used only once. The coordinator can then tell
which runs it has stored and which are missing. `decide/delivery.py` decides when the agent sends which runs.

- SQLite does not wait for the disk at every run, which would cost milliseconds. A loss of power can therefore lose the
  last rows, although the coordinator has seen their numbers. After a boot, numbering continues
  `NUMBERS_SKIPPED_AFTER_BOOT` higher. Example: runs up to 1207 were sent and the database kept those up to 1190. If
  numbering continued at 1191, the coordinator would drop the next 17 runs as duplicates.
- A run is stored as the JSON that is sent, without its number. The outbox reads only rows of an earlier process, which
  may have been another version; sending its own rows takes a tenth of the time.
- If the database cannot be read, the agent moves the file aside and starts a new one with a new stream.
- If the outbox is full, it drops the oldest run of the check that has the most runs. A check that runs every second
  cannot displace the only run of a check that runs once a day. Dropped runs are counted by check and reported.
"""

import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import structlog
from pydantic import ValidationError

from muster.errors import Unavailable
from muster.model import Run
from muster.wire.messages import new_id
from muster.wire.scheduled_runs import SCHEDULED, scheduled_id, stream_key
from muster_agent.decide import findings

SCHEMA = """
CREATE TABLE IF NOT EXISTS run (seq INTEGER PRIMARY KEY AUTOINCREMENT, "check" TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS run_by_check ON run ("check", seq);
CREATE TABLE IF NOT EXISTS dropped ("check" TEXT PRIMARY KEY, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

MAX_RUN_BYTES = 256 * 1024
"""The largest run that fits into a message with others. A larger run is kept without its measurement."""

KEPT_FINDINGS = 200
"""Maximum number of findings that are kept of a run that is too large."""

NUMBERS_SKIPPED_AFTER_BOOT = 10_000

STREAM_CHARACTERS = 16
"""Length of the name of a stream. It is in every report and acknowledgement, and need only be unique in its node."""

log = structlog.get_logger()


class NumberedRun(NamedTuple):
    """A run of the outbox, as JSON with its number."""

    seq: int
    body: str


class Outbox:
    """The outbox in the database at `path`. It keeps at most `limit` runs, and at least one of each check.

    `drops` is how many runs this process has dropped. Raises Unavailable if the file cannot be opened or written.
    """

    def __init__(self, path: Path, limit: int, boot: str) -> None:
        self._limit = limit
        self._unsaved: Counter[str] = Counter()
        self.drops = 0
        try:
            self._database = _open(path)
            self.stream = self._about("stream", new_id()[:STREAM_CHARACTERS])
            self._skip_lost_numbers(boot)
            self._read_through = self.last
        except sqlite3.OperationalError as error:
            raise Unavailable(f"cannot use the outbox {path}: {error}") from None

    def close(self) -> None:
        self._database.close()

    def append(self, run: Run) -> Run | None:
        """Stores a run and returns it with its number; None if it could not be written, which counts as dropped.

        A run that was due by schedule gets the id that agent and coordinator derive from its number.
        """
        try:
            with self._database as database:
                seq = self.last + 1
                stored, body = _fitting(self._named(run, seq))
                database.execute('INSERT INTO run (seq, "check", body) VALUES (?, ?, ?)', (seq, run.check, body))
                self._make_room()
        except sqlite3.Error as error:
            log.error("outbox_not_written", check=run.check, run=run.id, error=str(error))
            self._unsaved[run.check] += 1
            self.drops += 1
            return None
        return stored.model_copy(update={"seq": seq})

    def pending(self, after: int, through: int, limit: int, limit_bytes: int) -> list[NumberedRun]:
        """The oldest runs above `after` and up to `through`: at most `limit`, and about `limit_bytes` as JSON."""
        runs: list[NumberedRun] = []
        size = 0
        for seq, body in self._database.execute(
            "SELECT seq, body FROM run WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (after, through, limit)
        ).fetchall():
            size += len(body.encode())
            if runs and size > limit_bytes:
                break
            if (kept := body if seq > self._read_through else self._read(seq, body)) is not None:
                runs.append(NumberedRun(seq, f'{{"seq":{seq},{kept[1:]}'))
        return runs

    def before(self, seq: int) -> int:
        """The number of the last run before `seq` that is still kept; 0 if none is."""
        return int(self._scalar("SELECT coalesce(max(seq), 0) FROM run WHERE seq < ?", seq))

    def kept_through(self, seq: int) -> int:
        """How many runs up to and including `seq` are still kept."""
        return int(self._scalar("SELECT count(*) FROM run WHERE seq <= ?", seq))

    def acknowledge(self, stream: str, through: int) -> bool:
        """Deletes the runs up to and including `through`; False for another stream, unknown number or full disk."""
        if stream != self.stream or through > self.last:
            return False
        try:
            with self._database as database:
                database.execute("DELETE FROM run WHERE seq <= ?", (through,))
        except sqlite3.Error as error:  # perhaps a full disk; a run that stays is sent again, which does no harm
            log.error("outbox_not_written", error=str(error))
            return False
        return True

    @property
    def last(self) -> int:
        """The last number that was used."""
        return int(self._scalar("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'run'"))

    def oldest_began_s_ago(self, now: float) -> float:
        """How long ago the oldest run that waits began; 0 if none waits, or if that one cannot be read."""
        oldest = self._database.execute("SELECT body FROM run ORDER BY seq LIMIT 1").fetchone()
        try:
            return 0.0 if oldest is None else max(0.0, now - Run.model_validate_json(oldest[0]).started_at)
        except ValidationError:
            return 0.0

    def __len__(self) -> int:
        return int(self._scalar("SELECT count(*) FROM run"))

    def dropped(self) -> dict[str, int]:
        """How many runs of each check were dropped since the database was made."""
        counts = Counter(dict(self._database.execute('SELECT "check", count FROM dropped').fetchall()))
        return dict(counts + self._unsaved)

    def _named(self, run: Run, seq: int) -> Run:
        if run.cause != SCHEDULED or run.group is not None:
            return run
        return run.model_copy(update={"id": scheduled_id(stream_key(run.node, self.stream), seq)})

    def _make_room(self) -> None:
        """While there are too many runs, drops the oldest of the check that has the most; never the last of a check."""
        while len(self) > self._limit:
            check, count, oldest = self._database.execute(
                'SELECT "check", count(*), min(seq) FROM run GROUP BY "check" ORDER BY count(*) DESC, min(seq) LIMIT 1'
            ).fetchone()
            if count == 1:
                return
            self._drop(oldest, check)

    def _drop(self, seq: int, check: str) -> None:
        self.drops += 1
        self._database.execute("DELETE FROM run WHERE seq = ?", (seq,))
        self._database.execute(
            'INSERT INTO dropped VALUES (?, 1) ON CONFLICT ("check") DO UPDATE SET count = count + 1', (check,)
        )

    def _read(self, seq: int, body: str) -> str | None:
        """The run of a row; None if an older version of muster wrote it in a form that this version cannot read."""
        try:
            return _as_json(Run.model_validate_json(body))
        except ValidationError as error:
            log.error("outbox_row_dropped", seq=seq, error=str(error))
        with self._database:
            self._drop(seq, str(self._scalar('SELECT "check" FROM run WHERE seq = ?', seq)))
        return None

    def _skip_lost_numbers(self, boot: str) -> None:
        if self._about("boot", boot) == boot:
            return
        with self._database as database:
            database.execute("UPDATE sqlite_sequence SET seq = seq + ?", (NUMBERS_SKIPPED_AFTER_BOOT,))
            database.execute("UPDATE about SET value = ? WHERE name = 'boot'", (boot,))

    def _about(self, name: str, first: str) -> str:
        """The fact `name` about the database; stores `first` if it is not there yet."""
        with self._database as database:
            database.execute("INSERT OR IGNORE INTO about VALUES (?, ?)", (name, first))
        return str(self._scalar("SELECT value FROM about WHERE name = ?", name))

    def _scalar(self, query: str, *values: str | int) -> str | int:
        value: str | int = self._database.execute(query, values).fetchone()[0]
        return value


def _open(path: Path) -> sqlite3.Connection:
    try:
        return _connect(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        log.error("outbox_moved_aside", path=str(path), error=str(error))
        _move_aside(path)
        return _connect(path)


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("the check of the file found errors")
        database.executescript(SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database


def _move_aside(path: Path) -> None:
    """Renames the database and its log, and keeps them for inspection."""
    suffix = f".unreadable-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    for part in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if part.exists():
            part.rename(part.with_name(part.name + suffix))


def _fitting(run: Run) -> tuple[Run, str]:
    """The run as it is kept, and its JSON. A run that is too large is kept without its measurement."""
    body = _as_json(run)
    if (size := len(body.encode())) <= MAX_RUN_BYTES:
        return run, body
    found = findings.shorten(run.findings[:KEPT_FINDINGS], size)
    short = run.model_copy(update={"metrics": {}, "facts": {}, "params": {}, "findings": found})
    return short, _as_json(short)


def _as_json(run: Run) -> str:
    return run.model_dump_json(exclude={"seq"})
