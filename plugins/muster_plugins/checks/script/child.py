"""Runs an executable beside everything else that the event loop does.

It gets a process group of its own and a deadline. When it has ended, or must, whatever is left of its group is killed.
Only the end of what it says is kept, and nobody waits for it to stop talking: something that it has left behind
elsewhere may hold its output open for good.
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
"""What a pipe holds (pipe(7)): one read empties it."""

_KEPT_BYTES = 4096
_MOST_CHARACTERS = 500

_UNTIL_KILLED_S = 0.5
"""A process that waits for a dead file system outlives SIGKILL, and is left to itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an executable ended. `exit_code` is negative when a signal ended it, None when it had to be killed."""

    exit_code: int | None
    last_line: str


async def run_child(path: Path, *, given: bytes, environment: Mapping[str, str], timeout_s: float) -> Ended:
    """Runs the executable with `given` on stdin; OSError when it cannot be started."""
    # A file takes it all at once; a pipe would have to be fed for as long as nobody reads.
    with _Output() as output, tempfile.TemporaryFile() as stdin:
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
        return Ended(exit_code=exit_code, last_line=output.last_line())


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kills what is left of the process and its group, and sees it off."""
    with suppress(ProcessLookupError, PermissionError):  # the latter where all that is left belongs to other users
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_UNTIL_KILLED_S):
            await process.wait()


class _Output:
    """A pipe that is read as it fills, and the end of what came through it; a context manager."""

    def __init__(self) -> None:
        self._outlet, self.inlet = os.pipe()
        self._kept = b""

    def __enter__(self) -> "_Output":
        os.set_blocking(self._outlet, False)
        asyncio.get_running_loop().add_reader(self._outlet, self._read)
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.get_running_loop().remove_reader(self._outlet)
        os.close(self._outlet)
        os.close(self.inlet)

    def last_line(self) -> str:
        """The last line that has something on it, without what a terminal would take for a command."""
        self._read()
        lines = (line.strip() for line in reversed(self._kept.decode(errors="replace").splitlines()))
        line = next(filter(None, lines), "")
        return "".join(character if character.isprintable() else " " for character in line)[:_MOST_CHARACTERS]

    def _read(self) -> None:
        with suppress(BlockingIOError):
            self._kept = (self._kept + os.read(self._outlet, _PIPE_BYTES))[-_KEPT_BYTES:]
