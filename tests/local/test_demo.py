"""`muster demo` from end to end, as the README has it."""

import json
import signal

import pytest
from benchmarks.free_ports import free_address

from muster.model import Verdict
from muster_coordinator.local.demo_plan import LEAST_NODES_WITH_FAULTS
from muster_coordinator.model.sweep_records import SweepRecord

pytestmark = pytest.mark.torch

DEADLINE_S = 240.0
"""Deadline. On two ordinary cores the demo takes 40 s."""


def test_it_names_exactly_the_nodes_with_a_fault(local, torch_in_agents, tmp_path):
    """With exit code 0, and with what it found as JSON; nothing of it is left. The API is where the settings say."""
    report, config, token = tmp_path / "demo.json", tmp_path / "demo.toml", tmp_path / "token"
    token.write_text("secret")
    listen = free_address()
    config.write_text(f"[http]\nlisten = '{listen}'\ntoken_file = '{token}'\n")
    arguments = ("--nodes", str(LEAST_NODES_WITH_FAULTS), "--json", str(report), "--config", str(config))
    running = local("demo", *arguments, **torch_in_agents)
    assert running.process.wait(DEADLINE_S) == 0, running.text
    assert f"broker and coordinator are up: http://{listen}\n" in running.text
    assert f"the fleet in a browser: http://{listen}/\n" in running.text
    outcome = json.loads(report.read_text())
    assert set(outcome) == {"ok", "injected", "named", "nodes", "sweep", "duration_s"}
    assert (outcome["ok"], set(outcome["named"])) == (True, set(outcome["injected"]))
    by_fault = {fault: outcome["named"][node] for node, fault in outcome["injected"].items()}
    assert "simulated.ecc_uncorrected" in by_fault["gpu"]
    assert "collective.slow" in by_fault["slow_link"]
    assert len(outcome["nodes"]) == LEAST_NODES_WITH_FAULTS
    assert all(device["simulated"] for node in outcome["nodes"] for device in node["devices"])
    sweep = SweepRecord.model_validate(outcome["sweep"])
    assert (sweep.state, sweep.strategy, sweep.verdict) == ("finished", "pairs", Verdict.FAIL)
    assert {failed.node for failed in sweep.failed_nodes} == set(outcome["injected"])
    assert all(
        word in running.text for word in ("SIMULATED", "named exactly the nodes with a fault", *outcome["named"])
    )
    assert not [*tmp_path.glob("muster-*")]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it(local, eventually, nothing_left, number, code):
    """In the middle of it, with all that it has started, and without a traceback."""
    running = local("demo", "--no-faults", "--nodes", "2")
    eventually(lambda: "agents have joined" in running.text, "the agents to join")
    family = running.family()
    assert running.end(number)[0] == code
    nothing_left(family)
    assert "Traceback" not in running.text


def test_too_few_nodes_are_refused(muster, tmp_path):
    """Before anything is started or written."""
    done = muster("demo", "--nodes", "3", env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (64, "")
    assert "needs 6 to 64 nodes" in done.stderr
    assert not [*tmp_path.iterdir()]


def test_settings_that_it_cannot_use_are_refused(muster, tmp_path):
    """Before anything is started or written: nobody expects them to be ignored."""
    config = tmp_path / "muster.toml"
    config.write_text("data_dir = '/var/lib/muster'\n")
    done = muster("demo", "--config", str(config), env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout) == (64, "")
    assert f"--config {config}: the demo makes its own data_dir; use a file without them" in done.stderr
    assert [*tmp_path.iterdir()] == [config]
