"""Floods a broker over one connection: `python -m benchmarks.flood_sender PORT ACCOUNT PASSWORD TOPIC FILE`.

FILE holds the payloads of the messages, one to a line. They are sent at QoS 0 again and again, as fast as the broker
takes them, until this process is killed.
"""

import socket
import sys
from pathlib import Path

from benchmarks.mqtt_packets import CONNECTED, PUBLISH, connect, packet, text


def flood(port: int, account: str, password: str, topic: str, payloads: list[bytes]) -> None:
    """Sends until the connection ends."""
    messages = b"".join(packet(PUBLISH, text(topic) + payload) for payload in payloads)
    with socket.create_connection(("127.0.0.1", port)) as broker:
        broker.sendall(connect("flood", account, password))
        if broker.recv(len(CONNECTED)) != CONNECTED:
            sys.exit(f"the broker at port {port} does not accept the account {account!r}")
        while True:
            broker.sendall(messages)


if __name__ == "__main__":
    port, account, password, topic, file = sys.argv[1:]
    flood(int(port), account, password, topic, Path(file).read_bytes().splitlines())
