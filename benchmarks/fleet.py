"""What every benchmark starts: a broker, a coordinator and agents, as real processes on this host.

All of them end with the context that they were started in, and when the benchmark is killed.
"""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.free_ports import free_address

from muster.client import Client
from muster.errors import Unavailable
from muster_coordinator.local import processes
from muster_coordinator.local.processes import LocalProcess
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.model.sweep_records import Ending, SweepRecord

READY_WITHIN_S = 60.0
POLL_S = 0.05

ROOT = Path(__file__).parent.parent
NOOP_PLUGIN = ROOT / "benchmarks" / "noop_plugin"

BYTE_CODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""Python keeps its byte code, as it does for an installed package; who compiles at each start takes more memory."""

MOSQUITTO = """
listener {port} 127.0.0.1
allow_anonymous true
max_queued_messages 0
set_tcp_nodelay true
persistence false
"""
"""The settings that muster asks for; with fewer queued messages Mosquitto drops some that it has confirmed."""


class Fleet:
    """A coordinator and agents. Without the URL of a `broker`, the coordinator embeds one.

    Logs and databases go to `directory`, each part's under its own name. `settings` go over those that a coordinator
    needs here, `variables` into its environment.
    """

    def __init__(
        self,
        directory: Path,
        broker: str | None = None,
        *,
        settings: Mapping[str, Any] = MappingProxyType({}),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.parts: dict[str, LocalProcess] = {}
        self.url = f"http://{free_address()}"
        self.client = Client(self.url)
        self._directory = directory
        self._listen = free_address()
        self._broker = broker
        self._settings = settings
        self._variables = variables
        self._stack = ExitStack()

    @property
    def agents(self) -> list[str]:
        """The nodes of the agents that were started here."""
        return [name for name in self.parts if name != "coordinator"]

    @property
    def database(self) -> Path:
        """The coordinator's SQLite file."""
        return self._directory / "coordinator" / "muster.db"

    async def __aenter__(self) -> "Fleet":
        broker = {"listen": self._listen} if self._broker is None else {"url": self._broker}
        own = {"broker": broker, "http": {"listen": self.url.removeprefix("http://"), "trust_loopback": True}}
        await self._start("coordinator", "coordinator", own | dict(self._settings), self._variables)
        await self._until(self._answers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await processes.stop([self.parts[name] for name in self.agents])
        await processes.stop([self.parts["coordinator"]])
        self._stack.close()

    async def start_agents(
        self, *nodes: str, settings: Mapping[str, Any] | None = None, variables: Mapping[str, str] | None = None
    ) -> None:
        """Starts an agent for each node, and returns when the coordinator knows what they are made of.

        `settings` go over those that an agent needs here, `variables` into its environment. The table `agent` need
        not have an address.
        """
        wanted = dict(settings or {})
        wanted["agent"] = {"listen": "127.0.0.1:0"} | wanted.get("agent", {})
        for node in nodes:
            own = {"node": node, "broker": {"url": self._broker or f"mqtt://{self._listen}"}}
            await self._start(node, "agent", own | wanted, variables or {})
        await self.know(nodes)

    async def know(self, nodes: Collection[str]) -> None:
        """Returns when the coordinator knows what these nodes are made of."""
        await self._until(lambda: self._equipped(nodes))

    async def swept(self, **request: Any) -> SweepRecord:
        """The sweep that is asked for, once it has ended; Unavailable unless every group has run to its end.

        What it says of the nodes is no matter here: on a host that all of them share, chance makes some look slow.
        """
        sweep = SweepRecord.model_validate(await asyncio.to_thread(self.client.post, "sweeps", body=request))
        while sweep.ended_at is None:
            await asyncio.sleep(POLL_S)
            sweep = SweepRecord.model_validate(await asyncio.to_thread(self.client.get, "sweeps", sweep.id))
        groups = [group for stage in sweep.rounds for group in stage.groups]
        if not groups or any(group.ending is not Ending.FINISHED for group in groups):
            raise Unavailable(f"a sweep with {sweep.check} ends with {sweep.verdict}: {'; '.join(sweep.notes)}")
        return sweep

    def _equipped(self, nodes: Collection[str]) -> bool:
        views = [NodeView.model_validate(item) for item in self.client.pages("nodes")["items"]]
        return set(nodes) <= {view.name for view in views if view.plugins}

    def _answers(self) -> bool:
        try:
            self.client.get("nodes")
        except Unavailable:
            return False
        return True

    async def _start(self, name: str, command: str, settings: Mapping[str, Any], variables: Mapping[str, str]) -> None:
        everywhere = {"data_dir": str(self._directory / name), "log": {"format": "json"}}
        environment = processes.environment(everywhere | dict(settings)) | BYTE_CODE | dict(variables)
        log = self._stack.enter_context((self._directory / f"{name}.log").open("ab"))
        self.parts[name] = await processes.start(name, [command], environment, log)

    async def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while not await asyncio.to_thread(condition):
            for part in self.parts.values():
                if part.process.returncode is not None or time.monotonic() > deadline:
                    log = self._directory / f"{part.name}.log"
                    raise Unavailable(f"{part.name} is not ready; the end of its log:\n{log.read_text()[-2000:]}")
            await asyncio.sleep(POLL_S)


@asynccontextmanager
async def mosquitto(directory: Path) -> AsyncIterator[str]:
    """A Mosquitto on loopback, and its URL."""
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        raise Unavailable("these benchmarks need Mosquitto: apt-get install mosquitto")
    host, port = free_address().split(":")
    config = directory / "mosquitto.conf"
    config.write_text(MOSQUITTO.format(port=port), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(program, "-c", config, stderr=asyncio.subprocess.DEVNULL)
    try:
        await _listens(host, int(port), process)
        yield f"mqtt://{host}:{port}"
    finally:
        process.terminate()
        await process.wait()


async def _listens(host: str, port: int, process: asyncio.subprocess.Process) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            if process.returncode is not None:
                raise Unavailable(f"Mosquitto ended with exit code {process.returncode}") from None
            await asyncio.sleep(POLL_S)
        else:
            writer.close()
            return


def install_noop_plugin(site: Path) -> dict[str, str]:
    """Lays the plugin `noop` out as `install_plugin` does."""
    return install_plugin(NOOP_PLUGIN / "muster_noop.py", site)


def install_plugin(module: Path, site: Path) -> dict[str, str]:
    """Lays a plugin out in `site` as pip would, and gives the environment variables with which it is found.

    `module` is the file muster_<name>.py, which is all of it.
    """
    name = module.stem.removeprefix("muster_")
    shutil.copy(module, site)
    information = site / f"{module.stem}-1.0.dist-info"
    information.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: muster-{name}\nVersion: 1.0\n"
    (information / "METADATA").write_text(metadata, encoding="utf-8")
    (information / "entry_points.txt").write_text(f"[muster]\n{name} = {module.stem}\n", encoding="utf-8")
    return {"PYTHONPATH": str(site)}


def interpreter(*arguments: str) -> list[str]:
    """The command line of a Python program of this project."""
    return [sys.executable, *arguments]
