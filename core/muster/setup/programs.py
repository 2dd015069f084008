"""Runs the programs that make keys and certificates. What they write is for this user only from the start."""

import subprocess
from pathlib import Path

from muster.errors import Unavailable


def run_program(*command: str | Path, directory: Path | None = None) -> str:
    """What the program printed that ran in the directory. Raises Unavailable if it is not installed or fails."""
    try:
        done = subprocess.run(  # noqa: S603  no shell, and names that could be options are refused before
            command, cwd=directory, capture_output=True, text=True, timeout=120, check=False, umask=0o077
        )
    except FileNotFoundError:
        raise Unavailable(f"cannot make certificates: {command[0]} is not installed here; install it") from None
    if done.returncode != 0:
        raise Unavailable(f"cannot make certificates: {command[0]} says: {done.stderr.strip()}")
    return done.stdout
