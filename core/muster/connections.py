"""The connections of a server: how many there may be, and how long a client may keep the server waiting.

A connection is either *at work*, which means that the server owes its client something, or it *waits* for its client:
for a request, for the next one, or for the client to take what was sent. One that waits too long is closed. Where there
are too many, the one that has waited longest makes room for who comes new. So neither ten thousand silent connections
nor a client that sends a byte a second keep others out: whoever asks at once is served.

Every step takes constant time, but for the search among the connections of one address that has too many.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address

import structlog

from muster.log_limit import LogLimit

WAIT_S = 15.0
"""A request over a slow line takes a second. Probes and scrapers come again each 10 to 60 s, and may connect anew."""

PROGRESS_BYTES = 64 << 10
"""Who takes less of a large answer within `WAIT_S` is not reading it; 64 KiB is 35 kbit/s."""

RESERVED_DESCRIPTORS = 256
"""Files that stay free for the database, the broker, actors and children, and for connections about to be refused."""

BACKLOG = 128
"""Connections that the kernel keeps while the event loop is busy."""

log = structlog.get_logger()


def most_connections(wanted: int) -> int:
    """`wanted`, or less where the process may open few files: two servers together leave the reserved ones free."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(files - RESERVED_DESCRIPTORS, files // 2) // 2)


class Connections:
    """The connections of the server called `name`, at most `most`, and from one other host at most half of these.

    `refusal` is sent to those that find no room. `most_unread` bounds the bytes that a client may send before it is
    `at_work`. To be used in one event loop.
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
        self._waiting: dict[_Connection, float] = {}  # since when, the longest first
        self._timer: asyncio.TimerHandle | None = None
        self._limit = LogLimit()

    def __len__(self) -> int:
        return len(self._open)

    def around(self, protocol: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """A factory for `loop.create_server` that gives each connection that finds room its `protocol`."""
        return lambda: _Connection(self, protocol)

    def start_work(self, transport: asyncio.BaseTransport | None) -> None:
        """From now on the server owes this client something."""
        if transport is not None and (connection := self._open.get(transport)):
            connection.set_at_work(True)

    def end_work(self, transport: asyncio.BaseTransport | None) -> None:
        """From now on the server waits for this client again."""
        if transport is not None and (connection := self._open.get(transport)):
            connection.set_at_work(False)

    @contextmanager
    def work(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """Both, around what the server does for this client."""
        self.start_work(transport)
        try:
            yield
        finally:
            self.end_work(transport)

    def enter(self, connection: "_Connection") -> bool:
        """Whether there is room for a new connection, after the one that has waited longest made it if need be."""
        if not (self._has_room_for(connection.address) and self._has_room()):  # who has too many makes its own room
            self.refused += 1
            self._tell("connection_refused", connection.address)
            connection.transport.write(self._refusal)
            connection.transport.close()
            return False
        self._open[connection.transport] = connection
        self._of_address[connection.address] += 1
        self.wait_for(connection)
        return True

    def leave(self, connection: "_Connection") -> None:
        """The connection is closed, or as good as closed."""
        self._waiting.pop(connection, None)
        if self._open.pop(connection.transport, None) is not None:
            self._of_address[connection.address] -= 1
            if not self._of_address[connection.address]:
                del self._of_address[connection.address]

    def wait_for(self, connection: "_Connection") -> None:
        """The connection waits for its client, from now on."""
        now = asyncio.get_running_loop().time()
        self._waiting.pop(connection, None)
        if connection.transport not in self._open:
            return
        self._waiting[connection] = now
        if self._timer is None:
            self._look_again(now + WAIT_S)

    def stop_waiting(self, connection: "_Connection") -> None:
        self._waiting.pop(connection, None)

    def cut(self, connection: "_Connection", why: str) -> None:
        """Ends a connection at once, whatever it still has to say, and says so."""
        self.cut_off += 1
        self._tell("connection_cut_off", connection.address, why)
        self._end(connection)

    def _end(self, connection: "_Connection") -> None:
        self.leave(connection)
        connection.transport.abort()

    def _has_room(self) -> bool:
        return len(self._open) < self._most or self._make_room(None)

    def _has_room_for(self, address: str) -> bool:
        """Half of all for one other host. On this host, all clients share one address."""
        if _is_this_host(address) or self._of_address[address] < max(1, self._most // 2):
            return True
        return self._make_room(address)

    def _make_room(self, address: str | None) -> bool:
        for connection in self._waiting:
            if address in (None, connection.address):
                self.cut(connection, "others need its place")
                return True
        return False

    def _look_again(self, at: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(at, self._end_the_overdue)

    def _end_the_overdue(self) -> None:
        now = asyncio.get_running_loop().time()
        self._timer = None
        for connection, since in list(self._waiting.items()):
            if since + WAIT_S > now:
                self._look_again(since + WAIT_S)
                return
            if connection.takes_what_is_sent():
                self.wait_for(connection)
            elif connection.is_spent:
                self._end(connection)
            else:
                self.cut(connection, f"its client was awaited for {WAIT_S:g} s")
        if self._waiting and self._timer is None:
            self._look_again(now + WAIT_S)

    def _tell(self, event: str, address: str, why: str = "there is no room") -> None:
        left_out = self._limit.admit(event, asyncio.get_running_loop().time())
        if left_out is not None:
            log.warning(event, server=self.name, address=address, reason=why, open=len(self._open), left_out=left_out)


class _Connection(asyncio.Protocol):
    """Stands between a transport and the protocol that serves it, and sees what either does."""

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
        """Whether the client got all that it has asked for and just keeps the connection, as clients do."""
        return self._has_worked and self.transport.get_write_buffer_size() == 0

    def takes_what_is_sent(self) -> bool:
        """Whether the client has taken a fair part of what it is to be sent since this was asked last."""
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
                self._connections.cut(self, f"it sent more than {most} bytes before it said who it is")
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


def _is_this_host(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:  # an address with a scope, such as fe80::1%eth0
        return False
