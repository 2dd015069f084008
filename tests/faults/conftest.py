"""A fleet of real processes, Mosquitto between them, that the tests put through bad luck and set right again."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psutil
import pytest

from muster_coordinator.client import Client
from muster_coordinator.local import processes

HERE = Path(__file__).parent
NODES = ("n1", "n2", "n3", "n4")
SIXTEEN = tuple(f"n{number}" for number in range(1, 17))
TIGHT = "n4"
"""The node whose runs may take little memory."""

BACKGROUND = "simulated"
"""The check that every node runs all the time."""

PATIENCE_S = 60.0

T = TypeVar("T")


def wait_for(read: Callable[[], T | None], what: str) -> T:
    """The first true value of `read`."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := read()):
        assert time.monotonic() < deadline, f"waited too long for: {what}"
        time.sleep(0.02)
    return value


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_connected(process: psutil.Process) -> bool:
    try:
        return any(c.status == psutil.CONN_ESTABLISHED for c in process.net_connections("tcp"))
    except psutil.NoSuchProcess:
        return False


class Part:
    """One program of the fleet, started as often as need be. Its log starts anew each time."""

    def __init__(self, command: str, log: Path, settings: dict[str, Any], env: dict[str, str]) -> None:
        self.command = command
        self.settings = settings
        self.past: list[dict[str, Any]] = []
        self._log = log
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.past += self.log() if self._log.exists() else []
        env = processes.environment(self.settings | {"log": {"format": "json"}}) | self._env
        with self._log.open("wb") as log:
            argv = [sys.executable, "-m", "muster", self.command]
            self._process = subprocess.Popen(argv, env=env, stderr=log, stdin=subprocess.DEVNULL)

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """What it has logged since it was started last, or those lines that are of one event."""
        text = self._log.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1].splitlines()
        lines = [json.loads(line) for line in whole if line.startswith("{")]
        return [line for line in lines if event in (None, line.get("event"))]

    def logged(self, event: str) -> dict[str, Any]:
        """The first line of that event, once it is there."""

        def read() -> list[dict[str, Any]]:
            assert self.runs, self._log.read_text()
            return self.log(event)

        return wait_for(read, f"{event} in the log of {self.command}")[0]

    def family(self) -> set[int]:
        """The process and all that it has started."""
        process = psutil.Process(self.pid)
        return {process.pid, *(child.pid for child in process.children(recursive=True))}

    def kill(self) -> None:
        """As if its power went."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """The process does nothing at all while the context lasts."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(20)


class Agent(Part):
    """An agent and its endpoint on loopback."""

    def fetch(self, path: str) -> str:
        with urllib.request.urlopen(self.logged("agent_started")["endpoint"] + path, timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    @property
    def health(self) -> dict[str, Any]:
        health: dict[str, Any] = json.loads(self.fetch("/healthz"))
        return health

    def is_free(self) -> bool:
        """Whether it holds nothing: no run, no lease, no port but its endpoint's, no process but its own three."""
        health = self.health
        idle = health["broker_connected"] and not health["running"] and health["lease_holder"] is None
        listening = [c for c in psutil.Process(self.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        return idle and len(listening) == 1 and len(self.family()) == 3

    def rank_process(self) -> int:
        """The process of the one rank that runs, once it speaks to other ranks: no other child of the launcher does."""
        return wait_for(self._speaker, "a rank to speak to another")

    def _speaker(self) -> int | None:
        (launcher,) = psutil.Process(self.pid).children()
        return next((child.pid for child in launcher.children() if is_connected(child)), None)

    def kept_runs(self) -> set[str]:
        """The ids of all runs that it has put into its outbox, over restarts."""
        return {line["run"] for line in [*self.past, *self.log()] if line.get("event") == "run_ended" and line["kept"]}

    def counter(self, name: str, **labels: str) -> float:
        return counter(self.fetch("/metrics"), name, labels)


def counter(exposition: str, name: str, labels: dict[str, str]) -> float:
    """A value from Prometheus' text format; 0 when it was never counted."""
    told = ",".join(f'{key}="{value}"' for key, value in labels.items())
    found = re.search(rf"^{name}{re.escape(f'{{{told}}}') if told else ''} (\S+)$", exposition, re.MULTILINE)
    return float(found[1]) if found else 0.0


class Fleet:
    """Mosquitto, a coordinator and agents, each a real process; the agents run a check every `background_s`."""

    def __init__(
        self, directory: Path, broker: Any, plugin: Path, *, nodes: Sequence[str] = NODES, background_s: float = 0.5
    ) -> None:
        self.broker = broker
        self._directory = directory
        self._plugin = plugin
        self._background_s = background_s
        settings = {
            "data_dir": str(directory / "coordinator"),
            "broker": {"url": broker.url},
            "http": {"listen": "127.0.0.1:0"},
        }
        self.coordinator = Part("coordinator", directory / "coordinator.log", settings, {})
        self.agents = {node: self.agent(node) for node in nodes}
        self.agents[TIGHT].settings["agent"]["memory_limit_gib"] = 0.25

    def agent(self, node: str, env: dict[str, str] | None = None, **settings: Any) -> Agent:
        """An agent with a simulated device, not started yet; `settings` take the place of ours."""
        ours = {
            "node": node,
            "data_dir": str(self._directory / node),
            "broker": {"url": self.broker.url},
            "agent": {"listen": "127.0.0.1:0"},
            "checks": {
                BACKGROUND: {"interval_s": self._background_s},
                "gemm": {"enabled": False},
                "training": {"enabled": False},
            },
            "plugins": {"disabled": ["nvml"], "simulated": {"enabled": True, "devices": 1}},
        }
        return Agent(
            "agent", self._directory / f"{node}.log", ours | settings, {"PYTHONPATH": str(self._plugin)} | (env or {})
        )

    def start_coordinator(self) -> None:
        """Starts it and waits until it answers; it keeps its port."""
        self.coordinator.start()
        self.url = self.coordinator.logged("coordinator_ready")["api"]
        self.coordinator.settings["http"] = {"listen": urlsplit(self.url).netloc}
        self.api = Client(self.url)
        wait_for(lambda: self.ask("GET", "/readyz")[0] == 200, "the coordinator to be ready")

    def set_right(self) -> None:
        """Starts what does not run, ends what should not, and waits until every node is there and free."""
        if not self.broker.runs:
            self.broker.start()
        if not self.coordinator.runs:
            self.start_coordinator()
        for agent in self.agents.values():
            if not agent.runs:
                agent.start()
        wait_for(lambda: self.ask("GET", "/readyz")[0] == 200, "the coordinator to be ready")
        for node, agent in self.agents.items():
            agent.logged("broker_connected")
            wait_for(partial(self.is_there, node), f"{node} to be there")
        for sweep in self.api.pages("sweeps")["items"]:
            if sweep["ended_at"] is None:
                self.api.delete("sweeps", sweep["id"])
        self.wait_until_free(*self.agents)

    def is_there(self, node: str) -> bool:
        view = next((item for item in self.api.pages("nodes")["items"] if item["name"] == node), None)
        return view is not None and not view["lost"] and bool(view["plugins"])

    def end(self) -> None:
        for part in (self.coordinator, *self.agents.values()):
            if part.runs:
                part.kill()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, str, Any]:
        """Status, content type and JSON of an answer."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=20)
        try:
            headers = {} if body is None else {"Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
            kind = response.getheader("Content-Type", "").partition(";")[0]
            return response.status, kind, json.loads(text) if kind.endswith("json") else text.decode()
        finally:
            connection.close()

    def counter(self, name: str, **labels: str) -> float:
        return counter(self.ask("GET", "/metrics")[2], name, labels)

    # Runs

    def run(self, node: str, check: str, **params: Any) -> dict[str, Any]:
        """Has a check run now; gives the run once it is stored."""
        asked = self.api.post("nodes", node, "runs", body={"check": check, "params": params})["id"]
        return wait_for(lambda: self.find_run(node, check, asked), f"{check} on {node}")

    def find_run(self, node: str, check: str, run: str) -> dict[str, Any] | None:
        return next((item for item in self.runs(node, check) if item["id"] == run), None)

    def runs(self, node: str, check: str | None = None) -> list[dict[str, Any]]:
        """The latest runs, newest first; all that there are when no check is named."""
        if check is not None:
            items: list[dict[str, Any]] = self.api.get("runs", node=node, check=check, limit=50)["items"]
            return items
        items, cursor = [], None
        while True:
            page = self.api.get("runs", node=node, limit=1000, cursor=cursor)
            items += page["items"]
            if (cursor := page["next_cursor"]) is None:
                return items

    # Sweeps

    def start_sweep(self, *nodes: str, check: str = "meeting", strategy: str = "whole", **params: Any) -> str:
        body = {"check": check, "strategy": strategy, "nodes": nodes, "params": params}
        sweep: str = self.api.post("sweeps", body=body)["id"]
        return sweep

    def sweep(self, id: str) -> dict[str, Any]:
        sweep: dict[str, Any] = self.api.get("sweeps", id)
        return sweep

    def ended_sweep(self, id: str) -> dict[str, Any]:
        """The sweep, once it has ended."""
        return wait_for(lambda: self._if_ended(id), f"the end of sweep {id}")

    def _if_ended(self, id: str) -> dict[str, Any] | None:
        sweep = self.sweep(id)
        return None if sweep["ended_at"] is None else sweep

    def wait_until_free(self, *nodes: str) -> None:
        for node in nodes:
            wait_for(self.agents[node].is_free, f"{node} to be free")


class Book:
    """The directory into which the processes of a run write themselves."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def write(self, word: str) -> None:
        (self.path / word).touch()

    def pids(self, word: str = "*") -> set[int]:
        """The processes that have signed with `word`."""
        return {int(entry.suffix[1:]) for entry in self.path.glob(f"{word}.*")}

    def pid(self, word: str) -> int:
        """The one process that signs with `word`, once it has."""
        (pid,) = wait_for(lambda: self.pids(word), f"{word} in the book")
        return pid

    def is_closed(self) -> bool:
        """Whether every process that ever signed is gone."""
        return not any(map(is_alive, self.pids()))


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """An empty book for one test."""
    path = tmp_path / "book"
    path.mkdir()
    return Book(path)


@pytest.fixture(scope="session")
def mischief(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that has, for PYTHONPATH, the plugin that misbehaves and one that cannot even be imported."""
    site = tmp_path_factory.mktemp("mischief")
    shutil.copy(HERE / "muster_mischief.py", site)
    (site / "muster_ruin.py").write_text("raise SystemExit('this plugin ends whoever imports it')\n")
    about = site / "muster_mischief-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: muster-mischief\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[muster]\nmischief = muster_mischief\nruin = muster_ruin\n")
    return site


@pytest.fixture(scope="session")
def the_fleet(
    tmp_path_factory: pytest.TempPathFactory, new_mosquitto: Callable[[], AbstractContextManager[Any]], mischief: Path
) -> Iterator[Fleet]:
    """The one fleet of all tests here; to be had through `fleet`."""
    with new_mosquitto() as broker:
        fleet = Fleet(tmp_path_factory.mktemp("fleet"), broker, mischief)
        yield fleet
        fleet.end()


@pytest.fixture
def fleet(the_fleet: Fleet) -> Fleet:
    """A fleet in which everything runs and every node is free, whatever the test before did to it."""
    the_fleet.set_right()
    return the_fleet


@pytest.fixture(scope="session")
def reservations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which each of the sixteen agents has a file of its node's name for as long as it is leased."""
    return tmp_path_factory.mktemp("reservations")


@pytest.fixture(scope="session")
def sixteen_agents(
    tmp_path_factory: pytest.TempPathFactory,
    new_mosquitto: Callable[[], AbstractContextManager[Any]],
    mischief: Path,
    reservations: Path,
) -> Iterator[Fleet]:
    """A fleet of its own with sixteen agents, which are quiet; to be had through `sixteen`."""
    with new_mosquitto() as broker:
        directory = tmp_path_factory.mktemp("sixteen")
        fleet = Fleet(directory, broker, mischief, nodes=SIXTEEN, background_s=60.0)
        for node, agent in fleet.agents.items():
            agent.settings["plugins"]["reservation_file"] = {"path": str(reservations / node)}
        yield fleet
        fleet.end()


@pytest.fixture
def sixteen(sixteen_agents: Fleet) -> Fleet:
    """As `fleet`, with sixteen agents."""
    sixteen_agents.set_right()
    return sixteen_agents


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """Waits until a condition gives something true, and gives that: `eventually(condition, "what it is")`."""
    return wait_for
