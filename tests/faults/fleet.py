"""A fleet of real processes, and what tests ask of it."""

import http.client
import json
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.faults.book import Book
from tests.faults.parts import Agent, Part, counter
from tests.waiting import wait_for

from muster.client import Client
from muster.local_token import find_token

NODES = ("n1", "n2", "n3", "n4")
TIGHT = "n4"
"""The node whose runs may take little memory."""

BACKGROUND = "simulated"
"""The check that every node runs all the time."""

NOTHING_ELSE = {check: {"enabled": False} for check in ("gemm", "memory", "training")}
"""No other check takes the processor from what is tested."""

OF_THIS_HOST = ("cloud", "dmi", "fabric", "host", "kernel_log", "nvml", "storage")
"""Plugins whose checks find what is wrong with the machine that runs the tests."""


class Fleet:
    """Mosquitto, a coordinator and agents, each a real process; the agents run a check every `background_s`."""

    def __init__(
        self, directory: Path, broker: Any, plugin: Path, *, nodes: Sequence[str] = NODES, background_s: float = 2.0
    ) -> None:
        self.broker = broker
        self._directory = directory
        self._plugin = plugin
        self._background_s = background_s
        self._data_dir = directory / "coordinator"
        settings = {
            "data_dir": str(self._data_dir),
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
            "checks": {BACKGROUND: {"interval_s": self._background_s}} | NOTHING_ELSE,
            "plugins": {"disabled": OF_THIS_HOST, "simulated": {"enabled": True, "devices": 1}},
        }
        return Agent(
            "agent", self._directory / f"{node}.log", ours | settings, {"PYTHONPATH": str(self._plugin)} | (env or {})
        )

    def start_coordinator(self) -> None:
        """Starts it and waits until it answers; it keeps its port."""
        self.coordinator.start()
        self.url = self.coordinator.logged("coordinator_ready")["api"]
        self.coordinator.settings["http"] = {"listen": urlsplit(self.url).netloc}
        self.token = find_token(self._data_dir, self.url)
        self.api = Client(self.url, self.token)
        wait_for(lambda: self.ask("GET", "/readyz")[0] == 200, "the coordinator to be ready")

    @property
    def env(self) -> dict[str, str]:
        """Variables with which the command `muster` finds the coordinator and its token."""
        return {"MUSTER_URL": self.url, "MUSTER_DATA_DIR": str(self._data_dir)}

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
            agent.wait_until_ready()
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
            headers = {"Authorization": f"Bearer {self.token}"}
            if body is not None:
                headers["Content-Type"] = "application/json"
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

    def wait_until_stored(self, node: str) -> None:
        """Returns when the coordinator has every run that the node has kept until now."""
        kept = self.agents[node].kept_runs()

        def missing() -> set[str]:
            return kept - {run["id"] for run in self.runs(node)}

        try:
            wait_for(lambda: not missing(), f"the runs of {node}")
        except AssertionError as error:
            agent, coordinator = self.agents[node].text()[-10_000:], self.coordinator.text()[-10_000:]
            state = {"missing": missing(), "health": self.agents[node].health}
            raise AssertionError(f"{error}: {state}\n{node}:\n{agent}\ncoordinator:\n{coordinator}") from None

    # Sweeps

    def start_sweep(self, *nodes: str, check: str = "meeting", strategy: str = "whole", **params: Any) -> str:
        body = {"check": check, "strategy": strategy, "nodes": nodes, "params": params}
        sweep: str = self.api.post("sweeps", body=body)["id"]
        return sweep

    def start_meeting(self, book: Book, *nodes: str, hosts: Sequence[str]) -> str:
        """A sweep with one group, whose ranks have met at one of the hosts and stay together."""
        sweep = self.start_sweep(*nodes, book=str(book), hosts=[*hosts])
        wait_for(lambda: self._have_met(sweep, book, nodes), f"{', '.join(nodes)} to meet")
        return sweep

    def _have_met(self, sweep: str, book: Book, nodes: Iterable[str]) -> bool:
        if all(book.pids(f"met-{node}") for node in nodes):
            return True
        ended = self._if_ended(sweep)
        assert ended is None, f"the sweep ended before its ranks met: {ended}"
        return False

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
