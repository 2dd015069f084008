"""The programs of a fleet as processes, and what tests want to know of any process."""

import json
import os
import re
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from tests.muster_process import AnyProcess, start_muster
from tests.waiting import wait_for

from muster_coordinator.local import processes


def is_connected(process: psutil.Process) -> bool:
    try:
        return any(c.status == psutil.CONN_ESTABLISHED for c in process.net_connections("tcp"))
    except psutil.NoSuchProcess:
        return False


class Part:
    """One program of the fleet, started as often as need be. Its log starts anew each time."""

    imports: tuple[str, ...] = ()
    """What its runs need not import any more."""

    def __init__(self, command: str, log: Path, settings: dict[str, Any], env: dict[str, str]) -> None:
        self.command = command
        self.settings = settings
        self.past: list[dict[str, Any]] = []
        self._log = log
        self.env = env
        self._process: AnyProcess | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        self.past += self.log() if self._log.exists() else []
        env = processes.environment(self.settings | {"log": {"format": "json"}}) | self.env
        with self._log.open("wb") as log:
            self._process = start_muster(self.command, env=env, stderr=log, imports=self.imports)

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def text(self) -> str:
        """All that it has written since it was started last."""
        return self._log.read_text(encoding="utf-8")

    def log(self, event: str | None = None) -> list[dict[str, Any]]:
        """What it has logged since it was started last, or those lines that are of one event."""
        text = self.text()
        whole = text[: text.rfind("\n") + 1].splitlines()
        lines = [json.loads(line) for line in whole if line.startswith("{")]
        return [line for line in lines if event in (None, line.get("event"))]

    def logged(self, event: str) -> dict[str, Any]:
        """The first line of that event, once it is there."""

        def read() -> list[dict[str, Any]]:
            assert self.runs, self.text()
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

    def wait_until_ready(self) -> None:
        """Returns when it is connected and knows its devices; before, groups take it for busy."""
        self.logged("broker_connected")
        self.logged("devices_found")

    @property
    def health(self) -> dict[str, Any]:
        health: dict[str, Any] = json.loads(self.fetch("/healthz"))
        return health

    def is_free(self) -> bool:
        """Whether it holds nothing: no run, no lease, no port but its endpoint's, no process but its own three."""
        health = self.health
        idle = health["broker_connected"] and not health["running"] and health["lease_holder"] is None
        return idle and len(self.family()) == 3 and self._listens_once()

    def _listens_once(self) -> bool:
        # The kernel looks through all that its table of connections has room for: 10 ms.
        connections = psutil.Process(self.pid).net_connections("tcp")
        return sum(each.status == psutil.CONN_LISTEN for each in connections) == 1

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
