"""The gate before the store of a group, and the doors of the other ranks, over real connections."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from muster_plugins.shared import store_gate
from muster_plugins.shared.store_gate import LOOPBACK, Door, Gate, allow_connections, on_loopback, served

SECRET, OTHER_SECRET = "ab" * 32, "cd" * 32

pytestmark = pytest.mark.usefixtures("live")


@pytest.fixture
def store() -> Iterator[socket.socket]:
    """The listener in place of the store."""
    with on_loopback() as listener:
        listener.settimeout(10)
        yield listener


@dataclass(frozen=True)
class GateServed:
    """A gate before the store, and its port."""

    gate: Gate
    port: int


@pytest.fixture
def gate(store: socket.socket) -> Iterator[GateServed]:
    """A gate before the store."""
    listener = on_loopback()
    made = Gate(SECRET, port_of(store), ranks=2)
    with served(listener, made.attend):
        yield GateServed(made, port_of(listener))


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


@contextlib.contextmanager
def door(port: int, secret: str = SECRET) -> Iterator[socket.socket]:
    """A connection of torch to a door before the gate at this port."""
    listener = on_loopback()
    own = port_of(listener)
    with served(listener, Door(secret, LOOPBACK, port).attend), connected(own) as client:
        yield client


def connected(port: int) -> socket.socket:
    client = socket.create_connection((LOOPBACK, port))
    client.settimeout(10)
    return client


def is_closed(client: socket.socket) -> bool:
    """Reads until the other side closes the connection; fails after ten seconds."""
    with contextlib.suppress(ConnectionResetError):
        while client.recv(1 << 16):
            pass
    return True


def test_a_rank_with_the_secret_reaches_the_store(gate, store):
    """Bytes pass unchanged in both directions, and so does the end of a connection."""
    sent = bytes(range(256)) * 4096
    with door(gate.port) as client:
        client.sendall(b"hello")
        inner, _ = store.accept()
        with inner, inner.makefile("rb") as read:
            assert read.read(5) == b"hello"
            inner.sendall(sent)
            with client.makefile("rb") as answer:
                assert answer.read(len(sent)) == sent
            client.close()
            assert read.read() == b""
    assert gate.gate.strangers == []


def test_a_rank_with_another_secret_does_not(gate, store):
    """Nothing arrives at the store, torch finds its connection closed, and the gate remembers the address."""
    with door(gate.port, OTHER_SECRET) as client:
        client.sendall(b"hello")
        assert is_closed(client)
    assert nobody_came(store)
    assert gate.gate.strangers == [LOOPBACK]


@pytest.mark.parametrize("sent", [b"\x00\xce\xf7\x85\x3c" + bytes(100), b"GET / HTTP/1.1\r\n" * 9, b"\n"], ids=repr)
def test_a_stranger_is_turned_away(gate, store, monkeypatch, sent):
    """Whatever it sends: the greeting of a store, a request of another protocol, or too little."""
    monkeypatch.setattr(store_gate, "PROOF_WITHIN_S", 0.3)
    with connected(gate.port) as client:
        client.sendall(sent)
        assert is_closed(client)
    assert nobody_came(store)
    assert gate.gate.strangers == [LOOPBACK]


def test_a_recorded_proof_opens_no_second_connection(gate, store):
    """The gate draws another number each time."""
    with recorder(gate.port) as (port, recorded), door(port) as client:
        client.sendall(b"hello")
        store.accept()[0].close()
        assert is_closed(client)
    with connected(gate.port) as client:
        client.sendall(bytes(recorded))
        assert is_closed(client)
    assert nobody_came(store)


def test_a_door_does_not_take_a_false_gate_for_the_true_one():
    """A program that took the port of rank 0 gets a proof, but none of torch's bytes."""
    with on_loopback() as false, door(port_of(false)) as client:
        client.sendall(b"hello")
        far, _ = false.accept()
        with far, far.makefile("rb") as read:
            far.sendall(bytes(32))
            assert len(read.read(64)) == 64
            far.sendall(bytes(32))
            assert read.read() == b""
        assert is_closed(client)


def test_who_connects_and_leaves_is_no_stranger(gate, store):
    """The agents of members try in this way whether they reach rank 0."""
    connected(gate.port).close()
    with door(gate.port) as client:
        client.sendall(b"hello")
        store.accept()[0].close()
        assert is_closed(client)
    assert gate.gate.strangers == []


def test_a_thousand_silent_strangers_do_not_keep_a_rank_out(gate, store):
    """The oldest of them lose their connection."""
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connected(gate.port)) for _ in range(1000)]
        with door(gate.port) as client:
            client.sendall(b"hello")
            store.accept()[0].close()
            assert is_closed(client)
        assert is_closed(silent[0])
    assert gate.gate.strangers == [LOOPBACK]


def test_a_large_group_may_open_more_files(monkeypatch):
    """Up to what the system allows this process, and not more than it needs."""
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 20_000))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, pair: limits.append(pair))
    for ranks in (16, 1000, 10_000):
        allow_connections(ranks)
    assert limits == [(1328, 20_000), (4280, 20_000), (20_000, 20_000)]


def nobody_came(store: socket.socket) -> bool:
    store.settimeout(0.05)
    with pytest.raises(TimeoutError):
        store.accept()
    return True


@contextlib.contextmanager
def recorder(gate_port: int) -> Iterator[tuple[int, bytearray]]:
    """A wire between door and gate: its port, and what doors have sent over it."""
    recorded = bytearray()
    listener = on_loopback()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(LOOPBACK, gate_port)

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, keep: bool) -> None:
            with contextlib.closing(target):
                while data := await source.read(1 << 16):
                    recorded.extend(data if keep else b"")
                    target.write(data)

        await asyncio.gather(copy(reader, far_writer, True), copy(far_reader, writer, False))

    with served(listener, pass_on):
        yield port_of(listener), recorded
