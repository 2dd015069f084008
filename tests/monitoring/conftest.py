"""A coordinator and two agents, one with a broken device, watched by Prometheus and Alertmanager as the guide says."""

import contextlib
import re
from collections.abc import Iterator
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

TOKEN = "a-long-secret"
BROKEN, HEALTHY = "node-1", "node-2"
UNWANTED = ("fabric", "gemm", "host", "kernel_log", "memory", "storage", "training")


@dataclass(frozen=True)
class Watched:
    """The two servers; `coordinator` is where the coordinator listens."""

    prometheus: Prometheus
    alertmanager: str
    coordinator: str


def agent_settings(node: str, listen: str, broker: str) -> Json:
    faults = [{"kind": "ecc", "device": 0}] if node == BROKEN else []
    return {
        "node": node,
        "broker": {"url": broker},
        "agent": {"listen": listen, "rack": "r1", "block": "b1"},
        "checks": {"simulated": {"interval_s": 1}, **{check: {"enabled": False} for check in UNWANTED}},
        "plugins": {"disabled": ["nvml"], "simulated": {"enabled": True, "devices": 2, "faults": faults}},
    }


def scrape_settings(directory: Path, coordinator: str, agents: list[str]) -> list[Json]:
    """What the guide shows, with the addresses and the file of this test in their places."""
    (settings,) = (block["scrape_configs"] for block in SHOWN if "scrape_configs" in block)
    for job in settings:
        assert len(job["static_configs"]) == 1
        job["static_configs"][0]["targets"] = [coordinator] if job["job_name"] == "muster-coordinator" else agents
        if "authorization" in job:
            job["authorization"]["credentials_file"] = str(directory / "token")
    return list(settings)


def rules_without_waiting(directory: Path) -> Path:
    """The rules that come with muster, which fire at once."""
    rules: dict[str, Any] = yaml.safe_load((COMPONENT / "alerts.yaml").read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        rule["for"] = "0s"
    path = directory / "alerts.yaml"
    path.write_text(yaml.safe_dump(rules), encoding="utf-8")
    return path


@pytest.fixture(scope="package")
def watched(live, tmp_path_factory) -> Iterator[Watched]:
    """One of each for all tests: the broken node has FAILED, and all was scraped after that."""
    directory = tmp_path_factory.mktemp("watched")
    (directory / "token").write_text(TOKEN, encoding="utf-8")
    (directory / "token").chmod(0o600)
    free = {"listen": "127.0.0.1:0"}
    http = {**free, "token_file": str(directory / "token")}
    with contextlib.ExitStack() as running:
        log = running.enter_context(part(directory, "coordinator", {"http": http, "broker": free}))
        ready = wait_for(lambda: logged(log, "coordinator_ready"), "the coordinator")
        agents = {node: free_address() for node in (BROKEN, HEALTHY)}
        for node, listen in agents.items():
            running.enter_context(part(directory, "agent", agent_settings(node, listen, ready["broker"])))
        receiver = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
        alerts = running.enter_context(alertmanager(directory, receiver))
        coordinator = urlsplit(ready["api"]).netloc
        settings = {
            "scrape_configs": scrape_settings(directory, coordinator, [*agents.values()]),
            "rule_files": [str(rules_without_waiting(directory))],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alerts]}]}]},
        }
        watching = running.enter_context(prometheus(directory, settings))
        wait_for(lambda: watching.query(f'muster_bad_node{{node="{BROKEN}",health="FAILED"}}'), "the broken node")
        yield Watched(watching, alerts, coordinator)
