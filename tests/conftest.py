"""What tests of every part share."""

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_configure():
    # looptime asks for the event loop of tests that have none; asyncio would make one that nobody closes.
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    """Keeps the settings of whoever runs the tests out of them."""
    for variable in [name for name in os.environ if name.startswith("MUSTER_")]:
        monkeypatch.delenv(variable)


@pytest.fixture
def muster() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line in a process of its own: `muster("plugin", "list", env={...})`."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "muster", *arguments],
            env={**os.environ, **(env or {})},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


class Mosquitto:
    """A real broker on loopback. It keeps its port over `stop` and `start`, and nothing else."""

    def __init__(self, directory: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._config = directory / "mosquitto.conf"
        self._config.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nset_tcp_nodelay true\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program, "these tests need Mosquitto: apt-get install mosquitto"
        self._process = subprocess.Popen([program, "-c", self._config], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                assert self._process.poll() is None, "Mosquitto has ended"
                assert time.monotonic() < deadline, "Mosquitto does not listen"
                time.sleep(0.01)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="session")
def new_mosquitto(tmp_path_factory):
    """Runs a Mosquitto for as long as a context lasts: `with new_mosquitto() as broker`."""

    @contextlib.contextmanager
    def run():
        broker = Mosquitto(tmp_path_factory.mktemp("mosquitto"))
        broker.start()
        try:
            yield broker
        finally:
            broker.stop()

    return run


@pytest.fixture
def mosquitto(new_mosquitto):
    """A running Mosquitto: `.url`, `.port`, `stop()` as if its power went, `start()` on the same port."""
    with new_mosquitto() as broker:
        yield broker
