"""Runs an executable without blocking the event loop.

It gets its own process group and a deadline. When it ends or its deadline passes, the rest of its group is killed. Only
the end of its output is kept, and nothing waits for the output to close: a process that has left the group may hold it
open.
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PIPE_BYTES = 1 << 16
"""The capacity of a pipe (pipe(7)), so one read empties it."""

_KEPT_BYTES = 4096
_MOST_CHARACTERS = 500

_UNTIL_KILLED_S = 0.5
"""A process that waits for a dead file system survives SIGKILL and is abandoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """How an executable ended. `exit_code` is negative after a signal, None if it missed its deadline."""

    exit_code: int | None
    last_line: str


async def run_child(path: Path, *, given: bytes, environment: Mapping[str, str], timeout_s: float) -> ChildEnd:
    """Runs the executable with `given` on stdin. Raises OSError if it cannot be started."""
    # A file, because a pipe must be fed while the executable reads.
    with _OutputPipe() as output, tempfile.TemporaryFile() as stdin:
        stdin.write(given)
        stdin.seek(0)
        process = await asyncio.create_subprocess_exec(
            path,
            stdin=stdin,
            stdout=output.inlet,
            stderr=output.inlet,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        exit_code = None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    exit_code = await process.wait()
        finally:
            await _end(process)
        return ChildEnd(exit_code=exit_code, last_line=output.last_line())


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kills the rest of the process and its group, and reaps the process."""
    with suppress(ProcessLookupError, PermissionError):  # PermissionError if the rest belongs to other users
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_UNTIL_KILLED_S):
            await process.wait()


class _OutputPipe:
    """A pipe that is read as it fills and keeps the end of the output; a context manager."""

    def __init__(self) -> None:
        self._outlet, self.inlet = os.pipe()
        self._kept = b""

    def __enter__(self) -> "_OutputPipe":
        os.set_blocking(self._outlet, False)
        asyncio.get_running_loop().add_reader(self._outlet, self._read)
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.get_running_loop().remove_reader(self._outlet)
        os.close(self._outlet)
        os.close(self.inlet)

    def last_line(self) -> str:
        """The last line that is not empty, without control characters."""
        self._read()
        lines = (line.strip() for line in reversed(self._kept.decode(errors="replace").splitlines()))
        line = next(filter(None, lines), "")
        return "".join(character if character.isprintable() else " " for character in line)[:_MOST_CHARACTERS]

    def _read(self) -> None:
        with suppress(BlockingIOError):
            self._kept = (self._kept + os.read(self._outlet, _PIPE_BYTES))[-_KEPT_BYTES:]
