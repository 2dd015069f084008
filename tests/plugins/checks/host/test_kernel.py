"""What the check `host` makes of the kernel."""

import pytest
from tests.plugins.checks.host.looking import GPUS, NONE, here, judged, write

from muster_plugins.checks.host import kernel as host_kernel
from muster_plugins.checks.host.look import CannotDetermine, NotApplicable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000\t0\t9223372036854775807\n", {}),
        ("75 0 100\n", {"host.file_handles": "WARNING"}),
        ("95 0 100\n", {"host.file_handles": "ERROR"}),
    ],
)
def test_file_handles(tmp_path, text, expected):
    """The share of what the kernel hands out."""
    write(tmp_path / "sys/fs/file-nr", text)
    assert judged(host_kernel, host_kernel.file_handles(tmp_path, NONE)) == expected


@pytest.mark.parametrize("text", ["", "1 2\n", "1 0 0\n", "a b c\n", f"{10**400} 0 1\n"])
def test_file_handles_that_cannot_be_told(tmp_path, text):
    """A file that says something else is no number."""
    write(tmp_path / "sys/fs/file-nr", text)
    with pytest.raises(CannotDetermine):
        host_kernel.file_handles(tmp_path, NONE)


def test_the_governor_of_every_cpu_is_looked_at_where_gpus_are(tmp_path):
    """One CPU of another governor is found; a machine without frequency drivers has none."""
    with pytest.raises(NotApplicable, match="no CPU frequency driver"):
        host_kernel.governors(tmp_path, "performance", GPUS)
    for cpu, governor in enumerate(["performance", "performance", "powersave"]):
        write(tmp_path / f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", governor + "\n")
    with pytest.raises(NotApplicable, match="no GPU"):
        host_kernel.governors(tmp_path, "performance", NONE)
    measurement = host_kernel.governors(tmp_path, "performance", GPUS)
    assert measurement.facts["governors"] == {"performance": 2, "powersave": 1}
    assert judged(host_kernel, measurement) == {"host.governor": "WARNING"}
    assert judged(host_kernel, host_kernel.governors(tmp_path, "powersave", GPUS)) == {"host.governor": "WARNING"}
    assert judged(host_kernel, host_kernel.governors(tmp_path, None, GPUS)) == {}
    write(tmp_path / "devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n")
    assert judged(host_kernel, host_kernel.governors(tmp_path, "performance", GPUS)) == {}


@pytest.mark.parametrize(
    ("loaded", "wanted", "context", "missing"),
    [
        (["nvidia"], None, here(expected_gpus=8), []),
        ([], None, here(expected_gpus=8), ["nvidia"]),
        (["nvidia_peermem"], ["nvidia-peermem"], NONE, []),
        (["nvidia"], ["nvidia_peermem"], NONE, ["nvidia_peermem"]),
        ([], [], GPUS, []),
    ],
)
def test_kernel_modules(tmp_path, loaded, wanted, context, missing):
    """What the settings name, or the driver where GPUs must be and none is seen."""
    (tmp_path / "module").mkdir()
    for name in loaded:
        (tmp_path / "module" / name).mkdir()
    measurement = host_kernel.modules(tmp_path, wanted, context)
    assert measurement.facts == {"modules_missing": missing}
    assert judged(host_kernel, measurement) == ({"host.module_missing": "ERROR"} if missing else {})


def test_a_gpu_on_the_bus_is_a_gpu(tmp_path):
    """Also when the driver, and with it the inventory, knows nothing of it."""
    (tmp_path / "module").mkdir()
    write(tmp_path / "bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n")
    with pytest.raises(NotApplicable):
        host_kernel.modules(tmp_path, None, NONE)
    write(tmp_path / "bus/pci/devices/0000:3b:00.0/class", "0x030200\n")
    assert host_kernel.modules(tmp_path, None, NONE).facts == {"modules_missing": ["nvidia"]}


def test_modules_cannot_be_told_without_their_folder(tmp_path):
    """A sysfs that is not there shows no module, and says nothing of any."""
    with pytest.raises(CannotDetermine):
        host_kernel.modules(tmp_path, None, here(expected_gpus=8))


def test_a_driver_that_shows_devices_is_loaded(tmp_path):
    """Whatever it is called, as in a sandbox or below Windows."""
    (tmp_path / "module").mkdir()
    with pytest.raises(NotApplicable, match="the driver answers"):
        host_kernel.modules(tmp_path, None, GPUS)
