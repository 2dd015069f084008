"""A third party's plugin: a check that misbehaves in the way it is asked to, and a check for groups without torch.

Every process that is part of either writes itself into the run's `book`, a directory, so that a test can wait for it,
kill it, and see that nothing of it is left.
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn

from muster import (
    Check,
    Config,
    Context,
    DepartureProbe,
    Finding,
    Measurement,
    Needs,
    Params,
    Reference,
    Scope,
    hookimpl,
)
from muster.check import AnyCheck, Rendezvous

POLL_S = 0.02
NOWHERE = Path("/nonexistent")


def sign(book: Path, word: str) -> None:
    """Writes this process into the book."""
    (book / f"{word}.{os.getpid()}").touch()


class MischiefParams(Params):
    """What to do; `book` is needed by what starts other processes."""

    do: str = "nothing"
    book: Path = NOWHERE


def mischief(params: MischiefParams, context: Context) -> Measurement:
    """Does what it is told."""
    DEEDS[params.do](params)
    return Measurement(facts={"did": params.do})


def judge_mischief(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Finds nothing, or breaks."""
    if measurement.facts["did"] == "judge_badly":
        raise LookupError("judging went wrong")
    return []


def nothing(params: MischiefParams) -> None:
    pass


def raise_error(params: MischiefParams) -> NoReturn:
    raise RuntimeError("the driver said no")


def leave(params: MischiefParams) -> NoReturn:
    sys.exit(3)


def leave_hard(params: MischiefParams) -> NoReturn:
    os._exit(4)


def hang(params: MischiefParams) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(60)


def crash(params: MischiefParams) -> None:
    ctypes.string_at(0)


def allocate(params: MischiefParams) -> NoReturn:
    held = []
    while True:
        held.append(bytearray(16 << 20))


def print_garbage(params: MischiefParams) -> None:
    for _ in range(100):
        os.write(1, os.urandom(4096))
        os.write(2, b'{"result": {"rank": 0}}\n\xff\xfe\x00')


def print_garbage_and_raise(params: MischiefParams) -> NoReturn:
    print_garbage(params)
    raise RuntimeError("after all that noise")


def _write_to_every_socket(text: bytes, times: int) -> None:
    """What a library does that takes a descriptor for its own."""
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if str(entry.readlink()).startswith("socket:"):
                for _ in range(times):
                    os.write(int(entry.name), text)


def garble_the_line(params: MischiefParams) -> NoReturn:
    _write_to_every_socket(b"\xff\x00 what?\n", times=1)
    hang(params)


def flood_the_line(params: MischiefParams) -> NoReturn:
    _write_to_every_socket(b"x" * 65536, times=1000)
    hang(params)


def fork_children(params: MischiefParams) -> None:
    for _ in range(3):
        if os.fork() == 0:
            sign(params.book, "child")
            hang(params)
    _until_signed(params.book, "child", 3)


def fork_a_daemon(params: MischiefParams) -> None:
    _fork_daemon(params.book)
    _until_signed(params.book, "daemon", 1)


def _fork_daemon(book: Path) -> None:
    """In the classic way: fork, setsid, fork."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    environment = {"PATH": os.environ["PATH"]}  # nothing that says whose it is
    argv = [sys.executable, "-S", "-c", DAEMON, str(book)]
    os.closerange(0, 1024)
    os.execve(argv[0], argv, environment)


DAEMON = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], f"daemon.{os.getpid()}").touch()
time.sleep(600)
"""


def fork_all_and_hang(params: MischiefParams) -> NoReturn:
    fork_children(params)
    fork_a_daemon(params)
    hang(params)


def fork_all_and_crash(params: MischiefParams) -> None:
    fork_children(params)
    fork_a_daemon(params)
    crash(params)


def start_a_program(params: MischiefParams) -> None:
    subprocess.Popen([sys.executable, "-S", "-c", DAEMON, str(params.book)])
    _until_signed(params.book, "daemon", 1)


def _until_signed(book: Path, word: str, count: int) -> None:
    while len([*book.glob(f"{word}.*")]) < count:
        time.sleep(POLL_S)


DEEDS = {
    deed.__name__: deed
    for deed in (
        nothing,
        raise_error,
        leave,
        leave_hard,
        hang,
        crash,
        allocate,
        print_garbage,
        print_garbage_and_raise,
        garble_the_line,
        flood_the_line,
        fork_children,
        fork_a_daemon,
        fork_all_and_hang,
        fork_all_and_crash,
        start_a_program,
    )
} | {"judge_badly": nothing}


class MeetingParams(Params):
    """Where the members sign in, whom the meeting waits for, and who is slow in it.

    `door`: nobody comes to the rendezvous before the book has an entry `open`. `hosts`: when rank 0 is on one of these
    nodes, the meeting goes on until the book has an entry `over`, or one with the node's name: `over-n1`.
    """

    book: Path = NOWHERE
    door: Literal["open", "closed"] = "open"
    hosts: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()


def meeting(params: MeetingParams, context: Context) -> Measurement:
    """Every rank connects to rank 0 and goes when that says so; it fails when a connection is lost before."""
    sign(params.book, f"came-{context.node}")
    while params.door == "closed" and not (params.book / "open").exists():
        time.sleep(POLL_S)
    place = context.rendezvous()
    context.progress("met")
    if place.rank == 0:
        _host(params, context, place)
    else:
        _attend(params, context, place)
    rate = 0.2 if context.node in params.slow else 1.0
    return Measurement(metrics={"rate": rate}, facts={"rank": place.rank})


def _host(params: MeetingParams, context: Context, place: Rendezvous) -> None:
    assert place.listen_fd is not None
    with socket.socket(fileno=place.listen_fd) as listener, contextlib.ExitStack() as guests:
        peers: list[socket.socket] = []
        while len(peers) < place.world_size - 1:
            peer, _ = listener.accept()
            if peer.recv(1) == b"!":  # an agent that only tried whether it can connect says nothing
                peers.append(guests.enter_context(peer))
        sign(params.book, f"met-{context.node}")
        ends = (params.book / "over", params.book / f"over-{context.node}")
        while context.node in params.hosts and not any(end.exists() for end in ends):
            for peer in peers:
                _refuse_lost(peer)
            time.sleep(POLL_S)
        for peer in peers:
            peer.sendall(b".")


def _refuse_lost(peer: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        if not peer.recv(1, socket.MSG_DONTWAIT):
            raise ConnectionError("a member has left the meeting")


def _attend(params: MeetingParams, context: Context, place: Rendezvous) -> None:
    with socket.create_connection((place.master_addr, place.master_port)) as host:
        host.sendall(b"!")
        sign(params.book, f"met-{context.node}")
        if host.recv(1) != b".":
            raise ConnectionError("rank 0 has left the meeting")


class ReunionParams(Params):
    """`timeout_s` is how long a rank waits for the others."""

    timeout_s: float = 3.0


def reunion(params: ReunionParams, context: Context) -> Measurement:
    """All ranks meet with torch, as in muster's own group checks; nothing is measured."""
    from muster_plugins.shared.torch_device import Place  # noqa: PLC0415
    from muster_plugins.shared.torch_group import joined  # noqa: PLC0415

    place = context.rendezvous()
    with joined(context, place, Place(None, "cpu", "the CPU"), params.timeout_s) as group:
        met = group.all_gather("ranks", place.rank, int)
    return Measurement(metrics={"rate": 1.0}, facts={"met": [*met], "rank": place.rank})


def _find_nothing(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    return []


@hookimpl
def muster_departures(config: Config) -> list[DepartureProbe]:
    """A node leaves for the reason that stands in the file `notice` of its data, as long as the file is there."""
    file = config.settings.data_dir / "notice"
    return [DepartureProbe(name="notice", probe=lambda: file.read_text() if file.exists() else None, interval_s=0.2)]


@hookimpl
def muster_checks(config: Config) -> list[AnyCheck]:
    misbehaving: dict[str, Any] = {
        "summary": "Misbehaves as it is told",
        "scope": Scope.NODE,
        "params": MischiefParams,
        "measure": mischief,
        "judge": judge_mischief,
        "timeout_s": 2.0,
    }
    for_groups: dict[str, Any] = {
        "scope": Scope.GROUP,
        "judge": _find_nothing,
        "timeout_s": 60.0,
        "needs": Needs.IDLE_NODE,
        "objective": "rate",
    }
    return [
        Check(name="mischief", **misbehaving),
        Check(name="resident_mischief", resident=True, **misbehaving),
        Check(name="meeting", summary="Ranks meet", params=MeetingParams, measure=meeting, **for_groups),
        Check(name="reunion", summary="Ranks meet with torch", params=ReunionParams, measure=reunion, **for_groups),
    ]
