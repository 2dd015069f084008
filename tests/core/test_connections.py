"""The connections of a server: which client gets room, and which one is cut off."""

import asyncio
import resource

import pytest
import structlog

from muster.connections import PROGRESS_BYTES, WAIT_S, Connections, most_connections

pytestmark = pytest.mark.looptime


class Line(asyncio.Transport):
    """The server's end of a connection whose client does what a test says."""

    def __init__(self, address="127.0.0.1"):
        super().__init__({"peername": (address, 1)})
        self.said = b""
        self.state = "open"
        self.unsent = 0

    def write(self, data):
        self.said += data

    def get_write_buffer_size(self):
        return self.unsent

    def close(self):
        self.state = "closed"

    def is_closing(self):
        return self.state != "open"

    def abort(self):
        self.state = "aborted"


class Served(asyncio.Protocol):
    """Records what comes through."""

    def __init__(self):
        self.heard = []

    def data_received(self, data):
        self.heard.append(data)

    def pause_writing(self):
        self.heard.append("pause")

    def resume_writing(self):
        self.heard.append("resume")

    def connection_lost(self, exc):
        self.heard.append("lost")


class Server:
    """A server's `Connections`, and clients that connect."""

    def __init__(self, most=3, **options):
        self.connections = Connections("test", most, **options)
        self.served = []
        self._factory = self.connections.around(self._serve)
        self.protocols = {}

    def _serve(self):
        self.served.append(Served())
        return self.served[-1]

    def connect(self, address="127.0.0.1", work=False):
        line = Line(address)
        self.protocols[line] = self._factory()
        self.protocols[line].connection_made(line)
        if work:
            self.connections.start_work(line)
        return line


def states(lines):
    return [line.state for line in lines]


async def test_the_one_that_waits_longest_makes_room():
    """A new client is served, however many silent ones came before."""
    server = Server(3)
    lines = [server.connect() for _ in range(10)]
    assert states(lines) == ["aborted"] * 7 + ["open"] * 3
    assert (len(server.connections), server.connections.cut_off, server.connections.refused) == (3, 7, 0)


async def test_a_connection_at_work_is_not_replaced():
    """If no connection is idle, the new one is refused with an answer of the protocol."""
    server = Server(3, refusal=b"no room")
    working = [server.connect(work=True) for _ in range(3)]
    late = server.connect()
    assert (late.state, late.said) == ("closed", b"no room")
    assert len(server.served) == 3
    server.protocols[late].data_received(b"still talking")
    server.protocols[late].connection_lost(None)
    server.connections.end_work(working[1])
    assert server.connect().state == "open"
    assert states(working) == ["open", "aborted", "open"]


async def test_an_idle_connection_is_cut_off():
    """Also if it sends a few bytes now and then: only a whole request counts."""
    server = Server()
    slow, working = server.connect(), server.connect(work=True)
    for _ in range(int(WAIT_S)):
        await asyncio.sleep(0.9)
        server.protocols[slow].data_received(b"X")
    await asyncio.sleep(0.1 * WAIT_S + 0.1)
    assert states([slow, working]) == ["aborted", "open"]
    assert server.served[0].heard == [b"X"] * int(WAIT_S)


async def test_the_idle_time_starts_again_after_each_request():
    """A connection that is kept for the next request has its full time."""
    server = Server()
    kept = server.connect()
    for _ in range(3):
        await asyncio.sleep(0.9 * WAIT_S)
        with server.connections.work(kept):
            await asyncio.sleep(10 * WAIT_S)
    assert kept.state == "open"
    await asyncio.sleep(WAIT_S + 0.1)
    assert (kept.state, server.connections.cut_off) == ("aborted", 0)  # normal for clients, so it is not counted


async def test_a_client_that_does_not_read_its_answer_is_cut_off():
    """Although the server works for it. A client that reads slowly is not cut off."""
    server = Server(4)
    silent, slow, quick = (server.connect(work=True) for _ in range(3))
    for line in (silent, slow, quick):
        line.unsent = 10 * PROGRESS_BYTES
        server.protocols[line].pause_writing()
    server.protocols[quick].resume_writing()
    for _ in range(5):
        await asyncio.sleep(WAIT_S / 2)
        slow.unsent -= PROGRESS_BYTES
        await asyncio.sleep(WAIT_S / 2)
    assert states([silent, slow, quick]) == ["aborted", "open", "open"]
    await asyncio.sleep(3 * WAIT_S)
    assert states([silent, slow, quick]) == ["aborted", "aborted", "open"]
    assert server.served[2].heard == ["pause", "resume"]


async def test_clients_that_read_slowly_share_one_timer(monkeypatch):
    """Clients that take a fair part of a large answer again and again do not leave more and more timers behind."""
    server = Server()
    calls = []
    loop = asyncio.get_running_loop()
    call_at = loop.call_at

    def count_calls(at, callback, *args, **options):
        if getattr(callback, "__self__", None) is server.connections:
            calls.append(at)
        return call_at(at, callback, *args, **options)

    monkeypatch.setattr(loop, "call_at", count_calls)
    lines = [server.connect(work=True) for _ in range(3)]
    for line in lines:
        line.unsent = 1000 * PROGRESS_BYTES
        server.protocols[line].pause_writing()
        await asyncio.sleep(WAIT_S / 10)
    calls.clear()
    for _ in range(300):
        await asyncio.sleep(WAIT_S / 10)
        for line in lines:
            line.unsent -= PROGRESS_BYTES
    assert {line.state for line in lines} == {"open"}
    assert len(calls) <= 3 * 30 + 1, "a timer for each time that one of three connections is due"


async def test_a_client_that_does_not_read_its_answer_makes_room():
    """For a new client."""
    server = Server(2)
    stalled, working = server.connect(work=True), server.connect(work=True)
    server.protocols[stalled].pause_writing()
    assert states([server.connect(), stalled, working]) == ["open", "aborted", "open"]


async def test_another_host_gets_half_of_the_connections():
    """Loopback may have all of them, because every client of this host has that address."""
    server = Server(6)
    theirs = [server.connect("10.0.0.1") for _ in range(5)]
    ours = [server.connect() for _ in range(3)]
    assert states(theirs) == ["aborted", "aborted", "open", "open", "open"]
    assert states(ours) == ["open"] * 3
    busy = Server(6, refusal=b"no")
    working = [busy.connect("10.0.0.1", work=True) for _ in range(4)]
    assert states(working) == ["open"] * 3 + ["closed"]
    assert busy.connect("10.0.0.2").state == "open"


async def test_a_host_with_too_many_connections_replaces_only_its_own():
    """Although those of other hosts have been idle for longer, and there is no room."""
    server = Server(4)
    ours = [server.connect() for _ in range(2)]
    theirs = [server.connect("10.0.0.1") for _ in range(10)]
    assert states(ours) == ["open"] * 2
    assert states(theirs) == ["aborted"] * 8 + ["open"] * 2


async def test_too_many_bytes_before_the_first_work_are_cut_off():
    """A stranger cannot make the server keep many bytes; a known client may send any number."""
    server = Server(most_unread=100)
    stranger, known = server.connect(), server.connect(work=True)
    for line in (stranger, known):
        server.protocols[line].data_received(b"x" * 100)
        server.protocols[line].data_received(b"x")
    assert states([stranger, known]) == ["aborted", "open"]
    assert [len(protocol.heard) for protocol in server.served] == [1, 2]


async def test_a_closed_connection_is_forgotten():
    """Whichever side closed it."""
    server = Server()
    line = server.connect("10.0.0.1")
    server.protocols[line].connection_lost(None)
    assert len(server.connections) == 0
    assert server.served[0].heard == ["lost"]
    server.connections.start_work(line)
    server.connections.end_work(line)
    server.connections.start_work(None)
    await asyncio.sleep(2 * WAIT_S)
    assert line.state == "open"  # nothing is done to it any more


async def test_at_the_end_all_connections_end():
    """At once, whatever they do, and later ones as they come; an answer that is still being sent may go on."""
    server = Server(4)
    waiting, at_work, closing = server.connect(), server.connect(work=True), server.connect()
    closing.close()
    server.connections.end()
    late = server.connect()
    assert states([waiting, at_work, closing, late]) == ["aborted", "aborted", "closed", "aborted"]
    assert len(server.served) == 3


async def test_a_flood_is_one_line_in_the_log():
    """A minute. The next line says how many were left out."""
    server = Server(1)
    with structlog.testing.capture_logs() as logged:
        for _ in range(100):
            server.connect()
        await asyncio.sleep(60)
        server.connect()
        server.connect()
    lines = [(line["event"], line["left_out"]) for line in logged]
    assert lines == [("connection_cut_off", 0), ("connection_cut_off", 99)]


@pytest.mark.parametrize(
    ("files", "most"), [(64, 16), (256, 64), (1024, 384), (4096, 512), (resource.RLIM_INFINITY, 512)]
)
def test_some_files_stay_free(monkeypatch, files, most):
    """Two servers together leave some for the database, the broker and the actors."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert most_connections(512) == most
