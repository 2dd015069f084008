"""The real parts of the scale benchmark: a Mosquitto that can be restarted, a coordinator, and processes of agents."""

import asyncio
import os
import re
import shutil
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from http.client import HTTPConnection
from pathlib import Path

import psutil
from benchmarks.fleet import BYTE_CODE, MOSQUITTO, ROOT, interpreter
from benchmarks.free_ports import free_address
from benchmarks.scale_agents import node_name

from muster.client import Client
from muster.errors import Unavailable
from muster_coordinator.local import processes
from muster_coordinator.local.processes import LocalProcess

POLL_S = 0.1
MIB = 2**20

STATISTICS = "sys_interval 1"
"""Mosquitto counts its bytes on its topics below $SYS this often."""


def sum_of(name: str, metrics: str, **labels: str) -> float:
    """The sum of a metric over all series with these labels, in what Prometheus scrapes."""
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    lines = re.findall(rf"^{name}(?:_total)?(?:{{(.*)}})? (\S+)$", metrics, re.MULTILINE)
    return sum(float(value) for given, value in lines if all(each in given for each in wanted))


class Broker:
    """A Mosquitto on loopback that keeps its port and nothing else over a restart."""

    def __init__(self, directory: Path) -> None:
        self.address = free_address()
        self.url = f"mqtt://{self.address}"
        self._config = directory / "mosquitto.conf"
        settings = MOSQUITTO.format(port=self.address.split(":")[1])
        self._config.write_text(f"{settings}{STATISTICS}\n", encoding="utf-8")
        self.process: Process

    async def start(self) -> None:
        """Starts it, and returns when it listens."""
        program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            raise Unavailable("this benchmark needs Mosquitto: apt-get install mosquitto")
        self.process = await asyncio.create_subprocess_exec(
            program, "-c", self._config, stderr=asyncio.subprocess.DEVNULL
        )
        await until(self._listens, 20)

    async def stop(self) -> None:
        """Ends it in an orderly way, so that it sends all last wills."""
        self.process.terminate()
        await self.process.wait()

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(*self.address.split(":"))
        except OSError:
            return False
        writer.close()
        return True


class Coordinator:
    """A coordinator with SQLite, or with the database at `store_url`, and perhaps other settings."""

    def __init__(
        self, directory: Path, broker: str, store_url: str | None, others: Mapping[str, object] | None = None
    ) -> None:
        self.directory = directory
        self.data_dir = directory / "coordinator"
        self.store_url = store_url
        self._address = free_address()
        self.url = f"http://{self._address}"
        self.client = Client(self.url)
        settings = {
            "data_dir": str(self.data_dir),
            "broker": {"url": broker},
            "http": {"listen": self._address, "trust_loopback": True},
            "log": {"format": "json"},
            **({"store": {"url": store_url}} if store_url else {}),
            **(others or {}),
        }
        self._environment = processes.environment(settings) | BYTE_CODE
        self.part: LocalProcess

    async def start(self) -> None:
        """Starts it, and returns when it answers."""
        with (self.directory / "coordinator.log").open("ab") as log:
            self.part = await processes.start("coordinator", ["coordinator"], self._environment, log)
        await until(self.answers, 120)

    async def stop(self) -> None:
        """Ends it in an orderly way."""
        await processes.stop([self.part])

    @property
    def process(self) -> psutil.Process:
        """The process, to be measured."""
        return psutil.Process(self.part.process.pid)

    async def answers(self) -> bool:
        """Whether it answers. Unavailable if it has ended."""
        if self.part.process.returncode is not None:
            log = (self.directory / "coordinator.log").read_text(encoding="utf-8")
            raise Unavailable(f"the coordinator has ended; the end of its log:\n{log[-2000:]}")
        try:
            await asyncio.to_thread(self.client.get, "fleet")
        except Unavailable:
            return False
        return True

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all series with these labels."""
        return sum_of(name, await asyncio.to_thread(self.metrics_text), **labels)

    def metrics_text(self) -> str:
        """What Prometheus would scrape."""
        with closing(HTTPConnection(self._address, timeout=60)) as connection:
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()


class Crowd:
    """Simulated agents in several processes, which may be kept to some of this host's `cores`."""

    def __init__(self, cores: Sequence[int] | None = None) -> None:
        self.processes: list[Process] = []
        self._prefix = () if cores is None else ("taskset", "--cpu-list", ",".join(map(str, cores)))
        self._size = 0
        self._nodes = 0

    @asynccontextmanager
    async def running(self, nodes: int, count: int, broker: str, template: Path) -> AsyncIterator[None]:
        """Runs `nodes` agents in `count` processes while the context lasts."""
        self._nodes, self._size = nodes, -(-nodes // count)
        async with AsyncExitStack() as stack:
            for first in range(0, nodes, self._size):
                last = min(first + self._size, nodes) - 1
                stack.push_async_callback(_end, await self._start(first, last, broker, template))
            yield

    async def _start(self, first: int, last: int, broker: str, template: Path) -> Process:
        arguments = "-m", "benchmarks.scale_agents", broker, str(template), str(first), str(last)
        command = *self._prefix, *interpreter(*arguments)
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
        self.processes.append(process)
        return process

    async def fail(self, number: int, code: str) -> float:
        """Makes a node report a fault. Returns when it did."""
        return await self.fail_together([number], code)

    async def fail_together(self, numbers: Sequence[int], code: str) -> float:
        """Makes these nodes report a fault at once; all are in the process of the first. Returns when they did."""
        nodes = " ".join(map(node_name, numbers))
        return await _command(self.processes[numbers[0] // self._size], f"fail {code} {nodes}")

    async def set_speed(self, factor: float) -> float:
        """Makes all nodes run their checks `factor` times as often. Returns how many runs they have made so far."""
        return await self._sum(f"speed {factor}")

    async def runs(self) -> float:
        """How many runs all nodes have made so far."""
        return await self._sum("runs")

    async def planned(self) -> float:
        """How many they would have made so far if no coordinator had slowed them down."""
        return await self._sum("planned")

    async def traffic(self) -> tuple[float, float]:
        """How many bytes of MQTT all agents have sent and received so far."""
        return await self._sum("sent"), await self._sum("received")

    async def _sum(self, line: str) -> float:
        return sum(await asyncio.gather(*(_command(process, line) for process in self.processes)))


async def _command(process: Process, line: str) -> float:
    """The answer of a process to a command."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{line}\n".encode())
    return float(await process.stdout.readline())


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def until(condition: Callable[[], Awaitable[bool]], within_s: float, look_s: float = POLL_S) -> float:
    """Waits for a condition. Returns how many seconds it took; Unavailable if it took longer than `within_s`."""
    began = time.monotonic()
    while not await condition():
        if time.monotonic() - began > within_s:
            raise Unavailable(f"{getattr(condition, '__qualname__', condition)} does not hold after {within_s:g} s")
        await asyncio.sleep(look_s)
    return time.monotonic() - began
