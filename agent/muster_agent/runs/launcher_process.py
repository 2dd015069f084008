"""The launcher process: it forks children on request, kills them, and leaves no process of them behind.

The daemon cannot fork children itself: it has threads, and a forked copy of them may hold locks forever. So it forks
the launcher before its event loop starts. The launcher has one thread and blocks only on its selector. Requests and
answers are JSON objects, one to a packet:

    {"spawn": id, "role": role, "memory_limit_bytes": n}   with file descriptors: control, output[, listener]
    {"kill": id}
    {"spawned": id, "pid": n}
    {"exited": id, "how": ChildExit}

Supervision: every child is a subreaper, so it adopts the orphans among its descendants. As long as the child lives, all
processes that it has started are below it, whatever sessions they have moved to. When the child dies, its descendants
become children of the launcher. Therefore a child of the launcher that the launcher did not fork was left behind by a
dead child, and the launcher kills it.

Example: a check starts `fio` with `setsid` and crashes. `fio` (pid 812) becomes a child of the launcher, which has
forked only 640. The launcher kills 812, waits until it is gone, and reports that 640 has left `fio` behind. If 812
hangs in the kernel and survives SIGKILL for `PATIENCE_S`, the launcher reports it as stuck and goes on.
"""

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from muster_agent.decide.orders import ChildExit
from muster_agent.runs import process_control

PATIENCE_S = 2.0
"""How long a process may take to die after SIGKILL before it counts as stuck."""

MAX_PACKET_BYTES = 1 << 16
_MOST_DESCRIPTORS = 3
_MOST_NAMED = 100
_LOOK_AGAIN_S = 0.02
_TERMINAL_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Role = Callable[[socket.socket, int | None], None]
"""The code of a child, with its end of the control socket and the descriptor of a listening socket, if any."""


@dataclass(slots=True)
class _Child:
    """A forked child. `give_up_at` is set once it should be gone, `status` once it is reaped."""

    id: str
    pid: int
    killed: bool = False
    give_up_at: float | None = None
    status: int | None = None
    max_rss_bytes: int = 0
    left: dict[int, str] = field(default_factory=dict)


def serve(link: socket.socket, roles: Mapping[str, Role], scratch: Path) -> NoReturn:
    """Runs the launcher process until the daemon closes its end of `link`, then removes `scratch`."""
    code = 1
    try:
        os.setsid()
        for number in _TERMINAL_SIGNALS:  # the daemon decides when to stop; it may still have runs to report
            signal.signal(number, signal.SIG_IGN)
        process_control.adopt_orphans()
        _LauncherProcess(link, roles).serve()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        process_control.end_descendants(PATIENCE_S)
        shutil.rmtree(scratch, ignore_errors=True)
        os._exit(code)


class _LauncherProcess:
    def __init__(self, link: socket.socket, roles: Mapping[str, Role]) -> None:
        self._link = link
        self._roles = roles
        self._children: dict[int, _Child] = {}
        self._given_up: set[int] = set()
        self._woken, self._wakeup = os.pipe()
        for end in (self._woken, self._wakeup):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _noted_by_the_wakeup_descriptor)
        self._selector = selectors.DefaultSelector()
        self._selector.register(link, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def serve(self) -> None:
        while True:
            settling = any(child.give_up_at is not None for child in self._children.values())
            for key, _ in self._selector.select(_LOOK_AGAIN_S if settling else None):
                if key.fileobj is not self._link:
                    os.read(self._woken, 4096)
                elif not self._obey():
                    return
            self._reap()
            self._settle(time.monotonic())

    def _obey(self) -> bool:
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._link, MAX_PACKET_BYTES, _MOST_DESCRIPTORS)
        except ConnectionResetError:  # the daemon has died before it had read everything
            return False
        if not packet:
            return False
        match json.loads(packet):
            case {"spawn": id, "role": role, "memory_limit_bytes": memory_limit_bytes}:
                self._spawn(id, self._roles[role], memory_limit_bytes, descriptors)
            case {"kill": id}:
                for child in self._children.values():
                    if child.id == id:
                        child.killed = True
                        child.give_up_at = child.give_up_at or time.monotonic() + PATIENCE_S
        return True

    def _spawn(self, id: str, role: Role, memory_limit_bytes: int | None, descriptors: list[int]) -> None:
        launcher = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._report_exit(_Child(id, pid=0), stuck=set(), error=f"cannot fork: {error.strerror}")
        else:
            if pid == 0:
                self._forget()
                _live(role, launcher, memory_limit_bytes, descriptors)
            self._children[pid] = _Child(id, pid)
            self._send({"spawned": id, "pid": pid})
        for descriptor in descriptors:
            os.close(descriptor)

    def _forget(self) -> None:
        """In a new child: closes what belongs to the launcher."""
        signal.set_wakeup_fd(-1)
        for number in (*_TERMINAL_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        self._selector.close()
        self._link.close()
        os.close(self._woken)
        os.close(self._wakeup)

    def _reap(self) -> None:
        """Notes which children are dead. The wait status of an adopted orphan does not matter."""
        with contextlib.suppress(ChildProcessError):
            while (reaped := os.wait4(-1, os.WNOHANG))[0] != 0:
                pid, status, usage = reaped
                self._given_up.discard(pid)
                if child := self._children.get(pid):
                    child.status = status
                    child.max_rss_bytes = usage.ru_maxrss * 1024
                    child.give_up_at = child.give_up_at or time.monotonic() + PATIENCE_S

    def _settle(self, now: float) -> None:
        """Kills orphans, and reports each child that is gone with all its descendants, or that is stuck."""
        ending = [child for child in self._children.values() if child.give_up_at is not None]
        if not ending:
            return
        processes = process_control.table()
        orphans = self._orphans(processes)
        for child in ending:
            if child.status is None:
                remains = {child.pid} | process_control.descendants([child.pid], processes)
            else:
                remains, orphans = orphans, set()
                if not child.killed:
                    child.left.update({pid: processes[pid].name for pid in remains})
            process_control.kill(remains)
            if not remains or now > (child.give_up_at or now):
                self._given_up |= remains
                del self._children[child.pid]
                self._report_exit(child, remains)

    def _orphans(self, processes: dict[int, process_control.ProcessEntry]) -> set[int]:
        known = {*(pid for pid, child in self._children.items() if child.status is None), *self._given_up}
        return (
            process_control.descendants([os.getpid()], processes)
            - known
            - process_control.descendants(known, processes)
        )

    def _report_exit(self, child: _Child, stuck: set[int], error: str = "") -> None:
        how = ChildExit(
            status=child.status,
            max_rss_bytes=child.max_rss_bytes,
            left=dict(islice(child.left.items(), _MOST_NAMED)),
            stuck=tuple(sorted(stuck)[:_MOST_NAMED]),
            error=error,
        )
        self._send({"exited": child.id, "how": asdict(how)})

    def _send(self, message: dict[str, Any]) -> None:
        """Sends a packet. If the daemon has not read hundreds of packets, this raises and the launcher ends."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the loop will notice that the daemon is gone
            self._link.send(json.dumps(message).encode(), socket.MSG_DONTWAIT)


def _live(role: Role, launcher: int, memory_limit_bytes: int | None, descriptors: list[int]) -> NoReturn:
    """Runs a child to its end, in a session of its own. Its output goes to the pipe that came with the request."""
    code: Any = 1
    try:
        process_control.die_with_parent(launcher)
        process_control.adopt_orphans()
        os.setsid()
        control, output, *listener = descriptors
        _redirect(output)
        process_control.limit(memory_limit_bytes)
        role(socket.socket(fileno=control), listener[0] if listener else None)
        code = 0
    except SystemExit as wish:
        code = wish.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _redirect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)


def _noted_by_the_wakeup_descriptor(_number: int, _frame: object) -> None:
    """Without a handler in Python, no byte is written to the wakeup descriptor."""
