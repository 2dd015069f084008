"""A client of MQTT 3.1.1 that reads only when a test says so, and sends what no library sends."""

import socket
from typing import Self

from benchmarks.mqtt_packets import CONNECTED, PUBLISH, RETAINED, SUBSCRIBE, connect, packet, text

PATIENCE_S = 30.0


def published(topic: str, payload: bytes, *, retain: bool = False) -> bytes:
    """A message of QoS 0."""
    return packet(PUBLISH | (RETAINED if retain else 0), text(topic) + payload)


class RawClient:
    """A connection with an account whose password is its name."""

    def __init__(self, port: int, account: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.send(connect(account, account, account, keepalive_s=60))
        assert self.receive(len(CONNECTED)) == CONNECTED

    def subscribe(self, topic: str) -> None:
        self.send(packet(SUBSCRIBE, b"\x00\x01" + text(topic) + b"\x00"))

    def send(self, raw: bytes) -> None:
        self._socket.sendall(raw)

    def receive(self, count: int) -> bytes:
        """The next `count` bytes, or fewer when the broker closes the connection."""
        received = bytearray()
        while len(received) < count and (more := self._socket.recv(count - len(received))):
            received += more
        return bytes(received)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
