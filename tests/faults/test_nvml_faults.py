"""What becomes of a driver that is missing, broken or hangs, seen from the command line and from a running agent."""

import json
from pathlib import Path

import psutil
import pytest
from tests.faults.fleet import NOTHING_ELSE, OF_THIS_HOST

LOADER_PATH = "LD_LIBRARY_PATH"


class Host:
    """A host as `muster` sees it: what stands on its PCI bus and what its NVML says."""

    def __init__(self, directory: Path, library: Path) -> None:
        self.state_file = directory / "state"
        self.pci_root = directory / "pci"
        self.env = {LOADER_PATH: str(library), "STUB_NVML_STATE": str(self.state_file)}

    def say(self, **values: int | str) -> None:
        half = self.state_file.with_suffix(".new")
        half.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        half.replace(self.state_file)

    def plug(self, *addresses: str) -> None:
        for address in addresses:
            entry = self.pci_root / address
            entry.mkdir(parents=True)
            (entry / "vendor").write_text("0x10de\n")
            (entry / "class").write_text("0x030200\n")


@pytest.fixture
def host(tmp_path, nvml_stub):
    """A host with NVML's stub and an empty PCI bus."""
    return Host(tmp_path, nvml_stub)


@pytest.fixture
def bare_host(tmp_path):
    """A host on which NVML cannot be loaded: where the loader looks first is a file that is no library."""
    library = tmp_path / "lib"
    library.mkdir()
    (library / "libnvidia-ml.so.1").write_bytes(b"")
    return Host(tmp_path, library)


@pytest.fixture
def check_nvml(muster, tmp_path):
    """Runs `muster check run nvml --json` on a host; gives the exit code, the verdict and the findings by code."""

    def check(host, *arguments, **env):
        settings = {
            "MUSTER_DATA_DIR": str(tmp_path),
            "MUSTER_PLUGINS__NVML__PCI_ROOT": str(host.pci_root),
            "MUSTER_AGENT__MEMORY_LIMIT_GIB": "4",
            **env,
        }
        done = muster("check", "run", "nvml", "--json", *arguments, env=host.env | settings)
        (run,) = json.loads(done.stdout)["items"]
        return done.returncode, run["verdict"], {finding["code"]: finding for finding in run["findings"]}

    return check


def test_no_gpu_where_none_is_expected_is_skipped(bare_host, check_nvml):
    """Nothing to check is no evidence of anything, and no error of whoever asks."""
    code, verdict, findings = check_nvml(bare_host)
    assert (code, verdict, list(findings)) == (0, "SKIPPED", ["run.skipped"])
    assert findings["run.skipped"]["summary"] == "no GPU here, none expected"


def test_no_library_where_gpus_are_expected_is_unknown(bare_host, check_nvml):
    """Nothing was counted, so none of them is called missing."""
    code, verdict, findings = check_nvml(bare_host, "--expect-gpus", "8")
    assert (code, verdict, list(findings)) == (3, "UNKNOWN", ["nvml.library_missing"])


def test_fewer_gpus_than_expected_fails(host, check_nvml):
    """One that stands on the bus is named by its address, one that does not by its index."""
    host.say(devices=2)
    host.plug("0000:10:00.0", "0000:11:00.0", "0000:12:00.0")
    code, verdict, findings = check_nvml(host, MUSTER_EXPECTED_GPUS="4")
    assert (code, verdict, list(findings)) == (2, "FAIL", ["nvml.devices_missing"])
    assert findings["nvml.devices_missing"]["evidence"]["missing"] == ["0000:12:00.0", "index 3"]
    assert "2 of 4 GPUs: 0000:12:00.0, index 3 missing" in findings["nvml.devices_missing"]["summary"]


def test_a_gpu_without_nvml_is_not_taken_for_healthy(bare_host, check_nvml):
    """There is a device on the bus and nobody can ask it: UNKNOWN, with what to install."""
    bare_host.plug("0000:10:00.0")
    code, verdict, findings = check_nvml(bare_host)
    assert (code, verdict, list(findings)) == (3, "UNKNOWN", ["nvml.library_missing"])
    assert "libnvidia-ml.so.1" in findings["nvml.library_missing"]["summary"]


@pytest.mark.parametrize(
    ("status", "code", "action"),
    [(18, "nvml.version_mismatch", "REBOOT_NODE"), (9, "nvml.driver_not_loaded", "REBOOT_NODE")],
)
def test_a_driver_that_does_not_work_has_a_finding_of_its_own(host, check_nvml, status, code, action):
    """Each kind says what is wrong and what to do."""
    host.say(init=status)
    host.plug("0000:10:00.0")
    exit_code, verdict, findings = check_nvml(host)
    assert (exit_code, verdict, list(findings)) == (3, "UNKNOWN", [code])
    assert findings[code]["action"] == action


def test_a_call_that_hangs_is_given_up_at_its_deadline(host, check_nvml):
    """The command ends and says that the driver does not answer."""
    host.say(devices=1, hang_in="nvmlDeviceGetPowerUsage")
    host.plug("0000:10:00.0")
    code, verdict, findings = check_nvml(host, MUSTER_CHECKS__NVML__TIMEOUT_S="1")
    assert (code, verdict, list(findings)) == (3, "UNKNOWN", ["run.hung"])
    assert "did not answer within 1 s" in findings["run.hung"]["summary"]


def test_a_driver_that_hangs_in_a_running_agent_stops_no_other_check(fleet, host, eventually):
    """Its check is UNKNOWN from then on, other checks pass, and when it answers again so does its own."""
    host.say(devices=1)
    host.plug("0000:10:00.0")
    agent = fleet.agent(
        "with-a-driver",
        env=host.env,
        checks={"nvml": {"interval_s": 0.5, "timeout_s": 1}} | NOTHING_ELSE,
        plugins={
            "disabled": [plugin for plugin in OF_THIS_HOST if plugin != "nvml"],
            "nvml": {"pci_root": str(host.pci_root)},
        },
    )
    agent.start()

    def last():
        return next(iter(fleet.runs("with-a-driver", "nvml")), {"verdict": None})

    try:
        eventually(lambda: last()["verdict"] == "PASS", "the driver to be read")
        host.say(devices=1, hang=1)
        eventually(lambda: last()["verdict"] == "UNKNOWN", "the driver to hang")
        assert [finding["code"] for finding in last()["findings"]] == ["run.hung"]
        assert fleet.run("with-a-driver", "mischief")["verdict"] == "PASS"
        eventually(
            lambda: fleet.run("with-a-driver", "resident_mischief")["verdict"] == "PASS",
            "another check of the resident process to pass",
        )
        host.say(devices=1)
        eventually(lambda: last()["verdict"] == "PASS", "the driver to be read again")
        family = agent.family()
        assert agent.stop() == 0
        eventually(lambda: not any(map(psutil.pid_exists, family)), "its processes to be gone")
    finally:
        if agent.runs:
            agent.kill()
