"""Checks whether an executable of the operator may run: no other user may be able to replace it."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_MOST_LINKS = 40  # MAXSYMLINKS in linux/namei.h


def distrust(path: Path) -> str | None:
    """Why the executable at `path` must not run and how to fix that; None if it may run.

    Every directory on the path counts, also through symbolic links: a user who can write to a directory can replace the
    files in it. In a sticky directory, such as /tmp, only owners can do so.
    """
    if not path.is_absolute():
        return "must be an absolute path"
    try:
        for part in _way(path):
            mode = part.stat().st_mode
            if mode & stat.S_IWOTH and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
                return f"every user can write to {part}: chmod o-w {part}"
    except OSError as error:
        return f"{path} cannot be examined: {error.strerror}"
    if not path.is_file() or not os.access(path, os.X_OK):
        return f"{path} is not an executable file"
    return None


def _way(path: Path) -> Iterator[Path]:
    """Every directory that the kernel passes on the way to the file at `path`, and then the file."""
    here, ahead, links = Path(path.anchor), [*reversed(path.parts[1:])], 0
    yield here
    while ahead:
        step = here / ahead.pop()
        if step.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            step = here / step.readlink()  # an absolute link replaces the directory
            ahead += reversed(step.parts[1:])
            here = Path(step.anchor)
        else:
            here = here.parent if step.name == ".." else step
            yield here
