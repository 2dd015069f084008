"""The gate before the store of a group: only a rank that knows the group's secret gets to it.

torch's TCPStore knows no secrets. Who reaches its port can list, read, write and delete every key, and fill the memory
of rank 0. So the store listens on loopback only, and the gate of rank 0 takes its place at the port of the group. Every
other rank has a door: torch connects to it on loopback, and the door connects to the gate.

    torch of rank 1 -> door, 127.0.0.1:40001 -> gate, 10.0.0.7:41234 -> store, 127.0.0.1:40002, in rank 0

Door and gate prove to each other that they know the secret, without sending it:

    gate -> door   a random number
    door -> gate   a random number of its own, and an HMAC of both
    gate -> door   another HMAC of both

After that, both copy bytes, unencrypted as before. The gate closes a connection that has not proved the secret within
PROOF_WITHIN_S, and the oldest one when there are MOST_STRANGERS more than ranks. It remembers the addresses of such
strangers. A connection that ends without a byte is none: the agents of the members try in this way whether they reach
rank 0.

A program on the host of a member still reaches the store through loopback.
"""

import asyncio
import hmac
import resource
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from threading import Thread

LOOPBACK = "127.0.0.1"

PROOF_WITHIN_S = 10.0
"""A proof takes a round trip; the rest is for busy hosts, and for packets that are lost and sent again."""

MOST_STRANGERS = 256
"""Well below the usual limit of 1,024 open files."""

MOST_NAMED = 8
"""Maximum number of addresses of strangers that are remembered."""

_BACKLOG = 4096
"""Connections that the kernel queues: every rank of a large group connects at once. The maximum of Linux."""

_OTHER_FILES = 1024
"""Files for all else that a rank does: the usual limit."""

_NUMBER_BYTES = 32
_PROOF_BYTES = 32
_CHUNK_BYTES = 1 << 20
"""Bytes that are copied at once: with many ranks, the values of all are some megabytes."""

_Attend = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Gate:
    """Attends to connections at the port of the group, and passes those with the secret on to the store."""

    def __init__(self, secret: str, store_port: int, ranks: int) -> None:
        self._secret = bytes.fromhex(secret)
        self._store_port = store_port
        self._most_unproven = ranks + MOST_STRANGERS
        self._unproven: dict[asyncio.StreamWriter, None] = {}
        self._strangers: dict[str, None] = {}

    @property
    def strangers(self) -> list[str]:
        """The addresses of those who did not know the secret, in the order of their first connection."""
        return list(self._strangers)

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Asks for the proof, and copies bytes from and to the store until one side closes the connection."""
        if len(self._unproven) >= self._most_unproven:
            oldest = next(iter(self._unproven))
            del self._unproven[oldest]
            self._note_stranger(oldest)
            oldest.transport.abort()
        self._unproven[writer] = None
        try:
            has_proved = await self._has_proved(reader, writer)
        finally:
            self._unproven.pop(writer, None)
        if has_proved:
            await _join((reader, writer), await _connect(LOOPBACK, self._store_port))

    async def _has_proved(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        own = secrets.token_bytes(_NUMBER_BYTES)
        writer.write(own)
        try:
            async with asyncio.timeout(PROOF_WITHIN_S):
                answer = await reader.readexactly(_NUMBER_BYTES + _PROOF_BYTES)
        except (TimeoutError, asyncio.IncompleteReadError) as error:
            if isinstance(error, TimeoutError) or error.partial:
                self._note_stranger(writer)
            return False
        numbers = own + answer[:_NUMBER_BYTES]
        if not hmac.compare_digest(answer[_NUMBER_BYTES:], _proof(self._secret, b"door", numbers)):
            self._note_stranger(writer)
            return False
        writer.write(_proof(self._secret, b"gate", numbers))
        return True

    def _note_stranger(self, writer: asyncio.StreamWriter) -> None:
        address, *_ = writer.get_extra_info("peername") or ("unknown",)
        if len(self._strangers) < MOST_NAMED:
            self._strangers[address] = None


class Door:
    """Attends to the connections of torch, and takes each through the gate at `address` and `port`."""

    def __init__(self, secret: str, address: str, port: int) -> None:
        self._secret = bytes.fromhex(secret)
        self._address = address
        self._port = port

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copies bytes from and to the gate, if it knows the secret; otherwise torch finds its connection closed."""
        far_reader, far_writer = await _connect(self._address, self._port)
        with closing(far_writer):
            theirs = await far_reader.readexactly(_NUMBER_BYTES)
            own = secrets.token_bytes(_NUMBER_BYTES)
            far_writer.write(own + _proof(self._secret, b"door", theirs + own))
            answer = await far_reader.readexactly(_PROOF_BYTES)
            if hmac.compare_digest(answer, _proof(self._secret, b"gate", theirs + own)):
                await _join((reader, writer), (far_reader, far_writer))


@contextmanager
def served(listener: socket.socket, attend: _Attend) -> Iterator[None]:
    """Attends to connections in a thread of its own until the end of the `with` block, and closes the listener."""
    loop = asyncio.new_event_loop()

    async def attend_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # At the end it is cancelled, which asyncio before Python 3.12 would report as an error.
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await attend(reader, writer)

    server = loop.run_until_complete(
        asyncio.start_server(attend_and_close, sock=listener, backlog=_BACKLOG, limit=_CHUNK_BYTES)
    )
    thread = Thread(target=loop.run_forever, name="store-gate", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.run_until_complete(_cancel_all())
        loop.close()


def allow_connections(ranks: int) -> None:
    """Lets this process open enough files for a gate.

    Each rank needs three: its connection to the gate, and both ends of the gate's own connection to the store.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 3 * ranks + MOST_STRANGERS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def on_loopback() -> socket.socket:
    """A socket that listens on loopback, on a free port."""
    return socket.create_server((LOOPBACK, 0))


def _proof(secret: bytes, role: bytes, numbers: bytes) -> bytes:
    return hmac.digest(secret, role + numbers, "sha256")


async def _connect(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(address, port, limit=_CHUNK_BYTES)


async def _join(
    one: tuple[asyncio.StreamReader, asyncio.StreamWriter], other: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    """Copies bytes in both directions until both sides have ended."""
    await asyncio.gather(_copy(one[0], other[1]), _copy(other[0], one[1]))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer), suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


async def _cancel_all() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
