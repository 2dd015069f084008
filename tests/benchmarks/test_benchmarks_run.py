"""Every benchmark runs, with the least work, and writes what it found. How fast anything is, no test says."""

import json
from pathlib import Path

import pytest
from tests.muster_process import TORCH, Recorded

ROOT = Path(__file__).parent.parent.parent

SMALLEST = {
    # With its first runs spread over a day, the agent imports torch at no time in which it ought to be at rest.
    "agent_at_rest": ["--spread-s", "86400", "--settle-s", "0", "--window-s", "0.1", "--devices", "1"],
    "collective": ["--end", "1M", "--turns", "1", "--iterations", "1", "--warm-up", "0"],
    "gemm": ["--edges", "64", "--tries", "1", "--iterations", "2", "--turns", "1"],
    "overhead": ["--settle-s", "0", "--window-s", "0", "--catch-up-s", "0", "--pairs", "2", "--devices", "1"],
    "result_latency": ["--runs", "2", "--brokers", "embedded"],
    "sweep": [
        *("--agents", "2", "--formations", "1", "--turns", "1", "--warm-up", "0", "--iterations", "1"),
        *("--crowd", "4", "--crowd-turns", "1", "--crowd-work-s", "0"),
    ],
    "fleet_scale": [
        *("--nodes", "2", "--processes", "1", "--settle-s", "0", "--window-s", "1"),
        *("--faults", "1", "--requests", "1", "--sweep-work-s", "0"),
    ],
    "flood": ["--reports", "3", "--floods", "garbage"],
    "intake": ["--reports", "20", "--nodes", "2", "--turns", "1"],
    "localisation": ["--nodes", "16", "--seeds", "1"],
    "quarantine": ["--agents", "2", "--faults", "2", "--nodes", "20", "--broken", "2"],
    "overload": [
        *("--nodes", "10", "--share", "0.5", "--settle-s", "1", "--step-s", "3", "--steps", "2"),
        *("--last-s", "12", "--after-s", "0", "--faults", "1"),
    ],
    "loop_holds": ["--nodes", "3", "--calls", "2"],
    "node_conditions": ["--nodes", "3", "--window-s", "1"],
    "node_list": ["--nodes", "3", "--rounds", "1"],
    "view": [
        *("--nodes", "6", "--live", "5", "--changes", "2", "--viewers", "2", "--paints", "1"),
        *("--settle-s", "0", "--idle-s", "0", "--rounds", "1"),
    ],
    "storage": ["--days", "1", "--hours", "2"],
    "takeover": ["--nodes", "3", "--turns", "1", "--settle-s", "0", "--pause-s", "0"],
    "wire": ["--fleets", "1", "--hours", "1"],
    "quarantine_disk": ["--nodes", "50", "--days", "1", "--percent", "4"],
}

PARTS = {
    "kubernetes_standin",
    "view_table",
    "free_ports",
    "core_share",
    "figures",
    "fleet",
    "flood_sender",
    "intake_publisher",
    "intake_subscriber",
    "lean_member",
    "lean_mqtt",
    "mqtt_packets",
    "overload_samples",
    "panels",
    "private_postgres",
    "prometheus_blocks",
    "prometheus_scrape",
    "quarantine_cluster",
    "quarantine_crowd",
    "quiet_nodes",
    "quarantine_fleet",
    "quarantine_latency",
    "quarantine_storm",
    "scale_agents",
    "scale_database",
    "scale_parts",
    "scale_plot",
    "scale_runs",
    "scale_sweep",
    "scale_template",
    "storage_node",
    "sweep_agents",
    "sweep_crowd",
    "sweep_crowd_agents",
    "sweep_formation",
    "sweep_member",
    "sweep_payload",
    "sweep_rank",
}
"""What the benchmarks are made of."""


NEED_TORCH = {"collective", "gemm", "localisation", "overhead", "sweep"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.torch] if name in NEED_TORCH else []) for name in SMALLEST]
)
def test_it_runs_and_writes_its_figures(name, tmp_path):
    """A table for people on stdout, JSON for programs in the file, the same figures in both."""
    written = tmp_path / "figures.json"
    imports = TORCH if name in NEED_TORCH else ()
    done = Recorded(
        *SMALLEST[name], "--json", str(written), cwd=ROOT, imports=imports, module=f"benchmarks.{name}"
    ).ended(timeout=170)
    assert done.returncode == 0, done.stderr
    document = json.loads(written.read_text(encoding="utf-8"))
    assert document["machine"]["cores"] > 0
    assert document["figures"]
    for figure in document["figures"]:
        assert {"what", "unit", "value", "target", "met", "spread"} == set(figure)
        assert figure["what"] in done.stdout


def test_every_benchmark_is_tried_here():
    """None is left out of the test above."""
    programs = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    packages = {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")}
    assert programs | packages == set(SMALLEST) | PARTS
