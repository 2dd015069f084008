"""Starts parts of muster as child processes and stops them. No child outlives the process that started it."""

import asyncio
import ctypes
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pydantic_core import to_json

PR_SET_PDEATHSIG = 1
"""Option of prctl(2): the signal that a process gets when its parent dies."""

STOP_TIMEOUT_S = 4.0
"""A child that has not ended this long after SIGTERM is killed. `muster up` promises to end within 5 s."""

_libc = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class LocalProcess:
    """A child process and its name for people."""

    name: str
    process: Process


def environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings as environment variables. They replace the MUSTER_ variables of this process."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    return inherited | dict(_variables(settings, "MUSTER_"))


def _variables(settings: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    variables = []
    for key, value in settings.items():
        name = prefix + key.upper()
        if isinstance(value, Mapping):
            variables += _variables(value, f"{name}__")
        else:
            variables.append((name, value if isinstance(value, str) else to_json(value).decode()))
    return variables


async def start(name: str, arguments: list[str], env: Mapping[str, str], log: BinaryIO | None = None) -> LocalProcess:
    """Starts `muster <arguments>`. Its log goes to `log`, or to the stderr of this process.

    The child has its own session: Ctrl-C reaches only this process, which stops the children in order. If this process
    is killed, the child gets SIGTERM.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "muster",
        *arguments,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=log if log is not None else sys.stderr.fileno(),
        stderr=log,
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )
    return LocalProcess(name, process)


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


async def stop(parts: list[LocalProcess]) -> None:
    """Ends the children at the same time: SIGTERM, then SIGKILL for those that have not ended in time."""
    await asyncio.gather(*(_stop(part.process) for part in parts))


async def _stop(process: Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
