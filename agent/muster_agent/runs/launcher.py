"""The daemon's side of the launcher process: starts children, talks with them and learns how they ended."""

import asyncio
import contextlib
import gc
import itertools
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import pydantic_core
from pydantic import TypeAdapter

from muster.check import AnyCheck
from muster.model import Json
from muster.plugins import Plugins
from muster_agent.decide.orders import ChildExit
from muster_agent.runs import child, launcher_process
from muster_agent.runs.probes_and_reservations import ProbesAndReservations

MAX_LINE_BYTES = 1 << 20
"""A child that sends a longer line breaks the protocol."""

TAIL_BYTES = 4096
"""Characters at the end of a child's output that become evidence."""

KEPT_BYTES = 1 << 16
"""Bytes that are searched for an uncaught C++ exception. A stack trace of about 20 KB may follow it."""

_EXIT = TypeAdapter(ChildExit)
_LOST = "the launcher process is gone"


class LauncherLost(RuntimeError):
    """The launcher process is gone. Nothing can run until the daemon is restarted."""


class ProtocolError(Exception):
    """A child sent something that is not in the protocol, or a line that is too long."""


def launch(plugins: Plugins, checks: Mapping[str, AnyCheck]) -> "Launcher":
    """Forks the launcher. Call it while the process has a single thread, and with all imported that it needs."""
    probes = [probe for answer in plugins.contribute("muster_idle_probes") for probe in answer.value]
    reservations = [one for answer in plugins.contribute("muster_reservations") for one in answer.value]
    departures = [probe for answer in plugins.contribute("muster_departures") for probe in answer.value]
    roles: dict[str, launcher_process.Role] = {
        child.RUN: partial(child.run, plugins, checks),
        child.RESIDENT: partial(child.reside, plugins, checks, ProbesAndReservations(probes, reservations), departures),
    }
    scratch = Path(tempfile.mkdtemp(prefix="muster-"))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # no collection touches objects that exist now, so children share their memory pages
    pid = os.fork()
    if pid == 0:
        ours.close()
        launcher_process.serve(theirs, roles, scratch)
    theirs.close()
    return Launcher(pid, ours, scratch, reserves=bool(reservations))


class Launcher:
    """The daemon's handle of the launcher process. Close it when the event loop has ended.

    `scratch` is a directory for runs; the launcher or the daemon removes it, whichever ends last. `reserves` is true if
    the resident child can make reservations.
    """

    def __init__(self, pid: int, link: socket.socket, scratch: Path, *, reserves: bool) -> None:
        self.pid = pid
        self.scratch = scratch
        self.reserves = reserves
        self._link = link
        self._link.setblocking(False)
        self._ids = itertools.count(1)
        self._children: dict[str, ChildProcess] = {}
        self._listening = False
        self._lost = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def spawn(
        self, role: str, *, memory_limit_bytes: int | None, listener: socket.socket | None = None
    ) -> "ChildProcess":
        """Starts a child; raises LauncherLost if the launcher is gone."""
        if self._lost:
            raise LauncherLost(_LOST)
        if not self._listening:
            asyncio.get_running_loop().add_reader(self._link, self._receive)
            self._listening = True
        control, theirs = socket.socketpair()
        output, their_output = os.pipe()
        name = str(next(self._ids))
        try:
            spawned = ChildProcess(self, name)
            await spawned.connect(control, output)
            self._children[name] = spawned
            descriptors = [theirs.fileno(), their_output, *([listener.fileno()] if listener else [])]
            self._send({"spawn": name, "role": role, "memory_limit_bytes": memory_limit_bytes}, descriptors)
        finally:
            theirs.close()
            os.close(their_output)
        return spawned

    def kill(self, id: str) -> None:
        """Kills a child and everything that it started. How it ended is reported as usual."""
        with contextlib.suppress(LauncherLost):
            self._send({"kill": id}, [])

    def close(self) -> None:
        """Kills everything that still runs and waits for the launcher to end, within its patience."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._link.close()
        os.waitpid(self.pid, 0)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def detach(self) -> None:
        """Stops listening before the event loop ends. Nothing waits for the end of a child after that."""
        self._lost = True
        if self._listening:
            asyncio.get_running_loop().remove_reader(self._link)
            self._listening = False
        while self._children:
            self._children.popitem()[1].end(ChildExit(error=_LOST))

    def _send(self, message: Json, descriptors: list[int]) -> None:
        try:
            socket.send_fds(self._link, [json.dumps(message).encode()], descriptors)
        except (BrokenPipeError, ConnectionResetError):
            self.detach()
            raise LauncherLost(_LOST) from None

    def _receive(self) -> None:
        try:
            packet = self._link.recv(launcher_process.MAX_PACKET_BYTES)
        except ConnectionResetError:
            packet = b""
        if not packet:
            self.detach()
            return
        match json.loads(packet):
            case {"spawned": id, "pid": pid}:
                self._children[id].pid = pid
            case {"exited": id, "how": how}:
                self._children.pop(id).end(_EXIT.validate_python(how))


class ChildProcess:
    """A child process. `pid` is None until the launcher has reported it."""

    def __init__(self, launcher: Launcher, id: str) -> None:
        self.pid: int | None = None
        self._exited: asyncio.Future[ChildExit] = asyncio.get_running_loop().create_future()
        self._launcher = launcher
        self._id = id
        self._tail = _OutputTail()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._output: asyncio.ReadTransport

    async def connect(self, control: socket.socket, output: int) -> None:
        """Attaches the daemon's ends of the control socket and the output pipe."""
        self._reader, self._writer = await asyncio.open_connection(sock=control, limit=MAX_LINE_BYTES)
        pipe = os.fdopen(output, "rb", buffering=0)
        self._output, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: self._tail, pipe)

    @property
    def tail(self) -> str:
        """The end of the child's stdout and stderr, for evidence."""
        return self._tail.kept[-TAIL_BYTES:].decode(errors="replace")

    @property
    def recent_output(self) -> str:
        """The last KEPT_BYTES of the child's stdout and stderr; `tail` is the end of it."""
        return self._tail.kept.decode(errors="replace")

    def send(self, message: Json) -> None:
        self._writer.write(pydantic_core.to_json(message) + b"\n")

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """The messages of the child until it closes its end; raises ProtocolError if one is not in the protocol."""
        while line := await self._line():
            try:
                message = pydantic_core.from_json(line)
            except ValueError as error:
                raise ProtocolError(f"not JSON: {error}") from None
            if not isinstance(message, dict):
                raise ProtocolError("not a JSON object")
            yield message

    def kill(self) -> None:
        self._launcher.kill(self._id)

    async def gone(self) -> ChildExit:
        """Waits until the child has ended and all its output is read, and returns how it ended."""
        ending = await asyncio.shield(self._exited)
        await asyncio.shield(self._tail.ended)
        self._close()
        return ending

    def end(self, how: ChildExit) -> None:
        """Notes how the child has ended. Its ends close by themselves, unless a stuck process still holds them."""
        self._exited.set_result(how)
        if how.stuck or how.error:
            self._close()

    def _close(self) -> None:
        self._output.close()
        self._writer.transport.abort()

    async def _line(self) -> bytes:
        try:
            return await self._reader.readline()
        except ConnectionError:
            return b""
        except ValueError:
            raise ProtocolError(f"a line of more than {MAX_LINE_BYTES} bytes") from None


class _OutputTail(asyncio.Protocol):
    """Keeps the end of the data from a pipe."""

    def __init__(self) -> None:
        self.kept = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.kept = (self.kept + data)[-KEPT_BYTES:]

    def connection_lost(self, _error: Exception | None) -> None:
        self.ended.set_result(None)
