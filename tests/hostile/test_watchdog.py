"""The coordinator notifies its supervisor while it runs, and not while it hangs."""

import socket
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.parts import Part

LIMIT_S = 2.0
"""After this time without a notification, systemd would kill the coordinator."""

READY, WATCHDOG, STOPPING = b"READY=1", b"WATCHDOG=1", b"STOPPING=1"


class Supervisor:
    """Starts a coordinator and receives its notifications, as systemd does."""

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

    def receive(self, within_s: float) -> bytes | None:
        """The next notification; None if none comes in this time."""
        self._socket.settimeout(within_s)
        try:
            return self._socket.recv(100)
        except TimeoutError:
            return None

    def drop_received(self) -> None:
        """Drops the notifications that came so far."""
        while self.receive(0.001) is not None:
            pass

    def received_for(self, seconds: float) -> list[bytes | None]:
        """The notifications of that time, with None for each silence after which systemd would kill it."""
        deadline = time.monotonic() + seconds
        received = []
        while time.monotonic() < deadline:
            received.append(self.receive(LIMIT_S))
        return received

    def end(self) -> None:
        if self.coordinator.runs:
            self.coordinator.kill()
        self._socket.close()


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    """The supervisor of a coordinator that is ready."""
    supervisor = Supervisor(tmp_path)
    supervisor.coordinator.start()
    states = [supervisor.receive(60)]
    while states[-1] == WATCHDOG:
        states.append(supervisor.receive(60))
    assert states[-1] == READY
    assert supervisor.coordinator.log("coordinator_ready")
    yield supervisor
    supervisor.end()


def test_it_notifies_while_it_runs_and_when_it_stops(supervisor: Supervisor) -> None:
    """At least twice in the watchdog's time."""
    received = supervisor.received_for(3 * LIMIT_S)
    assert set(received) == {WATCHDOG}
    assert len(received) >= 4
    assert supervisor.coordinator.stop() == 0
    assert STOPPING in {supervisor.receive(1) for _ in range(5)}


def test_it_does_not_notify_while_it_hangs(supervisor: Supervisor) -> None:
    """It notifies again when it continues."""
    with supervisor.coordinator.held_up():
        supervisor.drop_received()
        assert supervisor.receive(LIMIT_S) is None
    assert supervisor.receive(LIMIT_S) == WATCHDOG


def test_it_notifies_while_the_database_is_slow(supervisor: Supervisor) -> None:
    """The liveness probe passes, too, while another process locks the database for longer than the watchdog waits."""
    url = supervisor.coordinator.logged("coordinator_ready")["api"]
    with sqlite3.connect(supervisor.database, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        supervisor.drop_received()
        assert set(supervisor.received_for(1.5 * LIMIT_S)) == {WATCHDOG}
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            assert answer.status == 200
        other.execute("ROLLBACK")
    other.close()
    assert supervisor.coordinator.runs
