"""A file that says in JSON who has reserved a node, why, and since when.

It appears as a whole or not at all, and never replaces another program's file. Several programs can share a path,
because each leaves the files of others alone.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

_MOST_BYTES = 1 << 16
_MOST_CHARACTERS = 100


class FileTaken(Exception):
    """The file belongs to another program; the text names it, if known."""


class _Holder(BaseModel):
    """The part of the file that matters. Another program may write more or less."""

    who: str
    why: str = "no reason given"

    def __str__(self) -> str:
        return f"{self.who[:_MOST_CHARACTERS]} ({self.why[:_MOST_CHARACTERS]})"


_UNREADABLE = _Holder(who="somebody", why="it does not say in JSON who")
_HIDDEN = _Holder(who="somebody", why="it cannot be read")


class ReservationMark:
    """The file at `path`, as made by `who`. Used by one process at a time."""

    def __init__(self, path: Path, who: str) -> None:
        self._path = path
        self._who = who

    def make(self, why: str) -> None:
        """Makes or replaces our file. Raises FileTaken if it is another program's, OSError if it fails."""
        draft = self._path.with_name(f".draft.{self._path.name}")
        draft.unlink(missing_ok=True)
        with draft.open("x", encoding="utf-8") as file:
            file.write(self._content(why))
            file.flush()
            os.fchmod(file.fileno(), 0o644)  # despite the umask, because others must read it
            os.fsync(file.fileno())  # if the host crashes during its test, the file must not be empty afterwards
        try:
            os.link(draft, self._path)  # link fails if the file exists; rename would replace it
        except FileExistsError:
            if not self._is_ours(holder := self._holder() or _HIDDEN):
                raise FileTaken(f"{self._path} is held by {holder}") from None
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)

    def remove(self) -> None:
        """Removes the file if it is ours."""
        if self._is_ours(self._holder()):
            self._path.unlink(missing_ok=True)

    def is_anothers(self) -> bool:
        """Whether another program's file is there."""
        holder = self._holder()
        return holder is not None and not self._is_ours(holder)

    def _content(self, why: str) -> str:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        return json.dumps({"who": self._who, "why": why, "since": since}) + "\n"

    def _is_ours(self, holder: _Holder | None) -> bool:
        return holder is not None and holder.who == self._who

    def _holder(self) -> _Holder | None:
        """The program that the file names; None if there is no file."""
        try:
            with open(self._path, "rb", opener=_at_once) as file:
                return _Holder.model_validate_json(file.read(_MOST_BYTES))
        except FileNotFoundError:
            return None
        except (PermissionError, IsADirectoryError):
            return _HIDDEN
        except ValidationError:
            return _UNREADABLE


def _at_once(path: str, flags: int) -> int:
    """Opens a file without blocking, even if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)
