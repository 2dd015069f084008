"""The check `host` as a whole."""

import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from muster import Config, Context, Device, Measurement, Skip
from muster.config import Settings
from muster.errors import SettingsError
from muster.references import applicable, shipped
from muster_plugins.checks.host import check as host
from muster_plugins.checks.host.check import judge, measure
from muster_plugins.checks.host.look import CannotDetermine, HostLook, NotApplicable
from muster_plugins.shared.no_params import NoParams


def here(*devices: Device, expected_gpus: int | None = None) -> Context:
    """A run's surroundings."""
    return cast("Context", SimpleNamespace(devices=devices, expected_gpus=expected_gpus))


def check_of(**table):
    (check,) = host.muster_checks(Config(Settings.model_validate({"plugins": {"host": table}})))
    return check


def findings(measurement: Measurement):
    return judge(measurement, applicable(shipped(), "host", measurement.facts))


def raising(error: Exception) -> HostLook:
    def look(context):
        raise error

    return look


def test_a_look_that_fails_does_not_keep_the_others_from_looking():
    """Results of other looks stand, unknown ones are UNKNOWN, and absent ones SKIPPED; all by name."""
    looks: Mapping[str, HostLook] = {
        "disk": lambda context: Measurement(metrics={"zombies": 1.0}, facts={"memlock_bytes": 5}),
        "clock": raising(CannotDetermine("adjtimex: Operation not permitted")),
        "sensor": raising(OSError(5, "Input/output error")),
        "governor": raising(NotApplicable("a virtual machine")),
    }
    measurement = measure(looks, NoParams(), here())
    assert measurement.metrics == {"zombies": 1.0}
    assert [(each.code, each.severity) for each in findings(measurement)] == [
        ("host.memlock", "WARNING"),
        ("host.unknown", "UNKNOWN"),
        ("host.not_here", "SKIPPED"),
    ]
    _, unknown, skipped = findings(measurement)
    assert unknown.evidence["listed"] == [
        "clock (adjtimex: Operation not permitted)",
        "sensor ([Errno 5] Input/output error)",
    ]
    assert skipped.summary == "not examined: governor (a virtual machine)"


def test_the_machine_that_runs_a_simulated_node_is_not_looked_at():
    """The host of a simulated node is not part of the fleet."""
    device = Device(index=0, uuid="GPU-0", model="simulated", simulated=True)
    with pytest.raises(Skip, match="simulated"):
        check_of().measure(NoParams(), here(device))


def test_this_machine_can_be_looked_at_twice():
    """Every look works on a real /proc and /sys: nothing is UNKNOWN, and the facts can be judged again."""
    check = check_of()
    for _ in range(2):
        measurement = check.measure(NoParams(), here())
    again = Measurement.model_validate_json(measurement.model_dump_json())
    found = findings(again)
    assert {each.code for each in found} <= set(host.FINDS)
    assert "host.unknown" not in {each.code for each in found}
    assert set(measurement.metrics) >= {"disk_available_share", "memory_available_share", "zombies", "clock_offset_s"}


def test_every_judged_metric_has_a_reference():
    """Every metric that the check lists as judged has a reference."""
    assert set(check_of().judged) == set(applicable(shipped(), "host", {}))


def test_a_host_of_which_nothing_can_be_read_is_unknown(tmp_path):
    """Every look reports that it cannot read, and none counts that as healthy."""
    check = check_of(
        proc=str(tmp_path),
        sys=str(tmp_path),
        shm=str(tmp_path / "shm"),
        systemctl=str(tmp_path / "systemctl"),
        services=["nvidia-fabricmanager.service"],
        known_runtimes=[],
    )
    (unknown,) = (each for each in findings(check.measure(NoParams(), here(expected_gpus=8))) if "unkn" in each.code)
    named = {each.partition(" (")[0] for each in unknown.evidence["listed"]}
    assert named == {
        "file systems",
        "memory",
        "shared memory",
        "processes",
        "file handles",
        "kernel modules",
        "services",
    }


@pytest.mark.usefixtures("live")
def test_an_agent_that_is_not_root_can_look():
    """No look needs a file that only root can read."""
    script = (
        "import os\n"
        "from types import SimpleNamespace\n"
        "from muster import Config\n"
        "from muster.config import Settings\n"
        "from muster_plugins.checks.host import check as host\n"
        "from muster_plugins.shared.no_params import NoParams\n"
        "(check,) = host.muster_checks(Config(Settings()))\n"
        "here = SimpleNamespace(devices=(), expected_gpus=None)\n"
        "check.measure(NoParams(), here)  # what Python loads late may be out of reach afterwards\n"
        "if os.geteuid() == 0:\n"
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "measurement = check.measure(NoParams(), here)\n"
        "print(os.geteuid() != 0, measurement.facts['unknown'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "True {}\n"


@pytest.mark.parametrize(
    ("table", "message"),
    [({"mounts": "/"}, "mounts"), ({"systemctl": 5}, "systemctl"), ({"swap": True}, "swap")],
)
def test_wrong_settings_are_refused(table, message):
    """With the key that is wrong."""
    config = Config(Settings.model_validate({"plugins": {"host": table}}))
    with pytest.raises(SettingsError, match=message):
        host.muster_configure(config)
