"""The coordinator's own token, if it listens on loopback and has no `http.token_file`.

The coordinator writes a new token into a file at each start. Only its own user and root can read the file. Their
commands find it without any setting and may change things; other users of the host may only read.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

from muster.addresses import is_loopback_host
from muster.errors import Unavailable

NAME = "api_token"
"""The name of the file in `data_dir`."""


def write_token(data_dir: Path) -> str:
    """Makes a new token and writes it into `data_dir`. Raises Unavailable if the file cannot be written."""
    import secrets  # noqa: PLC0415 (commands only read the token, and it takes a while to import)

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
            f"cannot write the API token to {data_dir / NAME}: {error.strerror}; set data_dir to a directory that the "
            "coordinator can write, or set http.token_file"
        ) from None
    return token


def find_token(data_dir: Path, url: str) -> str | None:
    """The token of the coordinator at `url` that uses `data_dir`; None if this user cannot read it.

    None also for a coordinator on another host, which must never get this token.
    """
    if not is_loopback_host(urlsplit(url).hostname or ""):
        return None
    try:
        return (data_dir / NAME).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None
