"""Clients that open many connections and send nothing useful keep no other client out of the API or the broker."""

import contextlib
import http.client
import resource
import signal
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from tests.coordinator.conftest import Coordinator
from tests.waiting import wait_for

from muster.connections import WAIT_S
from muster_coordinator.runtime.stream import MOST_LISTENERS

IDLE = 1_000
FILES = 600
"""How many files the coordinator may open: fewer than the connections that come."""

GARBAGE = [b"", b"GET / HT", b"\x10\xff\xff\xff\x7f", b"\x00" * 100, b"POST /api/v1/sweeps HTTP/1.1\r\nHost: x\r\nA: "]


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A coordinator with an embedded broker that may open few files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    running = Coordinator(tmp_path_factory.mktemp("coordinator"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    try:
        running.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * IDLE), hard))
    wait_for(lambda: running.ask("GET", "/readyz")[0] == 200, "the coordinator to be ready")
    yield running
    running.end(signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


SLOW_BODY = (
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 99\r\n\r\ntoken="
)
"""A form that anybody may send; most of it never arrives."""


@contextlib.contextmanager
def connections(url: str, count: int, beginnings: list[bytes]) -> Iterator[list[socket.socket]]:
    """Opens `count` connections, and gives those that opened. Each sends one of the beginnings and nothing more."""
    opened: list[socket.socket] = []
    with contextlib.ExitStack() as held:
        for number in range(count):
            with contextlib.suppress(OSError):
                opened.append(held.enter_context(connect(url)))
                opened[-1].send(beginnings[number % len(beginnings)])
        yield opened


def connect(url: str, source: str = "127.0.0.1") -> socket.socket:
    place = (urlsplit(url).hostname, urlsplit(url).port)
    return socket.create_connection(place, timeout=5, source_address=(source, 0))


def files_of(coordinator: Any) -> int:
    return psutil.Process(coordinator.process.pid).num_fds()


@pytest.mark.parametrize("port", ["url", "broker"])
def test_silent_and_broken_connections_keep_nobody_out(coordinator, port):
    """With a thousand of them, the API, its probes, the broker and the database work, and the log stays short."""
    before = len(coordinator.log)
    with connections(getattr(coordinator, port), IDLE, GARBAGE):
        for _ in range(5):
            assert coordinator.get("/healthz") == {"status": "ok"}
            assert coordinator.ask("GET", "/readyz")[0] == 200
            assert coordinator.get("/api/v1/nodes")["items"] == []
            assert files_of(coordinator) < FILES
    assert len(coordinator.log) - before < 10
    assert not any("text" in line or "Traceback" in str(line) for line in coordinator.log)


def test_bodies_that_do_not_come_keep_nobody_out(coordinator):
    """They wait as silent connections do, and their end is no error in the log."""
    before = len(coordinator.log)
    with connections(coordinator.url, IDLE, [SLOW_BODY]):
        for _ in range(5):
            assert coordinator.ask("GET", "/readyz")[0] == 200
            assert coordinator.get("/api/v1/nodes")["items"] == []
    assert len(coordinator.log) - before < 10


def test_a_slow_request_ends(coordinator):
    """If headers come byte by byte, the coordinator waits no longer for them than for any other client."""
    with connect(coordinator.url) as line:
        line.settimeout(0.5)
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            for byte in b"GET /api/v1/nodes HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 1000:
                line.send(bytes([byte]))
                with contextlib.suppress(TimeoutError):
                    if line.recv(1) == b"":
                        break
    assert WAIT_S - 1 < time.monotonic() - began < 2 * WAIT_S


@pytest.mark.parametrize(
    "head", [b"A: " + b"a" * 9000, b"".join(b"A%d: a\r\n" % number for number in range(100))[:-2]], ids=["long", "many"]
)
def test_too_large_headers_are_refused(coordinator, head):
    """At once, with status 400."""
    with connect(coordinator.url) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n")
        assert line.recv(100).split()[1] == b"400"


def test_the_longest_query_of_the_api_is_read(coordinator):
    """With characters that take twelve bytes each; an answer of the server itself would be no problem in JSON."""
    longest = "&".join(f"{name}={'%F3%BD%98%B2' * most}" for name, most in (("select", 500), ("by", 330)))
    status, problem = coordinator.ask("GET", f"/api/v1/fleet/groups?{longest}")
    assert (status, problem["status"]) == (400, 400)


def test_silent_listeners_cost_little(coordinator):
    """Five hundred never read: the maximum number listens, memory stays bounded, and other clients get answers."""
    listen = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    before = psutil.Process(coordinator.process.pid).memory_info().rss
    with connections(coordinator.url, 500, [listen]):
        wait_for(lambda: listeners(coordinator) == MOST_LISTENERS, "the listeners")
        assert coordinator.get("/healthz") == {"status": "ok"}
        assert psutil.Process(coordinator.process.pid).memory_info().rss - before < 30 << 20
        assert files_of(coordinator) < FILES


def test_a_greedy_listener_does_not_end_the_listening_of_others(coordinator):
    """Two hundred listeners at one address, and one at another: only the former lose any."""
    listen = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(coordinator.url, source="127.0.0.2") as other:
        other.sendall(listen)
        assert other.recv(1000).startswith(b"HTTP/1.1 200")
        with connections(coordinator.url, 200, [listen]) as greedy:
            too_many = 1 + len(greedy) - MOST_LISTENERS
            wait_for(lambda: sum(map(has_ended, greedy)) == too_many, "the end of those that are too many")
            assert not has_ended(other)


def has_ended(line: socket.socket) -> bool:
    """Whether the server has closed the connection; what it sent before is read."""
    line.setblocking(False)
    try:
        while line.recv(1000):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def listeners(coordinator: Any) -> int | None:
    """How many listen; None while all connections are in use."""
    connection = http.client.HTTPConnection(urlsplit(coordinator.url).netloc, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        text = answer.read().decode()
    if answer.status == http.HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    line = next(line for line in text.splitlines() if line.startswith("muster_event_listeners "))
    return int(float(line.split()[1]))
