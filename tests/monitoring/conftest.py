"""A coordinator and two agents, one with a broken device, watched by Prometheus and Alertmanager as the guide says."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from benchmarks.free_ports import free_address
from tests.monitoring.servers import Json, Prometheus, alertmanager, logged, part, prometheus
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
COMPONENT = ROOT / "daemonset" / "components" / "monitoring"
GUIDE = (ROOT / "docs" / "how-to" / "monitoring.md").read_text(encoding="utf-8")
SHOWN = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)]
"""The YAML that the guide shows."""

BROKEN, HEALTHY = "node-1", "node-2"
UNWANTED = ("fabric", "gemm", "host", "kernel_log", "memory", "storage", "training")


@dataclass(frozen=True)
class Watched:
    """The two servers; `coordinator` is where the coordinator listens."""

    prometheus: Prometheus
    alertmanager: str
    coordinator: str


def agent_settings(directory: Path, node: str, listen: str, broker: str) -> Json:
    """An agent that exports all that it measures: of NVML on the broken node, of simulated devices on the other."""
    is_broken = node == BROKEN
    return {
        "node": node,
        "broker": {"url": broker},
        "agent": {
            "listen": listen,
            "token_file": str(directory / "muster-agent-token"),
            "device_metrics": ["all"],
            "rack": "r1",
            "block": "b1",
            "spread_s": 0,
        },
        "checks": {
            "nvml" if is_broken else "simulated": {"interval_s": 1},
            **{check: {"enabled": False} for check in UNWANTED},
        },
        "plugins": {
            "disabled": [] if is_broken else ["nvml"],
            "simulated": {"enabled": not is_broken, "devices": 2},
            **({"nvml": {"pci_root": str(directory)}} if is_broken else {}),
        },
    }


def broken_driver(directory: Path, library: Path) -> dict[str, str]:
    """The variables with which pynvml finds NVML's stub: two devices, of which the first has two faults."""
    state = directory / "nvml-state"
    state.write_text("devices=2\necc_0=2\nxids=0:79\nlinks=2\n", encoding="utf-8")
    return {"LD_LIBRARY_PATH": str(library), "STUB_NVML_STATE": str(state)}


def scrape_settings(directory: Path, coordinator: str, agents: list[str]) -> list[Json]:
    """What the guide shows, with the addresses and the files of this test in their places."""
    targets = {"muster-coordinator": [coordinator], "muster-agent": agents}
    jobs: list[Json] = [
        deepcopy(job) for block in SHOWN if "scrape_configs" in block for job in block["scrape_configs"]
    ]
    assert {job["job_name"] for job in jobs} == targets.keys()
    for job in jobs:
        job["static_configs"] = [{"targets": targets[job["job_name"]]}]
        token = Path(job["authorization"]["credentials_file"])
        job["authorization"]["credentials_file"] = str(directory / token.name)
    return jobs


def rules_without_waiting(directory: Path) -> Path:
    """The rules that come with muster, which fire at once."""
    rules: dict[str, Any] = yaml.safe_load((COMPONENT / "alerts.yaml").read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        rule["for"] = "0s"
    path = directory / "alerts.yaml"
    path.write_text(yaml.safe_dump(rules), encoding="utf-8")
    return path


@pytest.fixture
def promtool(live):
    """Runs promtool. Returns what it has printed."""

    def run(*arguments: str | Path) -> str:
        assert shutil.which("promtool"), "these tests need promtool: apt-get install prometheus"
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture(scope="package")
def watched(nvml_stub, tmp_path_factory) -> Iterator[Watched]:
    """One of each for all tests: the broken node has FAILED, and all was scraped after that."""
    directory = tmp_path_factory.mktemp("watched")
    for name in ("token", "muster-read-token", "muster-agent-token"):
        (directory / name).write_text(f"secret of {name}", encoding="utf-8")
    free = {"listen": "127.0.0.1:0"}
    tokens = {"token_file": str(directory / "token"), "read_token_file": str(directory / "muster-read-token")}
    with contextlib.ExitStack() as running:
        log = running.enter_context(part(directory, "coordinator", {"http": {**free, **tokens}, "broker": free}))
        ready = wait_for(lambda: logged(log, "coordinator_ready"), "the coordinator")
        agents = {node: free_address() for node in (BROKEN, HEALTHY)}
        for node, listen in agents.items():
            more = broken_driver(directory, nvml_stub) if node == BROKEN else {}
            settings = agent_settings(directory, node, listen, ready["broker"])
            running.enter_context(part(directory, "agent", settings, **more))
        (routing,) = (block for block in SHOWN if "route" in block)
        alerts = running.enter_context(alertmanager(directory, routing))
        coordinator = urlsplit(ready["api"]).netloc
        settings = {
            "scrape_configs": scrape_settings(directory, coordinator, [*agents.values()]),
            "rule_files": [str(rules_without_waiting(directory))],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerts]}]}]},
        }
        watching = running.enter_context(prometheus(directory, settings))
        wait_for(lambda: watching.query(f'muster_bad_node{{node="{BROKEN}",health="FAILED"}}'), "the broken node")
        yield Watched(watching, alerts, coordinator)
