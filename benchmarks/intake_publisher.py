"""Sends prepared MQTT packets to a broker as fast as it takes them, and waits until it has confirmed each.

Arguments: host, port, file of packets, their number. It says `ready` when it is connected, begins at a line on stdin,
and then says when it began and when all was confirmed, by the monotonic clock. It speaks MQTT itself, because a client
library would take as much processor time as the subscriber that is measured beside it.
"""

import socket
import sys
import threading
import time
from pathlib import Path

CONNECT = b"\x10\x15\x00\x04MQTT\x04\x02\x00\x3c\x00\x09publisher"
CONNACK_BYTES = 4
PUBACK_BYTES = 4


def main() -> None:
    """Connects, sends and waits."""
    host, port, file, count = sys.argv[1:]
    packets = Path(file).read_bytes()
    with socket.create_connection((host, int(port))) as broker:
        broker.sendall(CONNECT)
        _take(broker, CONNACK_BYTES)
        print("ready", flush=True)
        sys.stdin.readline()
        confirmed = threading.Thread(target=_take, args=(broker, PUBACK_BYTES * int(count)))
        confirmed.start()
        began = time.monotonic()
        broker.sendall(packets)
        confirmed.join()
        print(began, time.monotonic(), flush=True)


def _take(broker: socket.socket, wanted: int) -> None:
    while wanted > 0:
        taken = len(broker.recv(1 << 16))
        if taken == 0:
            sys.exit("the broker has hung up")
        wanted -= taken


if __name__ == "__main__":
    main()
