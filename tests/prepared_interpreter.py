"""A program that has imported all of muster and forks for each command line that it is asked to run.

It forks once for each worker of the tests, and that process for each command of its worker.
Most of what a short command costs is importing: a second of processor time that tests nothing. A forked command is a
process like any other: it has its own arguments, environment, streams, signals and exit code.
`muster_process` is the other end of the socket.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

GROUPS = ("muster", "muster.commands", "muster.config_checks")
NEEDED_LATER = ("muster_coordinator.daemon",)
"""What a command imports only once it runs."""

UNCLAIMED_S = 60.0
"""So long it waits for the first worker, which connects at once unless it is killed."""

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def prepare(*imports: str) -> None:
    """Imports what commands need and is installed. A fork copies only the thread that forks: there must be no other."""
    gc.disable()  # nothing of what is imported is garbage
    for name in (*NEEDED_LATER, *imports):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for group in GROUPS:
        for point in entry_points(group=group):
            with contextlib.suppress(Exception):
                point.load()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a module has started a thread while it was imported"
    gc.freeze()
    gc.enable()


def serve_workers(listener: socket.socket) -> socket.socket:
    """Forks for each worker of the tests until the last has left; returns only in the forks, with their connections."""
    children: dict[int, int] = {}  # their process ids by their descriptors
    while True:
        ready, _, _ = select.select([listener.fileno(), *children], [], [], UNCLAIMED_S)
        for child in children.keys() & ready:
            _tell_end(*os.waitpid(children.pop(child), 0))
            os.close(child)
        if listener.fileno() in ready:
            connection, _ = listener.accept()
            if _user_of(connection) != os.getuid():  # who could run programs as this user
                connection.close()
                continue
            if not (pid := os.fork()):
                listener.close()
                connection.send(str(os.getpid()).encode())
                return connection
            connection.close()
            children[os.pidfd_open(pid)] = pid
        if not children:
            sys.exit()


def _user_of(connection: socket.socket) -> int:
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(user)


def _tell_end(pid: int, status: int) -> None:
    if status:
        print(f"prepared interpreter {pid} ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr, flush=True)


def serve(requests: socket.socket) -> dict[str, Any]:
    """Forks for each request until the tests end; only in the forked command does this function return.

    It tells the process id of a command, and how it ended, to the descriptor that came with its request.
    """
    commands: dict[int, tuple[int, int]] = {}  # their process ids and where to tell, by their descriptors
    while True:
        ready, _, _ = select.select([requests.fileno(), *commands], [], [])
        for command in commands.keys() & ready:
            _tell_how_it_ended(*commands.pop(command))
            os.close(command)
        if requests.fileno() not in ready:
            continue
        message, fds, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not message:
            sys.exit()  # the tests have ended or were killed: see die_with_parent
        *streams, status = fds
        if not (pid := os.fork()):
            return _command(json.loads(message), *streams)
        for fd in streams:
            os.close(fd)
        os.write(status, f"{pid}\n".encode())
        commands[os.pidfd_open(pid)] = pid, status


def _tell_how_it_ended(pid: int, status: int) -> None:
    _, ended, used = os.wait4(pid, 0)
    with contextlib.suppress(BrokenPipeError):  # nobody wants to know any more
        os.write(status, f"{os.waitstatus_to_exitcode(ended)} {used.ru_utime + used.ru_stime}\n".encode())
    os.close(status)


def die_with_parent() -> None:
    """Commands that still run when the tests are killed are killed with this program, which ends with the tests."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def enter_network_of(pid: int) -> None:
    """Joins the user and network namespace of a process, as nsenter does. Python has os.setns since 3.12."""
    descriptor = os.pidfd_open(pid)
    if LIBC.setns(descriptor, CLONE_NEWUSER | CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(descriptor)


def _command(request: dict[str, Any], *streams: int) -> dict[str, Any]:
    """Becomes the process of a command, with its streams and no other open file."""
    die_with_parent()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if request["network_of"] is not None:
        enter_network_of(request["network_of"])
    return request


def become(request: dict[str, Any]) -> None:
    """Takes on what else a process has from its start, and runs the command."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    resource.setrlimit(resource.RLIMIT_NOFILE, request["open_files"])
    time.tzset()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[:0] = [request["cwd"], *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = [request["module"], *request["arguments"]]
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int | None):
            exit_quickly(end.code or 0)
        raise


def exit_quickly(code: int) -> None:
    """Ends as a program does, but does not take down the interpreter.

    That would write to every page that is shared with the program that forked, so that the kernel first copies it. It
    costs 0.1 s, and most commands less than half of that.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):  # nobody reads any more: the ordinary end has words for that
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    del sys.path[0]  # the directory of this file, which holds tests
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests; this program ends with them
    if os.fork():
        os._exit(0)  # the tests wait for this process only; the other outlives the worker that started it
    prepare(*sys.argv[2:])
    become(serve(serve_workers(socket.socket(fileno=int(sys.argv[1])))))
