"""Which executables of the operator may be run: none that somebody else could have replaced."""

import os
import stat
from pathlib import Path


def distrust(path: Path) -> str | None:
    """Why the executable at `path` is not to be run, with what would be right; None when it may be.

    Everything on the way to it counts as well, and so do the targets of symbolic links: who can write a directory can
    put another file in its place. In a sticky directory, such as /tmp, only owners can.
    """
    if not path.is_absolute():
        return "must be an absolute path"
    try:
        real = path.resolve(strict=True)
        for part in {path, real, *path.parents, *real.parents}:
            mode = part.stat().st_mode
            if mode & stat.S_IWOTH and not (stat.S_ISDIR(mode) and mode & stat.S_ISVTX):
                return f"everybody can write {part}: chmod o-w {part}"
    except (OSError, RuntimeError) as error:  # RuntimeError: symbolic links that lead back to themselves
        return f"{path} cannot be looked at: {getattr(error, 'strerror', None) or error}"
    if not real.is_file() or not os.access(real, os.X_OK):
        return f"{path} is not an executable file"
    return None
