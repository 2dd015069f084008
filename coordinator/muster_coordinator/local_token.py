"""The token of a coordinator that listens on loopback and has no other: a file that only its user can read.

Whoever can read the file may change things. So commands of the same user, and of root, need no settings for it, and
other users of the host may look and not change. It is a new one after each start.
"""

import os
import secrets
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from muster.config import LOOPBACK
from muster.errors import Unavailable

NAME = "api_token"
"""Of the file in `data_dir`."""


def write_token(data_dir: Path) -> str:
    """Makes a new token and writes it into `data_dir`; Unavailable when that is not possible."""
    token = secrets.token_urlsafe(32)
    fresh = data_dir / f".{NAME}.{os.getpid()}"
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "w") as out:
            out.write(f"{token}\n")
        fresh.rename(data_dir / NAME)
    except OSError as error:
        raise Unavailable(
            f"cannot write {data_dir / NAME}: {error.strerror}; set data_dir to a directory that can be written, "
            "or http.token_file"
        ) from None
    return token


def find_token(data_dir: Path, url: str) -> str | None:
    """The token of a coordinator on this host at `url` that uses `data_dir`; None where this user can read none.

    What is not on this host is never sent it.
    """
    if not _is_this_host(urlsplit(url).hostname or ""):
        return None
    try:
        return (data_dir / NAME).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def _is_this_host(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK
