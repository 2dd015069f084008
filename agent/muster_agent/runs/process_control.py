"""Linux calls that supervise processes: parentage, limits, the process table and signals."""

import contextlib
import ctypes
import os
import resource
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_FIRST_TO_GO = "1000"
_PROC = Path("/proc")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One entry of the process table. `parent` is a process id, `name` the kernel's name for it (15 characters)."""

    parent: int
    name: str


def die_with_parent(parent: int) -> None:
    """Makes the kernel kill this process when its parent `parent` dies. Exits if the parent is already dead."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Makes this process a subreaper: it becomes the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def limit(memory_bytes: int | None) -> None:
    """Limits this process and its children: no core files, `memory_bytes` of data, first victim of the OOM killer."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes is not None:
        allowed = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = memory_bytes if allowed == resource.RLIM_INFINITY else min(memory_bytes, allowed)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    with contextlib.suppress(OSError):  # a hardened container may have made /proc read-only
        _PROC.joinpath("self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")


def table() -> dict[int, ProcessEntry]:
    """Every living process by process id, without those that only wait to be reaped."""
    processes = {}
    for entry in os.scandir(_PROC):
        if not entry.name.isdigit():
            continue
        try:
            line = _PROC.joinpath(entry.name, "stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or is hidden (hidepid)
            continue
        name, _, rest = line.partition(b"(")[2].rpartition(b")")
        state, parent = rest.split(maxsplit=2)[:2]
        if state not in b"ZX":
            processes[int(entry.name)] = ProcessEntry(int(parent), name.decode(errors="replace"))
    return processes


def descendants(ancestors: Iterable[int], processes: dict[int, ProcessEntry]) -> set[int]:
    """The children of `ancestors`, their children, and so on; not the ancestors themselves."""
    children: dict[int, list[int]] = {}
    for pid, process in processes.items():
        children.setdefault(process.parent, []).append(pid)
    found: set[int] = set()
    unseen = list(ancestors)
    while unseen:
        born = children.pop(unseen.pop(), [])
        found.update(born)
        unseen.extend(born)
    return found


def kill(pids: Iterable[int]) -> None:
    """Sends SIGKILL to each process that still exists. A process that has changed its user may survive."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def end_descendants(within_s: float) -> dict[int, str]:
    """Kills all descendants until none is left or `within_s` has passed. Returns the names of the killed by id."""
    names: dict[int, str] = {}
    deadline = time.monotonic() + within_s
    while left := descendants([os.getpid()], processes := table()):
        names |= {pid: processes[pid].name for pid in left}
        kill(left)
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    return names


def reap() -> None:
    """Reaps the dead children of this process, including adopted ones."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass


def out_of_memory_kills() -> int:
    """How many processes the kernel has killed on this host since the boot because memory ran out."""
    for line in _PROC.joinpath("vmstat").read_text(encoding="ascii").splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return 0


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
