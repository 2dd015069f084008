"""Two coordinators in processes of their own, with one PostgreSQL and one Mosquitto, and nodes that report."""

import asyncio
import contextlib
import http.client
import signal

import pytest
from benchmarks.free_ports import free_port
from tests.coordinator.conftest import Coordinator, Node, connected

READY = ("coordinator_ready", "coordinator_stands_by")


class Rival(Coordinator):
    """A coordinator that may lead or stand by."""

    def times(self, event):
        """How often it has logged this event."""
        return sum(line.get("event") == event for line in self.log)

    @property
    def leads(self):
        """Whether it leads, by its log."""
        steps = [line["event"] for line in self.log if line.get("event") in (*READY, "leadership_lost")]
        return steps[-1:] == ["coordinator_ready"] and self.process.poll() is None

    @property
    def stands_by(self):
        """The same for standing by."""
        steps = [line["event"] for line in self.log if line.get("event") in READY]
        return steps[-1:] == ["coordinator_stands_by"] and self.process.poll() is None

    def asks(self, path):
        """The answer to GET; None if there is none now, or an error."""
        try:
            status, answer = self.ask("GET", path)
        except (OSError, http.client.HTTPException):
            return None
        return answer if status == 200 else None


class Fleet:
    """Both coordinators, their servers, and the nodes."""

    def __init__(self, directory, postgres, database, rivals):
        self.directory = directory
        self.postgres = postgres
        self.database = database
        self.rivals = rivals

    async def leader(self, but=None):
        """Waits for a leader, other than `but`."""
        async with asyncio.timeout(60):
            while not (found := [each for each in self.rivals if each is not but and each.leads]):
                await asyncio.sleep(0.02)
        return found[0]

    def other(self, rival):
        """The other one."""
        return next(each for each in self.rivals if each is not rival)


@pytest.fixture
async def fleet(postgres, new_mosquitto, tmp_path, more_settings):
    """Two coordinators: one leads, the other one stands by."""
    with new_mosquitto() as mosquitto, contextlib.ExitStack() as stack:
        rivals, database = [], postgres.new_database()
        for name in "ab":
            directory = tmp_path / name
            directory.mkdir(mode=0o700)
            port = free_port()
            rival = Rival(
                directory,
                MUSTER_HTTP__LISTEN=f"127.0.0.1:{port}",
                MUSTER_HTTP__TRUST_LOOPBACK="true",
                MUSTER_STORE__URL=database,
                MUSTER_BROKER__URL=mosquitto.url,
                **more_settings,
            )
            rival.url, rival.broker = f"http://127.0.0.1:{port}", mosquitto.url
            rival.begin()
            stack.callback(ended, rival)
            rivals.append(rival)
        fleet = Fleet(tmp_path, postgres, database, rivals)
        leader = await fleet.leader()
        async with asyncio.timeout(60):
            while (fleet.other(leader).asks("/readyz") or {}).get("leader") != leader.url:
                await asyncio.sleep(0.02)
        yield fleet


def ended(rival):
    """Kills it, also if it is paused."""
    if rival.process.poll() is None:
        rival.end(signal.SIGKILL)


class Reporter(Node):
    """A node that makes a run four times a second, and sends what is not acknowledged again, as an agent does.

    It makes `most` runs. Nobody tells it which coordinator leads.
    """

    most = 10_000

    async def run(self, url):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(super().run(url))
            await self.known.wait()
            tasks.create_task(self._go_on())

    async def _go_on(self):
        while True:
            await asyncio.sleep(0.25)
            await self.come()
            if self.seq < self.most:
                await self.report("nvml")
            else:
                await self.send_report()


def reporting(leader, *names):
    """A context of such nodes, which the leader knows."""
    return connected(leader, *names, kind=Reporter)
