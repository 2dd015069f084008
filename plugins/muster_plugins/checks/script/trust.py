"""Which executables of the operator may be run: none that somebody else could have replaced."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_MOST_LINKS = 40  # MAXSYMLINKS in linux/namei.h


def distrust(path: Path) -> str | None:
    """Why the executable at `path` is not to be run, with what would be right; None when it may be.

    Everything on the way to it counts as well, also through symbolic links: who can write a directory can put another
    file in its place. In a sticky directory, such as /tmp, only owners can.
    """
    if not path.is_absolute():
        return "must be an absolute path"
    try:
        for part in _way(path):
            mode = part.stat().st_mode
            if mode & stat.S_IWOTH and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
                return f"everybody can write {part}: chmod o-w {part}"
    except OSError as error:
        return f"{path} cannot be looked at: {error.strerror}"
    if not path.is_file() or not os.access(path, os.X_OK):
        return f"{path} is not an executable file"
    return None


def _way(path: Path) -> Iterator[Path]:
    """Every directory that the kernel goes through on the way to the file at `path`, and at last the file."""
    here, ahead, links = Path(path.anchor), [*reversed(path.parts[1:])], 0
    yield here
    while ahead:
        step = here / ahead.pop()
        if step.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            step = here / step.readlink()  # which is where the link leads to, if it is absolute
            ahead += reversed(step.parts[1:])
            here = Path(step.anchor)
        else:
            here = here.parent if step.name == ".." else step
            yield here
