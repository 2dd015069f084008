"""Whoever supervises the coordinator hears from it while it goes on, and nothing while it hangs."""

import socket
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.parts import Part

LIMIT_S = 2.0
"""After this silence, systemd would kill it."""

READY, WATCHDOG, STOPPING = b"READY=1", b"WATCHDOG=1", b"STOPPING=1"


class Supervisor:
    """A coordinator under the eyes of somebody to whom it reports as to systemd."""

    def __init__(self, directory: Path) -> None:
        self.database = directory / "data" / "muster.db"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(directory / "notify"))
        settings = {
            "data_dir": str(self.database.parent),
            "broker": {"listen": "127.0.0.1:0"},
            "http": {"listen": "127.0.0.1:0"},
        }
        env = {"NOTIFY_SOCKET": str(directory / "notify"), "WATCHDOG_USEC": str(int(LIMIT_S * 1e6))}
        self.coordinator = Part("coordinator", directory / "log", settings, env)

    def hear(self, within_s: float) -> bytes | None:
        """What it says next; None when it says nothing for so long."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.recv(100)
        except TimeoutError:
            return None

    def forget(self) -> None:
        """Lets go what it has said so far."""
        while self.hear(0.001) is not None:
            pass

    def heard_for(self, seconds: float) -> list[bytes | None]:
        """What it says in that time, with None for each silence that would be its end."""
        deadline = time.monotonic() + seconds
        heard = []
        while time.monotonic() < deadline:
            heard.append(self.hear(LIMIT_S))
        return heard

    def end(self) -> None:
        if self.coordinator.runs:
            self.coordinator.kill()
        self._socket.close()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    """A coordinator that is ready."""
    supervisor = Supervisor(tmp_path)
    supervisor.coordinator.start()
    said = [supervisor.hear(60)]
    while said[-1] == WATCHDOG:
        said.append(supervisor.hear(60))
    assert said[-1] == READY
    assert supervisor.coordinator.log("coordinator_ready")
    yield supervisor
    supervisor.end()


def test_it_beats_while_all_is_well_and_says_when_it_stops(supervisor: Supervisor) -> None:
    """Twice in the time that it has, and until somebody ends it."""
    heard = supervisor.heard_for(3 * LIMIT_S)
    assert set(heard) == {WATCHDOG}
    assert len(heard) >= 4
    assert supervisor.coordinator.stop() == 0
    assert STOPPING in {supervisor.hear(1) for _ in range(5)}


def test_it_says_nothing_while_it_does_nothing(supervisor: Supervisor) -> None:
    """And beats again when it goes on, if it was left alone."""
    with supervisor.coordinator.held_up():
        supervisor.forget()
        assert supervisor.hear(LIMIT_S) is None
    assert supervisor.hear(LIMIT_S) == WATCHDOG


def test_a_slow_database_is_no_reason_to_be_silent(supervisor: Supervisor) -> None:
    """Nor for a liveness probe to fail: somebody else has the database for longer than the watchdog waits."""
    url = supervisor.coordinator.logged("coordinator_ready")["api"]
    with sqlite3.connect(supervisor.database, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        supervisor.forget()
        assert set(supervisor.heard_for(1.5 * LIMIT_S)) == {WATCHDOG}
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            assert answer.status == 200
        other.execute("ROLLBACK")
    other.close()
    assert supervisor.coordinator.runs
