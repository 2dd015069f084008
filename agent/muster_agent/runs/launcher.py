"""The daemon's end of the launcher process: spawns children, talks with them and learns how they ended."""

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
from muster_agent.runs import child, forking
from muster_agent.runs.probes_and_reservations import ProbesAndReservations

MAX_LINE_BYTES = 1 << 20
"""A longer line from a child is garbage."""

TAIL_BYTES = 4096
"""How much of the end of a child's output is evidence."""

KEPT_BYTES = 1 << 16
"""How much of it is searched for an uncaught C++ exception, which is followed by a stack trace of some 20 KB."""

_EXIT = TypeAdapter(ChildExit)
_LOST = "the launcher process is gone"


class LauncherLost(RuntimeError):
    """The launcher process is gone. Without it nothing can run; the daemon has to be started anew."""


class ProtocolError(Exception):
    """A child has said something that is not in the protocol, or too much at once."""


def launch(plugins: Plugins, checks: Mapping[str, AnyCheck]) -> "Launcher":
    """Forks the launcher. To be called before asyncio and heavy imports, while the process has a single thread."""
    probes = [probe for answer in plugins.contribute("muster_idle_probes") for probe in answer.value]
    reservations = [one for answer in plugins.contribute("muster_reservations") for one in answer.value]
    roles: dict[str, forking.Role] = {
        child.RUN: partial(child.run, plugins, checks),
        child.RESIDENT: partial(child.reside, plugins, checks, ProbesAndReservations(probes, reservations)),
    }
    scratch = Path(tempfile.mkdtemp(prefix="muster-"))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    gc.freeze()  # what is there now is never moved or marked by a collection, so its pages stay shared
    pid = os.fork()
    if pid == 0:
        ours.close()
        forking.serve(theirs, roles, scratch)
    theirs.close()
    return Launcher(pid, ours, scratch, reserves=bool(reservations))


class Launcher:
    """The launcher process as the daemon holds it. Close it when the event loop is done.

    `scratch` is a directory for runs. Of launcher and daemon, the one that ends last removes it. `reserves` says
    whether the resident child has reservations to make.
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
        """Starts a child; LauncherLost when that is impossible from now on."""
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
        """Has a child and everything that it started killed; how it ended is told as always."""
        with contextlib.suppress(LauncherLost):
            self._send({"kill": id}, [])

    def close(self) -> None:
        """Has everything killed that still runs and waits for the launcher to end, at most its patience."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._link.close()
        os.waitpid(self.pid, 0)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def detach(self) -> None:
        """Stops listening for good, before the event loop ends; nobody waits any longer for the end of a child."""
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
            packet = self._link.recv(forking.MAX_PACKET_BYTES)
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
    """A child process: `pid` is None until the launcher has told it."""

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
        """Takes over the daemon's ends of the control socket and the output pipe."""
        self._reader, self._writer = await asyncio.open_connection(sock=control, limit=MAX_LINE_BYTES)
        pipe = os.fdopen(output, "rb", buffering=0)
        self._output, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: self._tail, pipe)

    @property
    def tail(self) -> str:
        """The end of what the child has written to stdout and stderr."""
        return self._tail.kept[-TAIL_BYTES:].decode(errors="replace")

    @property
    def recent_output(self) -> str:
        """The last KEPT_BYTES of what the child has written to stdout and stderr; `tail` is the end of it."""
        return self._tail.kept.decode(errors="replace")

    def send(self, message: Json) -> None:
        self._writer.write(pydantic_core.to_json(message) + b"\n")

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """What the child says until it closes its end; Garbage when it breaks the protocol."""
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
        """How the child ended, once it has and all of its output has been read."""
        ending = await asyncio.shield(self._exited)
        await asyncio.shield(self._tail.ended)
        self._close()
        return ending

    def end(self, how: ChildExit) -> None:
        """Notes how the child has ended. Its ends close by themselves then, unless something may still hold them."""
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
    """Keeps the end of what is written to a pipe."""

    def __init__(self) -> None:
        self.kept = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.kept = (self.kept + data)[-KEPT_BYTES:]

    def connection_lost(self, _error: Exception | None) -> None:
        self.ended.set_result(None)
