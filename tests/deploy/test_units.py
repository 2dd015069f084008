"""What is installed beside the code: systemd units, the example settings, scripts and the compose file."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from muster.config import Settings, load

ROOT = Path(__file__).parent.parent.parent
UNITS = sorted((ROOT / "systemd").glob("*.service"))
SCRIPTS = [*(ROOT / ".ci").iterdir(), ROOT / "docker" / "accounts"]
MOST_EXPOSURE = {"muster-agent.service": 30, "muster-coordinator.service": 25}
"""Of 100; systemd calls up to 40 OK. That the agent reads the kernel's log and asks the clock has its price."""


@pytest.fixture(params=UNITS, ids=lambda path: path.name)
def unit(request, tmp_path):
    """The unit with a program that is there, since muster itself is not installed where it says."""
    text = request.param.read_text(encoding="utf-8")
    assert "/opt/muster/bin/muster " in text
    path = tmp_path / request.param.name
    path.write_text(text.replace("/opt/muster/bin/muster ", "/bin/true "), encoding="utf-8")
    return path


def test_unit_is_valid(unit):
    """Systemd takes every line."""
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_unit_is_hardened(unit):
    """The exposure that systemd computes stays low."""
    security = ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE[unit.name]}", unit]
    done = subprocess.run(security, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_daemons_are_watched(path):
    """Each notifies systemd when it is ready, has enough time to start, and is restarted when it hangs."""
    text = path.read_text(encoding="utf-8")
    for line in ("Type=notify", "NotifyAccess=main", "Restart=always"):
        assert f"\n{line}\n" in text
    times_s = dict(re.findall(r"^(WatchdogSec|TimeoutStartSec)=(\d+)$", text, re.MULTILINE))
    assert 30 <= int(times_s["WatchdogSec"]) <= 60 <= int(times_s["TimeoutStartSec"])


def test_runs_end_before_the_host_is_out_of_memory():
    """All processes of the agent's unit together are limited, and the agent survives when one of a run is killed."""
    text = (ROOT / "systemd" / "muster-agent.service").read_text(encoding="utf-8")
    for line in ("MemoryMax=75%", "MemorySwapMax=0", "TasksMax=16384", "OOMPolicy=continue"):
        assert f"\n{line}\n" in text


def test_agent_can_reserve_its_node_and_deletes_nobodys_mark():
    """The directory of the leases guide is there for it, and systemd empties it at no restart."""
    text = (ROOT / "systemd" / "muster-agent.service").read_text(encoding="utf-8")
    assert "\nRuntimeDirectory=muster\n" in text
    assert "\nRuntimeDirectoryPreserve=yes\n" in text
    assert 'path = "/run/muster/' in (ROOT / "docs" / "how-to" / "leases.md").read_text(encoding="utf-8")


def test_example_settings_are_valid():
    """The example is accepted as it stands, and so is each of its settings that is commented out."""
    path = ROOT / "systemd" / "muster.toml"
    assert load(path, {}).broker.url == "mqtts://broker.example:8883"
    lines = [line.removeprefix("# ") for line in path.read_text(encoding="utf-8").splitlines()]
    everything = "\n".join(line for line in lines if line.startswith("[") or " = " in line)
    assert Settings.model_validate(tomllib.loads(everything)).checks["gemm"].interval_s == 86400


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts(script):
    """Shellcheck has nothing to say."""
    done = subprocess.run(["shellcheck", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_compose_names_what_is_there():
    """Settings in the compose file exist, mounted files are in the repository, secrets are declared."""
    compose = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))
    for service in compose["services"].values():
        load(None, service.get("environment", {}))
        assert set(service.get("secrets", [])) <= set(compose["secrets"])
        mounted = [volume.split(":")[0] for volume in service.get("volumes", []) if volume.startswith("./")]
        assert [name for name in mounted if not (ROOT / "docker" / name).is_file()] == []
