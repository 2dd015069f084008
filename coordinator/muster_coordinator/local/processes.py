"""Starts a part of muster as a child process and stops it again, so that none outlives the one who started it."""

import asyncio
import ctypes
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import to_json

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent has died."""

STOP_TIMEOUT_S = 4.0
"""A part ends within this time after SIGTERM, or is killed; `muster up` promises 5 s altogether."""

_libc = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """One child: its name for people and its process."""

    name: str
    process: Process


def environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Nested settings in the form of environment variables, in place of any that this process has itself."""
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


async def start(name: str, arguments: list[str], env: Mapping[str, str], log: BinaryIO | None = None) -> ChildProcess:
    """Starts `muster <arguments>`; its log goes to `log`, else to our stderr.

    It gets a session of its own, so that Ctrl-C reaches us alone and we stop the parts in order, and a SIGTERM when we
    are killed ourselves.
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
    return ChildProcess(name, process)


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


async def stop(parts: list[ChildProcess]) -> None:
    """Ends the parts side by side: SIGTERM, and SIGKILL for those that have not ended in time."""
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


def log_file(directory: Path, name: str) -> BinaryIO:
    """A file for a part's log."""
    return (directory / f"{name}.log").open("ab")
