"""The connections of a server: how many there may be, and how long a client may keep the server waiting.

A connection is either *at work*: the server owes its client something. Or it *waits* for its client: for a request, for
its body, for the next one, or for the client to read an answer. The server closes a connection that waits longer than
`WAIT_S`. When all places are taken, it closes the connection that has waited longest, to make room for a new one.
Therefore neither ten thousand silent connections nor clients that send a byte a second keep out a client that sends its
request at once.

Every step takes constant time, with one exception: the search for the longest waiting connection of one address.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from muster.addresses import is_loopback_host
from muster.log_limit import LogLimit

WAIT_S = 15.0
"""A request over a slow line takes a second. Probes and scrapers return every 10 to 60 s, and may connect again."""

PROGRESS_BYTES = 64 << 10
"""A client that reads less of a large answer within `WAIT_S` is not reading it; 64 KiB in 15 s is 35 kbit/s."""

RESERVED_DESCRIPTORS = 256
"""File descriptors kept free for the database, the broker, actors, children and connections about to be refused."""

BACKLOG = 128
"""Connections that the kernel queues while the event loop is busy."""

NO_ROOM = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
"""What an HTTP server sends to a client that finds no room."""

log = structlog.get_logger()


def most_connections(wanted: int) -> int:
    """`wanted`, or fewer if the process may open only few files.

    A process runs up to two servers. Together they leave `RESERVED_DESCRIPTORS` free.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(files - RESERVED_DESCRIPTORS, files // 2) // 2)


class Connections:
    """The connections of the server called `name`: at most `most`, and at most half of these from one other host.

    The server sends `refusal` to a client that finds no room. `most_unread` is the number of bytes that a client may
    send before its connection is at work. Use it from one event loop only.
    """

    def __init__(self, name: str, most: int, *, refusal: bytes = b"", most_unread: int | None = None) -> None:
        self.name = name
        self.refused = 0
        self.cut_off = 0
        self.most_unread = most_unread
        self._most = most
        self._refusal = refusal
        self._open: dict[asyncio.BaseTransport, _Connection] = {}
        self._of_address: Counter[str] = Counter()
        # The start of each wait; the connection that waits longest comes first.
        self._waiting: dict[_Connection, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False
        self._limit = LogLimit()

    def __len__(self) -> int:
        return len(self._open)

    def around(self, protocol: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """A factory for `loop.create_server`. Each connection that finds room gets its own `protocol`."""
        return lambda: _Connection(self, protocol)

    def start_work(self, transport: asyncio.BaseTransport | None) -> None:
        """Notes that the server owes this client something from now on."""
        if transport is not None and (connection := self._open.get(transport)):
            connection.set_at_work(True)

    def end_work(self, transport: asyncio.BaseTransport | None) -> None:
        """Notes that the server waits for this client again."""
        if transport is not None and (connection := self._open.get(transport)):
            connection.set_at_work(False)

    @contextmanager
    def work(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """Counts the connection as at work inside the `with` block."""
        self.start_work(transport)
        try:
            yield
        finally:
            self.end_work(transport)

    @contextmanager
    def wait(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """Counts a connection that is at work as waiting for its client inside the `with` block."""
        self.end_work(transport)
        try:
            yield
        finally:
            self.start_work(transport)

    def enter(self, connection: "_Connection") -> bool:
        """Admits a new connection, if necessary in place of the one that waits longest; False if none can be closed."""
        if self._has_ended:
            connection.transport.abort()
            return False
        # The limit of the address comes first: a host that has too many connections loses one of its own.
        if not (self._has_room_for(connection.address) and self._has_room()):
            self.refused += 1
            self._log("connection_refused", connection.address)
            connection.transport.write(self._refusal)
            connection.transport.close()
            return False
        self._open[connection.transport] = connection
        self._of_address[connection.address] += 1
        self.wait_for(connection)
        return True

    def leave(self, connection: "_Connection") -> None:
        """Forgets a connection that is closed or about to be."""
        self._waiting.pop(connection, None)
        if self._open.pop(connection.transport, None) is not None:
            self._of_address[connection.address] -= 1
            if not self._of_address[connection.address]:
                del self._of_address[connection.address]

    def wait_for(self, connection: "_Connection") -> None:
        """Notes that the connection waits for its client from now on."""
        now = asyncio.get_running_loop().time()
        self._waiting.pop(connection, None)
        if connection.transport not in self._open:
            return
        self._waiting[connection] = now
        if self._timer is None:
            self._set_timer()

    def stop_waiting(self, connection: "_Connection") -> None:
        """Notes that the connection does not wait for its client any more."""
        self._waiting.pop(connection, None)

    def end(self) -> None:
        """Ends all connections at once, and from now on each new one. Those that are being closed may send the rest."""
        self._has_ended = True
        for connection in tuple(self._open.values()):
            if not connection.transport.is_closing():
                connection.transport.abort()

    def cut(self, connection: "_Connection", why: str) -> None:
        """Ends a connection at once, counts it and logs why."""
        self.cut_off += 1
        self._log("connection_cut_off", connection.address, why)
        self._end(connection)

    def _end(self, connection: "_Connection") -> None:
        self.leave(connection)
        connection.transport.abort()

    def _has_room(self) -> bool:
        return len(self._open) < self._most or self._make_room(None)

    def _has_room_for(self, address: str) -> bool:
        """Whether the address has fewer connections than its share, or one of its connections could be closed.

        The share of another host is half of all. Clients on this host have no share: they all have one address.
        """
        if is_loopback_host(address) or self._of_address[address] < max(1, self._most // 2):
            return True
        return self._make_room(address)

    def _make_room(self, address: str | None) -> bool:
        """Closes the connection that waits longest, of `address` only if given; False if none waits."""
        for connection in self._waiting:
            if address in (None, connection.address):
                self.cut(connection, "a new connection needs its place")
                return True
        return False

    def _set_timer(self) -> None:
        """Sets the one timer to the time at which the longest waiting connection is overdue."""
        since = next(iter(self._waiting.values()), None)
        self._timer = None
        if since is not None:
            self._timer = asyncio.get_running_loop().call_at(since + WAIT_S, self._end_overdue)

    def _end_overdue(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._waiting:
            connection, since = next(iter(self._waiting.items()))
            if since + WAIT_S > now:
                break
            if connection.has_read_its_share():
                self.wait_for(connection)  # moves it to the end
            elif connection.is_spent:
                self._end(connection)
            else:
                self.cut(connection, f"the client kept the server waiting for {WAIT_S:g} s")
        self._set_timer()

    def _log(self, event: str, address: str, why: str = "no waiting connection could be closed instead") -> None:
        left_out = self._limit.admit(event, asyncio.get_running_loop().time())
        if left_out is not None:
            log.warning(event, server=self.name, address=address, reason=why, open=len(self._open), left_out=left_out)


class _Connection(asyncio.Protocol):
    """Stands between a transport and the protocol that serves it, and observes both."""

    transport: asyncio.Transport

    def __init__(self, connections: Connections, protocol: Callable[[], asyncio.Protocol]) -> None:
        self.address = ""
        self._connections = connections
        self._new_protocol = protocol
        self._protocol: asyncio.Protocol | None = None
        self._is_at_work = False
        self._has_worked = False
        self._is_paused = False
        self._unread = 0
        self._untaken = 0

    def set_at_work(self, is_at_work: bool) -> None:
        self._is_at_work = is_at_work
        self._has_worked = True
        self._unread = 0
        self._reconsider()

    @property
    def is_spent(self) -> bool:
        """Whether the client has read every answer and merely keeps the connection open, as clients do."""
        return self._has_worked and self.transport.get_write_buffer_size() == 0

    def has_read_its_share(self) -> bool:
        """Whether the client has read `PROGRESS_BYTES` since the last call of this method."""
        before, self._untaken = self._untaken, self.transport.get_write_buffer_size()
        return before - self._untaken >= PROGRESS_BYTES

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        if self._connections.enter(self):
            self._protocol = self._new_protocol()
            self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._protocol is None:
            return
        most = self._connections.most_unread
        if most is not None and not self._is_at_work:
            self._unread += len(data)
            if self._unread > most:
                self._connections.cut(self, f"the client sent more than {most} bytes before it said who it is")
                return
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return None if self._protocol is None else self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._is_paused = True
        self._untaken = self.transport.get_write_buffer_size()
        self._reconsider()
        if self._protocol is not None:
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._reconsider()
        if self._protocol is not None:
            self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.leave(self)
        if self._protocol is not None:
            self._protocol.connection_lost(exc)

    def _reconsider(self) -> None:
        if self._is_at_work and not self._is_paused:
            self._connections.stop_waiting(self)
        else:
            self._connections.wait_for(self)
