"""Prometheus and Alertmanager from Debian, and the parts of muster that they watch, each on its own port."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml
from benchmarks.free_ports import free_address
from tests.muster_process import MusterProcess
from tests.waiting import wait_for

from muster_coordinator.local.processes import environment

Json = dict[str, Any]

EVERY = "250ms"
"""How often Prometheus scrapes and evaluates here, so that no test waits long."""


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    address: str

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        with urlopen(f"http://{self.address}/api/v1/{path}?{urlencode(parameters)}", timeout=20) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def query(self, expression: str) -> list[Json]:
        """The series that an expression has now."""
        result: list[Json] = self.get("query", query=expression)["result"]
        return result

    def value(self, expression: str) -> float | None:
        """The value of the only series of an expression; None if there is none."""
        series = self.query(expression)
        return float(series[0]["value"][1]) if series else None


@contextlib.contextmanager
def server(directory: Path, name: str, *arguments: str) -> Iterator[None]:
    """Runs a server with its log in a file. It has the name of its package."""
    assert shutil.which(name), f"these tests need {name}: apt-get install {name}"
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([name, *arguments], stdout=log, stderr=subprocess.STDOUT, cwd=directory)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def prometheus(directory: Path, settings: Json) -> Iterator[Prometheus]:
    """Runs Prometheus with these settings."""
    config, address = directory / "prometheus.yml", free_address()
    every = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY}
    config.write_text(yaml.safe_dump({"global": every, **settings}), encoding="utf-8")
    options = (f"--config.file={config}", f"--storage.tsdb.path={directory / 'series'}")
    with server(directory, "prometheus", *options, f"--web.listen-address={address}"):
        wait_for(lambda: is_ready(address), "Prometheus")
        yield Prometheus(address)


@contextlib.contextmanager
def alertmanager(directory: Path, settings: Json) -> Iterator[str]:
    """Runs Alertmanager with these settings; its address."""
    config, address = directory / "alertmanager.yml", free_address()
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    options = (f"--config.file={config}", f"--storage.path={directory / 'alerts'}", "--cluster.listen-address=")
    with server(directory, "prometheus-alertmanager", *options, f"--web.listen-address={address}"):
        wait_for(lambda: is_ready(address), "Alertmanager")
        yield address


def is_ready(address: str) -> bool:
    """Whether the server there says that it is ready."""
    try:
        with urlopen(f"http://{address}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextlib.contextmanager
def part(directory: Path, program: str, settings: Json, **more: str) -> Iterator[Path]:
    """Runs `muster coordinator` or `muster agent`; the file that its log goes to. `more` are variables of the loader.

    With these, it is started anew: a forked interpreter would not follow them.
    """
    name = settings.get("node", program)
    log = directory / f"{name}.log"
    env = environment({"data_dir": str(directory / name), "log": {"format": "json"}, **settings}) | more
    with log.open("wb") as output:
        process = (
            subprocess.Popen([sys.executable, "-m", "muster", program], env=env, stderr=output)
            if more
            else MusterProcess(program, env=env, stderr=output)
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(20)


def logged(log: Path, event: str) -> Json | None:
    """The first line of a log with this event."""
    text = log.read_text(encoding="utf-8")
    lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
    return next((line for line in lines if line["event"] == event), None)
