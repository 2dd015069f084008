"""What all walks share: the command line in processes of its own, and verdicts on what GPUs would have measured."""

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from benchmarks.free_ports import free_port
from tests.muster_process import TORCH, Recorded

from muster.check import AnyCheck
from muster.config import Config, Settings
from muster.model import Json, Measurement, Metric
from muster.plugins import collect_checks, load
from muster.references import Reference, applicable, shipped
from muster_coordinator.local import processes

PATIENCE_S = 90.0


@dataclass(frozen=True)
class Ended:
    """What a command line came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """What it printed with --json."""
        return json.loads(self.out)

    def runs(self, check: str) -> list[Json]:
        """The runs of a check, of a printed report or list of runs."""
        assert self.out, self.err
        told = self.document
        listed = told["items"] if "items" in told else [run for step in told["steps"] for run in step["runs"]]
        return [run for run in listed if run["check"] == check]


class Started:
    """A command line at work; `settings` are nested as in the settings file."""

    def __init__(self, *arguments: str, settings: Json, environment: dict[str, str]) -> None:
        told = {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
        around = {"CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        env = processes.environment(told) | around | environment
        self._process = Recorded(*arguments, env=env, imports=TORCH)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def ended(self) -> Ended:
        """What it comes to by itself."""
        done = self._process.ended(PATIENCE_S)
        return Ended(done.returncode, done.stdout, done.stderr)

    def terminated(self) -> Ended:
        """What it comes to when it is asked to end."""
        self._process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        self._process.drop()


Start = Callable[..., Started]
Judge = Callable[..., list[tuple[str, str]]]


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """Starts a command line beside others: `start("check", "run", "gemm", settings={…}, RANK="0")`.

    Those that are still at work at the end are killed.
    """
    started: list[Started] = []

    def begin(*arguments: str, settings: Json | None = None, **environment: str) -> Started:
        started.append(Started(*arguments, settings=settings or {}, environment=environment))
        return started[-1]

    yield begin
    for each in started:
        each.kill()


@pytest.fixture(scope="module")
def command(start: Start) -> Callable[..., Ended]:
    """Runs a command line to its end."""
    return lambda *arguments, **around: start(*arguments, **around).ended()


@pytest.fixture(scope="session")
def simulated() -> Callable[..., Json]:
    """The table of a node with simulated devices, `simulated(2, {"kind": "ecc"})`: how many, and their faults."""
    return lambda devices, *faults: {"simulated": {"enabled": True, "devices": devices, "faults": list(faults)}}


@pytest.fixture(scope="module")
def job(start: Start) -> Callable[..., list[Ended]]:
    """Runs a suite by a job of several processes, each a node with settings of its own, as an operator starts them."""

    def run(steps: list[Json], nodes: list[Json], **environment: str) -> list[Ended]:
        around = {"WORLD_SIZE": str(len(nodes)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        suite: Json = {"suites": {"walk": {"steps": [*steps]}}}
        command = ("check", "run", "--suite", "walk", "--json")
        members = [
            start(*command, settings={"node": f"node-{rank}", **suite, **node}, RANK=str(rank), **around, **environment)
            for rank, node in enumerate(nodes)
        ]
        return [member.ended() for member in members]

    return run


@pytest.fixture(scope="session")
def checks() -> dict[str, AnyCheck]:
    """All checks that come with muster, by name."""
    return collect_checks(load(Config(Settings())))


@pytest.fixture(scope="session")
def judge(checks: dict[str, AnyCheck]) -> Judge:
    """Code and severity of what a check finds in a measurement, by muster's references and `own` of an operator."""

    def judged(check: str, metrics: dict[str, Metric], facts: Json, *own: Reference) -> list[tuple[str, str]]:
        measurement = Measurement(metrics=metrics, facts=facts)
        found = checks[check].judge(measurement, applicable([*shipped(), *own], check, facts))
        return [(finding.code, finding.severity) for finding in found]

    return judged


@pytest.fixture(scope="session")
def root() -> Path:
    """Where the project lies."""
    return Path(__file__).parent.parent.parent
