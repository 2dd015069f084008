"""A hostile rank 0: it speaks the protocol of torch's TCPStore, and lies at one point.

The protocol is that of torch 2.13 (torch/csrc/distributed/c10d/TCPStore.cpp). A request is one byte. Texts and values
are a length of eight bytes and that many bytes.
"""

import contextlib
import os
import socket
import struct
from collections.abc import Callable
from enum import IntEnum
from threading import Thread
from types import TracebackType
from typing import Self

from tests.waiting import can_be_read


class Query(IntEnum):
    """The requests of a client."""

    VALIDATE = 0
    SET = 1
    COMPARE_SET = 2
    GET = 3
    ADD = 4
    CHECK = 5
    WAIT = 6
    GETNUMKEYS = 7
    DELETE_KEY = 8
    APPEND = 9
    MULTI_GET = 10
    MULTI_SET = 11
    CANCEL_WAIT = 12
    PING = 13


class Gone(Exception):
    """The client closed the connection, or the store ends it."""


_LOOK_AGAIN_S = 0.02

Greeting = Callable[[socket.socket], None]

Lie = Callable[["Guest", str], bytes | None]
"""The bytes on the wire, length included, that replace the value of a key; None for the true value."""


def value(content: bytes) -> bytes:
    """A value on the wire."""
    return struct.pack("<Q", len(content)) + content


def close_at_once(_connection: socket.socket) -> None:
    """A greeting: the store is gone."""
    raise Gone


def send_garbage(connection: socket.socket) -> None:
    """A greeting that is not the protocol of a store."""
    connection.sendall(os.urandom(1 << 16))
    connection.recv(1 << 16)
    raise Gone


class LyingStore:
    """Serves at a port of 127.0.0.1 while the context lasts. It calls `lie` for every value that a client gets.

    `greet` gets the connection before anything is read from it, and may raise Gone to close it.
    """

    def __init__(self, lie: Lie | None = None, greet: Greeting | None = None) -> None:
        self._lie = lie or (lambda _guest, _key: None)
        self._greet = greet or (lambda _connection: None)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.kept: dict[str, bytes] = {}
        self.closed = False
        self._connections: list[socket.socket] = []

    def __enter__(self) -> Self:
        Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes the listener and every connection."""
        self.closed = True
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, Gone), connection:  # ValueError: we have closed it
            self._greet(connection)
            Guest(self, connection, self._lie).attend()


class Guest:
    """One client of the store."""

    def __init__(self, store: LyingStore, connection: socket.socket, lie: Lie) -> None:
        self.store = store
        self.connection = connection
        self._lie = lie

    def attend(self) -> None:
        answers: dict[Query, Callable[[], None]] = {
            Query.VALIDATE: self._validate,
            Query.PING: lambda: self.connection.sendall(self._read(4)),
            Query.SET: self._set,
            Query.ADD: self._add,
            Query.CHECK: lambda: self.connection.sendall(bytes([0 if self._there(self._keys()) else 1])),
            Query.WAIT: self._wait,
            Query.CANCEL_WAIT: self._cancel,
            Query.GET: lambda: self._give([self._key()]),
            Query.MULTI_GET: lambda: self._give(self._keys()),
        }
        while True:
            answers[Query(self._read(1)[0])]()

    def _validate(self) -> None:
        self._read(4)

    def _set(self) -> None:
        key = self._key()
        self.store.kept[key] = self._value()

    def _add(self) -> None:
        key, amount = self._key(), struct.unpack("<q", self._read(8))[0]
        total = int(self.store.kept.get(key, b"0")) + amount
        self.store.kept[key] = str(total).encode()
        self.connection.sendall(struct.pack("<q", total))

    def _wait(self) -> None:
        """Answers when all keys are there, or when the client cancels its wait."""
        keys = self._keys()
        while not (self._there(keys) or self.store.closed):
            if can_be_read(self.connection.fileno(), _LOOK_AGAIN_S):
                assert Query(self._read(1)[0]) is Query.CANCEL_WAIT
                return self._cancel()
        return self.connection.sendall(b"\0")

    def _cancel(self) -> None:
        self.connection.sendall(b"\1")

    def _there(self, keys: list[str]) -> bool:
        return all(key in self.store.kept or self._lie(self, key) is not None for key in keys)

    def _give(self, keys: list[str]) -> None:
        for key in keys:
            lied = self._lie(self, key)
            self.connection.sendall(value(self.store.kept.get(key, b"")) if lied is None else lied)

    def _keys(self) -> list[str]:
        return [self._key() for _ in range(self._length())]

    def _key(self) -> str:
        return self._value().decode().removeprefix("/")

    def _value(self) -> bytes:
        return self._read(self._length())

    def _length(self) -> int:
        length: int = struct.unpack("<Q", self._read(8))[0]
        return length

    def _read(self, count: int) -> bytes:
        read = b""
        while len(read) < count:
            more = self.connection.recv(count - len(read))
            if not more:
                raise Gone
            read += more
        return read
