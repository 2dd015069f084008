"""Floods a broker over one connection: `python flood_sender.py PORT ACCOUNT PASSWORD TOPIC FILE`.

FILE holds the payloads of the messages, one to a line. They are sent at QoS 0 again and again, as fast as the broker
takes them, until this process is killed.
"""

import socket
import sys
from pathlib import Path


def field(text: bytes) -> bytes:
    """A text as MQTT writes it."""
    return len(text).to_bytes(2) + text


def packet(kind: int, body: bytes) -> bytes:
    """A packet of MQTT 3.1.1."""
    length, rest = bytearray(), len(body)
    while rest > 127:
        length.append(rest % 128 | 128)
        rest //= 128
    length.append(rest)
    return bytes([kind]) + bytes(length) + body


def flood(port: int, account: str, password: str, topic: str, payloads: list[bytes]) -> None:
    """Sends until the connection ends."""
    login = field(b"MQTT") + b"\x04\xc2\x00\x00" + field(b"flood") + field(account.encode()) + field(password.encode())
    said = b"".join(packet(0x30, field(topic.encode()) + payload) for payload in payloads)
    with socket.create_connection(("127.0.0.1", port)) as broker:
        broker.sendall(packet(0x10, login))
        assert broker.recv(4) == b"\x20\x02\x00\x00", "the broker does not let us in"
        while True:
            broker.sendall(said)


if __name__ == "__main__":
    port, account, password, topic, file = sys.argv[1:]
    flood(int(port), account, password, topic, Path(file).read_bytes().splitlines())
