"""A file that says in JSON who has taken something, why, and since when.

It appears as a whole or not at all, and never in the place of another. Programs can share a path in this way: who finds
a file that is not his own leaves it alone.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError

_MOST_BYTES = 1 << 16
_MOST_CHARACTERS = 100


class Taken(Exception):
    """The file is somebody else's; the text says whose, as far as that can be told."""


class _Holder(BaseModel):
    """What is of interest in the file; another program may write more, or less."""

    who: str
    why: str = "no reason given"

    def __str__(self) -> str:
        return f"{self.who[:_MOST_CHARACTERS]} ({self.why[:_MOST_CHARACTERS]})"


_UNREADABLE = _Holder(who="somebody", why="it does not say in JSON who")
_HIDDEN = _Holder(who="somebody", why="it cannot be read")


class Mark:
    """The file at `path`, as made by `who`. Used by one process at a time."""

    def __init__(self, path: Path, who: str) -> None:
        self._path = path
        self._who = who

    def make(self, why: str) -> None:
        """Makes the file, in place of an older one of our own; Taken when it is another's, OSError when it fails."""
        draft = self._path.with_name(f".draft.{self._path.name}")
        draft.unlink(missing_ok=True)
        with draft.open("x", encoding="utf-8") as file:
            file.write(self._content(why))
            file.flush()
            os.fchmod(file.fileno(), 0o644)  # whatever the umask says: others are to read it
            os.fsync(file.fileno())  # a host that crashes under its test must not come back with an empty file
        try:
            os.link(draft, self._path)  # which fails where a file is, unlike a rename
        except FileExistsError:
            if not self._is_ours(holder := self._holder() or _HIDDEN):
                raise Taken(f"{self._path} is held by {holder}") from None
            draft.replace(self._path)
        finally:
            draft.unlink(missing_ok=True)

    def remove(self) -> None:
        """Removes the file if it is ours."""
        if self._is_ours(self._holder()):
            self._path.unlink(missing_ok=True)

    def is_anothers(self) -> bool:
        """Whether there is a file that is not ours."""
        holder = self._holder()
        return holder is not None and not self._is_ours(holder)

    def _content(self, why: str) -> str:
        since = datetime.now(UTC).isoformat(timespec="seconds")
        return json.dumps({"who": self._who, "why": why, "since": since}) + "\n"

    def _is_ours(self, holder: _Holder | None) -> bool:
        return holder is not None and holder.who == self._who

    def _holder(self) -> _Holder | None:
        """Who says in the file that it is his; None when there is no file."""
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
    """Opens a file, and so that a pipe keeps nobody waiting."""
    return os.open(path, flags | os.O_NONBLOCK)
