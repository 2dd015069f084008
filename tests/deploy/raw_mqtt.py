"""A client of MQTT 3.1.1 that reads only when it is told to, and sends what no library would."""

import socket
from typing import Self

CONNECT, PUBLISH, SUBSCRIBE = 0x10, 0x30, 0x82
RETAINED = 0x01
PATIENCE_S = 30.0


def header(kind: int, length: int) -> bytes:
    """A packet's first bytes: its kind, and the length of the rest in digits of seven bits."""
    digits: list[int] = []
    while length or not digits:
        length, digit = divmod(length, 128)
        digits.append(digit | (0x80 if length else 0))
    return bytes([kind, *digits])


def text(value: str) -> bytes:
    return len(value).to_bytes(2) + value.encode()


def published(topic: str, payload: bytes, *, retain: bool = False) -> bytes:
    """A message of QoS 0."""
    body = text(topic) + payload
    return header(PUBLISH | (RETAINED if retain else 0), len(body)) + body


class RawClient:
    """Connected as an account whose password is its name."""

    def __init__(self, port: int, account: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        body = text("MQTT") + bytes([4, 0xC2, 0, 60]) + text(account) * 3  # with both, a clean session, 60 s
        self.send(header(CONNECT, len(body)) + body)
        assert self.receive(4) == b"\x20\x02\x00\x00"

    def subscribe(self, topic: str) -> None:
        body = b"\x00\x01" + text(topic) + b"\x00"
        self.send(header(SUBSCRIBE, len(body)) + body)

    def send(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def receive(self, count: int) -> bytes:
        """So many bytes, or fewer when the broker hangs up."""
        found = bytearray()
        while len(found) < count and (more := self._socket.recv(count - len(found))):
            found += more
        return bytes(found)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
