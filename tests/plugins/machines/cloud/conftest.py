"""A metadata server on loopback that answers, hangs, drips or lies, and machines of clouds by their firmware."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from muster_plugins.machines.cloud import plugin

FOUND = {
    "Google Cloud": ("product_name", "Google Compute Engine"),
    "AWS": ("sys_vendor", "Amazon EC2"),
    "Azure": ("chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77"),
}

Answer = Callable[[str], bytes | None]


def http(body: str | bytes, status: str = "200 OK") -> bytes:
    content = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


class MetadataServer:
    """Answers each request with what `answer` makes of it; None answers nothing."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self.address: tuple[str, int] = listener.getsockname()
        self.requests: list[str] = []
        self.answer: Answer = lambda _request: None
        self.drips = False

    def serve(self) -> None:
        with contextlib.suppress(OSError):  # the end of the test closes the listener
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            self.requests.append(connection.recv(4096).decode())
            answer = self.answer(self.requests[-1])
            if self.drips:
                while True:
                    connection.sendall(b"H")
                    time.sleep(0.05)
            if answer is None:
                connection.recv(1)  # until the client hangs up
            else:
                connection.sendall(answer)


@pytest.fixture
def server(live) -> Iterator[MetadataServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = MetadataServer(listener)
        threading.Thread(target=serving.serve, daemon=True).start()
        yield serving
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Callable[[str], Any]:
    """The DMI fields of a machine of a cloud; this process has not asked any server yet."""
    for memory in ("_known", "_labels"):
        monkeypatch.setattr(plugin, memory, {})

    def make(cloud: str) -> Any:
        field, value = FOUND[cloud]
        (tmp_path / field).write_text(value + "\n")
        return tmp_path

    return make


def by_path(texts: Mapping[str, str]) -> Answer:
    """Answers a request whose path begins with a key with its text, a token for AWS, and all others with 404."""

    def answer(request: str) -> bytes:
        path = request.split(" ", 2)[1]
        if path == "/latest/api/token":
            return http("dG9rZW4=")
        found = next((text for begin, text in texts.items() if path.startswith(begin)), None)
        return http("", "404 Not Found") if found is None else http(found)

    return answer
