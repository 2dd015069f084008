"""Runs programs that others wrote, such as fio, dcgmi or an operator's own scripts.

A program gets a deadline and a process group of its own, no input, and only so much of its output is kept that one that
never stops talking cannot fill the memory.
"""

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST_OUTPUT_BYTES = 4 << 20
"""Of each of stdout and stderr. What comes after it is read and dropped."""

_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a program ended. `exit_code` is negative when a signal ended it; `truncated`: it said more than is kept."""

    exit_code: int
    stdout: str
    stderr: str
    duration_s: float
    truncated: bool


class NotRun(Exception):
    """The program could not be started; the text says why."""


class TimedOut(Exception):
    """The program was not done by its deadline and has been killed. `said` is the end of what it said."""

    def __init__(self, program: str, timeout_s: float, said: str) -> None:
        super().__init__(f"{program} was not done within {timeout_s:g} s")
        self.said = said


def find_program(name: str | Path) -> Path | None:
    """The executable that `name` stands for: a path as it is, a bare name along PATH; None when there is none."""
    found = shutil.which(name)
    return Path(found) if found else None


def run_program(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
) -> Completed:
    """Runs `argv` to its end; NotRun when it does not start, TimedOut when it does not end.

    `env` is added to the environment of this process; None takes a variable away.
    """
    start = time.monotonic()
    environment = {**os.environ, **(env or {})}
    try:
        process = subprocess.Popen(  # noqa: S603  no shell, and the callers take programs from the configuration only
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={name: value for name, value in environment.items() if value is not None},
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NotRun(f"{argv[0]}: {error}") from None
    with process:
        try:
            outputs = _collect(process, start + timeout_s)
        except subprocess.TimeoutExpired as expired:
            raise TimedOut(str(argv[0]), timeout_s, (expired.output or b"").decode(errors="replace")) from None
        finally:
            _kill_group(process.pid)
    stdout, stderr = outputs
    return Completed(
        exit_code=process.returncode,
        stdout=stdout.text,
        stderr=stderr.text,
        duration_s=time.monotonic() - start,
        truncated=stdout.truncated or stderr.truncated,
    )


@dataclass(slots=True)
class _Output:
    """What one stream has said so far."""

    kept: bytearray
    truncated: bool = False

    def add(self, chunk: bytes) -> None:
        room = MOST_OUTPUT_BYTES - len(self.kept)
        self.kept += chunk[:room]
        self.truncated |= len(chunk) > room

    @property
    def text(self) -> str:
        return self.kept.decode(errors="replace")


def _collect(process: "subprocess.Popen[bytes]", deadline: float) -> tuple[_Output, _Output]:
    """Reads both streams to their end, and waits for the program's; TimeoutExpired with the end of what it said.

    What the program leaves behind is killed as soon as it has ended, as that may hold the streams open for good.
    """
    assert process.stdout and process.stderr, "both are pipes"
    outputs = {process.stdout: _Output(bytearray()), process.stderr: _Output(bytearray())}
    with selectors.DefaultSelector() as selector, os.fdopen(os.pidfd_open(process.pid)) as end:
        selector.register(end, selectors.EVENT_READ)
        for stream in outputs:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                said = b"".join(bytes(output.kept[-2048:]) for output in outputs.values())
                raise subprocess.TimeoutExpired(process.args, 0, said)
            for key, _ in selector.select(left):
                if key.fileobj is end:
                    _kill_group(process.pid)
                    selector.unregister(end)
                    continue
                chunk = os.read(key.fd, _READ_BYTES)
                if chunk:
                    outputs[key.fileobj].add(chunk)  # type: ignore[index]  # it is one of the two registered above
                else:
                    selector.unregister(key.fileobj)
    return outputs[process.stdout], outputs[process.stderr]


def _kill_group(leader: int) -> None:
    """Ends what the program has left behind as well; its group is gone when it left nothing."""
    with suppress(ProcessLookupError, PermissionError):  # the latter where all that is left belongs to other users
        os.killpg(leader, signal.SIGKILL)
