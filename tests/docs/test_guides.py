"""What README and guides show can be run: every line that ends by itself, against a small fleet on this host."""

import contextlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.muster_process import TORCH, MusterProcess, Recorded
from tests.waiting import wait_for

from muster import plugins
from muster.check import judged_metrics
from muster.client import Client
from muster.config import Config, Settings
from muster.local_token import find_token
from muster.reference_file import read_references
from muster_coordinator.local.processes import environment
from muster_plugins.checks.script.output import read_output

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NOT_IN_THE_BACKGROUND = ("fabric", "gemm", "host", "kernel_log", "memory", "storage", "training")
NEEDS_TORCH = re.compile(r"\b(gemm|collective|inference|training|memory)\b")
RACKS = {"node-1": "r1", "node-2": "r1", "node-3": "r2"}
NODES = tuple(RACKS)

ELSEWHERE = {
    "ansible-playbook": "tests/hosts/test_install.py",
    "helm": "tests/deploy/test_chart.py",
    "kubectl": "tests/deploy/test_examples.py",
    "make": "test_commands.py",
    "muster broker check": "tests/deploy/test_broker_check.py",
    "muster baseline reset": "tests/coordinator/cli/test_baseline.py",
    "muster agent": "tests/agent/test_agent_daemon.py",
    "muster check run --suite quick --send": "tests/coordinator/web/test_acceptance_sent.py",
    "muster check send": "tests/coordinator/web/test_acceptance_sent.py",
    "muster check run script.": "tests/plugins/checks/script/test_check.py",
    "muster coordinator": "tests/coordinator/test_coordinator_daemon.py",
    "muster init --nodes": "tests/deploy/test_init.py",
    "muster init --revoke": "tests/deploy/test_init.py",
    "muster preflight": "tests/agent/acceptance/test_preflight_processes.py",
    "muster node forget": "tests/coordinator/cli/test_quarantine.py",
    "muster quarantine release NODE --untested": "tests/coordinator/cli/test_quarantine.py",
    "muster store backup": "tests/coordinator/store/test_backup.py",
    "muster store copy": "tests/coordinator/store/test_copying.py",
    "muster quarantine unfreeze": "tests/coordinator/quarantine_api/test_deciding.py",
    "muster up": "tests/local/test_up.py",
    "promtool": "tests/monitoring/test_alerts.py",
    "sbatch docs/examples/slurm/preflight.sbatch": "tests/plugins/schedulers/slurm/test_preflight.py",
    "sbatch": "tests/plugins/schedulers/slurm/test_acceptance.py",
    "srun --nodes=5 --ntasks-per-node=1 --exclusive --cpu-bind=none docs/examples/ray/ray-start": (
        "tests/deploy/test_examples_preflight.py"
    ),
    "srun": "tests/plugins/schedulers/slurm/test_acceptance.py",
    "torchrun": "tests/agent/acceptance/test_job_processes.py",
}
"""What is not run here, because it never ends, takes minutes or needs a fleet in trouble, and where it is tested."""

EXIT_CODES = {
    "muster check run --all --expect-gpus 8": 2,
    "muster check run --suite quick --expect-gpus 8 --report-dir reports --report-name gpu-0042": 2,
}
"""Of the lines that are meant to show something wrong; 0 for all others."""

OF_THIS_HOST = ("muster check run --all", "muster check run --suite", "muster doctor")
"""What these find depends on the host that runs the tests: 0 to 3 will do."""

MEASURES_THIS_HOST = "muster sweep start --check collective"
"""Such a sweep measures each pair for about a second. If other work of this host slows down a run, it says UNKNOWN."""
UNKNOWN = 3
SLOWED_DOWN = "it reached too little to exclude a loss"


def blocks(language: str) -> list[str]:
    """The blocks of a language in all documents."""
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    return [block for text in texts for kind, block in BLOCK.findall(text) if kind == language]


def shown() -> list[str]:
    """Every line of every console block, once."""
    return list(dict.fromkeys(line for block in blocks("console") for line in block.splitlines()))


def to_run() -> list[str]:
    commands = [line.removeprefix("$ ") for line in shown()]
    return [line for line in commands if not any(line.startswith(start) for start in ELSEWHERE)]


@dataclass(frozen=True)
class Place:
    """Where the lines are run: a directory with the files that they name, a fleet, a sweep and a run of it."""

    directory: Path
    url: str
    sweep: str
    node_run: str

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        words = {"HOST": "node-1", "NODE": "node-1", "ID": self.sweep, "RUN": self.node_run}
        words["https://muster.example"] = self.url
        _, *arguments = (words.get(word, word) for word in shlex.split(line))
        return command(self.directory, self.url, *arguments)


def command(directory: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = environment({"data_dir": str(directory / "coordinator"), "url": url})
    imports = TORCH if arguments[0] == "check" else ()
    return Recorded(*arguments, env=env, cwd=directory, imports=imports).ended(timeout=120)


@contextlib.contextmanager
def part(directory: Path, name: str, settings: dict[str, Any]) -> Iterator[Path]:
    """Runs `muster coordinator` or, by any other name, an agent; the file that its log goes to."""
    log = directory / f"{name}.log"
    with log.open("wb") as output:
        env = environment({"data_dir": str(directory / name), "log": {"format": "json"}, **settings})
        is_coordinator = name == "coordinator"
        process = MusterProcess(
            "coordinator" if is_coordinator else "agent",
            env=env,
            stderr=output,
            imports=() if is_coordinator else TORCH,
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(20)


def ready(log: Path) -> dict[str, Any] | None:
    """Where the coordinator that writes `log` listens, once it does."""
    text = log.read_text(encoding="utf-8")
    lines = map(json.loads, text[: text.rfind("\n") + 1].splitlines())
    return next((line for line in lines if line["event"] == "coordinator_ready"), None)


def agent_settings(node: str, broker: str) -> dict[str, Any]:
    """An agent with a simulated device that does nothing in the background that a sweep would have to wait for."""
    return {
        "node": node,
        "broker": {"url": broker},
        "agent": {"listen": "127.0.0.1:0", "rack": RACKS[node]},
        "checks": {check: {"enabled": False} for check in NOT_IN_THE_BACKGROUND},
        "plugins": {"disabled": ["nvml"], "simulated": {"enabled": True, "devices": 1}},
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Place]:
    """A coordinator with its own broker and three agents, as real processes on free ports."""
    directory = tmp_path_factory.mktemp("guides")
    for name in ("api-token", "read-token"):
        (directory / name).write_text("any\n")
    files = (("muster.toml", "expected_gpus"), ("weekly.toml", "[suites.weekly]"), ("policy.toml", "codes = ["))
    for name, mark in files:
        (directory / name).write_text(next(block for block in blocks("toml") if mark in block))
    with contextlib.ExitStack() as running:
        free = {"listen": "127.0.0.1:0"}
        log = running.enter_context(part(directory, "coordinator", {"http": free, "broker": free}))
        listening = wait_for(lambda: ready(log), "the coordinator")
        for node in NODES:
            running.enter_context(part(directory, node, agent_settings(node, listening["broker"])))
        client = Client(listening["api"], find_token(directory / "coordinator", listening["api"]))
        wait_for(lambda: sum(bool(it["devices"]) for it in client.get("nodes")["items"]) == len(NODES), "the agents")
        sweep = client.post("sweeps", body={"check": "simulated", "strategy": "single"})["id"]
        wait_for(lambda: client.get("sweeps", sweep)["ended_at"], "the sweep")
        (run, *_) = wait_for(lambda: client.get("runs", node=NODES[0], check="simulated")["items"], "a run")
        wait_for(lambda: "simulated" in client.get("nodes", NODES[0])["checks"], "its verdict")
        yield Place(directory, listening["api"], sweep, run["id"])


def exit_codes(line: str, output: str) -> Collection[int]:
    """The exit codes with which a line that printed `output` may end."""
    if line in EXIT_CODES:
        return [EXIT_CODES[line]]
    if line.startswith(OF_THIS_HOST):
        return range(4)
    return [0, UNKNOWN] if line.startswith(MEASURES_THIS_HOST) and SLOWED_DOWN in output else [0]


@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=[pytest.mark.torch] if NEEDS_TORCH.search(line) else []) for line in to_run()]
)
def test_line_can_be_run(place, line):
    """It ends with the exit code that its document promises, and without a traceback."""
    done = place.run(line)
    assert done.returncode in exit_codes(line, done.stdout), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    if "--json" in line:
        json.loads(done.stdout)


def test_the_references_that_are_shown_are_right(tmp_path):
    """The file of references can be used as it stands."""
    path = tmp_path / "references.toml"
    path.write_text(next(block for block in blocks("toml") if "[[reference]]" in block))
    checks = plugins.collect_checks(plugins.load(Config(Settings())))
    assert len(read_references(path, judged_metrics(checks))) == 2


def test_the_scripts_that_are_shown_are_right():
    """Their tables can be used as they stand where the executables are, and what a script may say is understood."""
    shown_tables = tomllib.loads(next(block for block in blocks("toml") if "plugins.script" in block))
    for table in shown_tables["plugins"]["script"]["checks"].values():
        table["path"] = sys.executable
    checks = plugins.collect_checks(plugins.load(Config(Settings.model_validate(shown_tables))))
    assert {"script.nhc", "script.load"} <= checks.keys()
    said = read_output(next(block for block in blocks("json") if "wear" in block), performance_data=False)
    assert (len(said.metrics), len(said.findings)) == (2, 1)


def test_every_line_is_run_here_or_tested_elsewhere():
    """A console block holds commands only, and each is one of `muster` unless its own tests are named."""
    assert [line for line in shown() if not line.startswith("$ ")] == []
    assert [line for line in to_run() if not line.startswith("muster ")] == []


@pytest.mark.parametrize("lines", [ELSEWHERE, EXIT_CODES, OF_THIS_HOST, [MEASURES_THIS_HOST]])
def test_no_exception_outlives_its_line(lines):
    """What is excepted here still stands in a document."""
    commands = [line.removeprefix("$ ") for line in shown()]
    assert [start for start in lines if not any(line.startswith(start) for line in commands)] == []
