"""Runs programs that others wrote, such as fio, dcgmi or an operator's own scripts.

A program gets a deadline, its own process group and no input. Only a bounded part of its output is kept, so a program
that never stops writing cannot fill the memory.
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
"""The part of stdout and of stderr that is kept. The rest is read and dropped."""

_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a program ended. `exit_code` is negative after a signal; `truncated` if it wrote more than is kept."""

    exit_code: int
    stdout: str
    stderr: str
    duration_s: float
    truncated: bool


class NotRun(Exception):
    """The program could not be started; the text says why."""


class TimedOut(Exception):
    """The program missed its deadline and was killed. `said` is the end of its output."""

    def __init__(self, program: str, timeout_s: float, said: str) -> None:
        super().__init__(f"{program} did not finish within {timeout_s:g} s")
        self.said = said


def find_program(name: str | Path) -> Path | None:
    """The executable `name`: a path as it is, a bare name looked up in PATH; None if there is none."""
    found = shutil.which(name)
    return Path(found) if found else None


def run_program(
    argv: Sequence[str | Path],
    *,
    timeout_s: float,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
) -> Completed:
    """Runs `argv` to its end. Raises NotRun if it does not start, TimedOut if it does not end in time.

    `env` is added to this process's environment; the value None removes a variable.
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
class _StreamOutput:
    """The output of one stream so far."""

    kept: bytearray
    truncated: bool = False

    def add(self, chunk: bytes) -> None:
        room = MOST_OUTPUT_BYTES - len(self.kept)
        self.kept += chunk[:room]
        self.truncated |= len(chunk) > room

    @property
    def text(self) -> str:
        return self.kept.decode(errors="replace")


def _collect(process: "subprocess.Popen[bytes]", deadline: float) -> tuple[_StreamOutput, _StreamOutput]:
    """Reads both streams and waits for the program. Raises TimeoutExpired with the end of its output.

    Processes that it leaves behind are killed as soon as it has ended, because they may hold the streams open.
    """
    assert process.stdout and process.stderr, "both are pipes"
    outputs = {process.stdout: _StreamOutput(bytearray()), process.stderr: _StreamOutput(bytearray())}
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
    """Kills the program's process group, which still exists if it left processes behind."""
    with suppress(ProcessLookupError, PermissionError):  # PermissionError if the rest belongs to other users
        os.killpg(leader, signal.SIGKILL)
