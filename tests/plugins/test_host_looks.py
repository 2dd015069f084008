"""What the check `host` looks at, each look for itself. The trees that stand in for /proc and /sys are synthetic."""

import ctypes
import os
import resource
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from muster import Context, Device, Measurement
from muster.references import applicable, shipped
from muster_plugins.host import clock as host_clock
from muster_plugins.host import file_systems as host_file_systems
from muster_plugins.host import kernel as host_kernel
from muster_plugins.host import memory as host_memory
from muster_plugins.host import processes as host_processes
from muster_plugins.host import services as host_services
from muster_plugins.host.file_systems import FileSystems, FileSystemsReading, Mount, mounts, writable_by_fstab
from muster_plugins.host.look import CannotTell, NotHere
from muster_plugins.host.processes import DRIVER_NAMES, Processes, ProcessesReading


def here(*devices: Device, expected_gpus: int | None = None) -> Context:
    """A run's surroundings."""
    return cast("Context", SimpleNamespace(devices=devices, expected_gpus=expected_gpus))


GPUS = here(Device(index=0, uuid="GPU-0", model="NVIDIA H200"))
NONE = here()


def judged(part, measurement: Measurement) -> dict[str, str]:
    """By code, the severity of what `part` finds with shipped references."""
    found = part.judge(measurement, applicable(shipped(), "host", measurement.facts))
    assert {each.code for each in found} <= set(part.FINDS)
    return {each.code: each.severity for each in found}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# File systems


class Disks:
    """A look at file systems whose mounts are what the test says."""

    def __init__(self, root: Path, *paths: Path, fstab: str | None = None) -> None:
        self._root = root
        if fstab is not None:
            write(root / "fstab", fstab)
        self._look = FileSystems(paths, root / "proc", root / "fstab")

    def look(self, mounted: str = "") -> Measurement:
        write(self._root / "proc/1/mountinfo", mounted)
        return self._look(NONE)

    def found(self, mounted: str = "") -> dict[str, str]:
        return judged(host_file_systems, self.look(mounted))


def reading_of(measurement: Measurement) -> FileSystemsReading:
    return FileSystemsReading.model_validate(measurement.facts["file_systems"])


def test_space_and_inodes_of_a_real_file_system(tmp_path):
    """As shares of the whole, of what others than root may use."""
    real = os.statvfs(tmp_path)
    metrics = Disks(tmp_path, tmp_path).look().metrics
    assert metrics["disk_available_share"] == pytest.approx(real.f_bavail / real.f_blocks, abs=0.05)


@pytest.mark.parametrize(
    ("available", "inodes", "expected"),
    [
        (0.5, 0.5, {}),
        (0.09, 0.5, {"host.disk_full": "WARNING"}),
        (0.02, 0.5, {"host.disk_full": "ERROR"}),
        (0.5, 0.04, {"host.inodes_low": "WARNING"}),
        (0.5, 0.01, {"host.inodes_low": "ERROR"}),
        (0.5, None, {}),
    ],
)
def test_judgement_of_space(available, inodes, expected):
    """As kubelet evicts and the node mixin alerts; a file system without inodes has none to run out of."""
    space = {"path": "/data", "available_share": available, "inodes_free_share": inodes}
    measurement = Measurement(facts={"file_systems": {"spaces": [space]}})
    assert judged(host_file_systems, measurement) == expected
    for each in host_file_systems.judge(measurement, applicable(shipped(), "host", {})):
        assert each.evidence["path"] == "/data"


def test_an_image_is_always_full(tmp_path, monkeypatch):
    """Systems that are started from a squashfs have no space on / and need none; nor do those without blocks."""
    flag, most = os.ST_RDONLY, 255
    image = os.statvfs_result((4096, 4096, 1000, 0, 0, 500, 0, 0, flag, most))
    monkeypatch.setattr(os, "statvfs", lambda path: image)
    assert Disks(tmp_path, tmp_path).look().metrics == {}
    assert Disks(tmp_path, tmp_path).found() == {}
    full = os.statvfs_result((4096, 4096, 1000, 0, 0, 500, 100, 100, 0, most))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    assert Disks(tmp_path, tmp_path).found() == {"host.disk_full": "ERROR"}


def test_a_path_that_is_not_there_is_a_fault(tmp_path):
    """The settings say that it must be."""
    disks = Disks(tmp_path, tmp_path / "data")
    assert disks.found() == {"host.mount_unusable": "ERROR"}
    assert reading_of(disks.look()).unusable == (f"{tmp_path / 'data'} (No such file or directory)",)


def test_a_path_that_may_not_be_asked_about_is_unknown(tmp_path, monkeypatch):
    """An agent that is not root cannot tell."""

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "statvfs", refuse)
    assert Disks(tmp_path, tmp_path).found() == {"host.mount_refused": "UNKNOWN"}


def test_a_mount_that_hangs_is_found_and_asked_only_once(tmp_path, monkeypatch):
    """A dead file server holds one thread, not one more with every look, and not the other file systems."""
    server_is_back = threading.Event()
    real, asked = os.statvfs, []

    def statvfs(path):
        if path == tmp_path / "nfs":
            asked.append(path)
            server_is_back.wait()
            return real(tmp_path)
        return real(path)

    monkeypatch.setattr(os, "statvfs", statvfs)
    monkeypatch.setattr(host_file_systems, "ANSWER_S", 0.2)
    disks = Disks(tmp_path, tmp_path / "nfs", tmp_path)
    for _ in range(3):
        measurement = disks.look()
        assert judged(host_file_systems, measurement) == {"host.mount_hangs": "ERROR"}
        assert [space.path for space in reading_of(measurement).spaces] == [str(tmp_path)]
    assert len(asked) == 1
    (hanging,) = [thread for thread in threading.enumerate() if thread.name == f"statvfs {tmp_path / 'nfs'}"]
    server_is_back.set()
    hanging.join(60)
    assert disks.found() == {}


ROOT_RW = "27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
ROOT_RO = "27 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 ro,errors=remount-ro\n"
PROTECTED = "27 1 8:1 / / ro,relatime - ext4 /dev/sda1 rw,errors=remount-ro\n"
IMAGE = "28 27 7:0 / /snap/core ro,nodev shared:2 - squashfs /dev/loop0 ro\n"
DISC = "29 27 11:0 / /media/cdrom ro - iso9660 /dev/sr0 ro\n"
OVERLAY = "30 1 0:50 / / {0} - overlay overlay {0}\n"
EMERGENCY = "27 1 8:1 / / rw - ext4 /dev/sda1 rw,emergency_ro\n"


@pytest.mark.parametrize(
    ("looks", "fstab", "expected"),
    [
        ([ROOT_RW + IMAGE], "UUID=1 / ext4 defaults 0 1\n", {}),
        ([ROOT_RO], "UUID=1 / ext4 defaults,errors=remount-ro 0 1\n", {"host.read_only": "ERROR"}),
        ([ROOT_RO], "UUID=1 / ext4 ro 0 1\n", {}),
        ([ROOT_RO], None, {}),
        ([ROOT_RW, ROOT_RO], None, {"host.read_only": "ERROR"}),
        ([ROOT_RW, ROOT_RO, ROOT_RO], None, {"host.read_only": "ERROR"}),
        ([ROOT_RW, ROOT_RO, ROOT_RW], None, {}),
        ([ROOT_RW, "", ROOT_RO], None, {}),
        ([ROOT_RW, PROTECTED], "UUID=1 / ext4 defaults 0 1\n", {}),
        ([ROOT_RO], "UUID=1 / ext4 noauto 0 1\n", {}),
        ([DISC], "/dev/sr0 /media/cdrom udf,iso9660 user 0 0\n", {}),
        ([EMERGENCY], None, {"host.read_only": "ERROR"}),
        ([OVERLAY.format("rw"), OVERLAY.format("ro")], None, {}),
        (["nonsense\n\n27 1 8:1 / / rw\n - \n"], "# nothing\n", {}),
    ],
    ids=[
        "writable",
        "against fstab",
        "meant so",
        "never writable",
        "became so",
        "stays so",
        "writable again",
        "mounted anew",
        "a read-only mount of it",
        "not mounted at start",
        "a disc",
        "emergency",
        "not a disk",
        "garbage",
    ],
)
def test_file_systems_that_the_kernel_made_read_only(tmp_path, looks, fstab, expected):
    """Those that should be writable by fstab, or that were at a look before; images are meant to be read-only."""
    disks = Disks(tmp_path, fstab=fstab)
    assert [disks.found(mounted) for mounted in looks][-1] == expected


def test_mount_points_with_spaces_are_read():
    """They stand in octal."""
    (mount,) = mounts(r"9 1 8:16 / /my\040data rw,nodev shared:1 master:2 - xfs /dev/sdb rw,noquota")
    assert mount == Mount("8:16", "/my data", "xfs", "/dev/sdb", frozenset({"rw", "noquota"}))
    assert writable_by_fstab(r"/dev/sdb /my\040data xfs nodev 0 0") == {"/my data"}


# Memory


@pytest.mark.parametrize(
    ("total", "available", "expected"),
    [
        (1000_000_000, 500_000_000, {}),
        (1000_000_000, 50_000_000, {"host.memory_low": "WARNING"}),
        (200_000, 90_000, {"host.memory_low": "ERROR"}),
    ],
)
def test_available_memory(tmp_path, total, available, expected):
    """A small share is a warning, less than what kubelet needs a fault."""
    write(tmp_path / "meminfo", f"MemTotal: {total} kB\nMemFree: 1 kB\nMemAvailable: {available} kB\nHugePages: 0\n")
    measurement = host_memory.available(tmp_path, NONE)
    assert measurement.metrics["memory_available_bytes"] == available * 1024
    assert judged(host_memory, measurement) == expected


@pytest.mark.parametrize("text", ["", "MemTotal: 5 kB\n", "MemTotal: 0 kB\nMemAvailable: 0 kB\n", "\x00\xff"])
def test_memory_that_cannot_be_told(tmp_path, text):
    """Says so instead of a number."""
    write(tmp_path / "meminfo", text)
    with pytest.raises(CannotTell):
        host_memory.available(tmp_path, NONE)


def test_shared_memory_is_of_interest_where_gpus_are(tmp_path):
    """NCCL's processes share memory there."""
    with pytest.raises(NotHere):
        host_memory.shared(Path("/dev/shm"), tmp_path, NONE)
    real = os.statvfs("/dev/shm")
    measurement = host_memory.shared(Path("/dev/shm"), tmp_path, GPUS)
    assert measurement.metrics == {"shm_bytes": real.f_blocks * real.f_frsize}
    with pytest.raises(CannotTell):
        host_memory.shared(tmp_path / "none", tmp_path, GPUS)


@pytest.mark.parametrize(("size", "expected"), [(64 << 20, {"host.shm_small": "WARNING"}), (1 << 30, {})])
def test_judgement_of_shared_memory(size, expected):
    """Docker's 64 MiB are too few for NCCL."""
    assert judged(host_memory, Measurement(metrics={"shm_bytes": float(size)})) == expected


@pytest.mark.parametrize(
    ("limit", "told", "expected"),
    [(8 << 20, 8 << 20, {"host.memlock": "WARNING"}), (resource.RLIM_INFINITY, -1, {})],
)
def test_locked_memory_must_be_unlimited_for_rdma(tmp_path, monkeypatch, limit, told, expected):
    """Only where RDMA devices are, and GPUs whose memory they send."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    with pytest.raises(NotHere, match="no RDMA device"):
        host_memory.lockable(tmp_path, GPUS)
    (tmp_path / "class/infiniband/mlx5_0").mkdir(parents=True)
    with pytest.raises(NotHere, match="no GPU"):
        host_memory.lockable(tmp_path, NONE)
    measurement = host_memory.lockable(tmp_path, GPUS)
    assert measurement.facts == {"memlock_bytes": told}
    assert judged(host_memory, measurement) == expected


# Kernel


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
    with pytest.raises(CannotTell):
        host_kernel.file_handles(tmp_path, NONE)


def test_the_governor_of_every_cpu_is_looked_at_where_gpus_are(tmp_path):
    """One CPU of another governor is found; a machine without frequency drivers has none."""
    with pytest.raises(NotHere, match="no CPU frequency driver"):
        host_kernel.governors(tmp_path, "performance", GPUS)
    for cpu, governor in enumerate(["performance", "performance", "powersave"]):
        write(tmp_path / f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor", governor + "\n")
    with pytest.raises(NotHere, match="no GPU"):
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
    with pytest.raises(NotHere):
        host_kernel.modules(tmp_path, None, NONE)
    write(tmp_path / "bus/pci/devices/0000:3b:00.0/class", "0x030200\n")
    assert host_kernel.modules(tmp_path, None, NONE).facts == {"modules_missing": ["nvidia"]}


def test_modules_cannot_be_told_without_their_folder(tmp_path):
    """A sysfs that is not there shows no module, and says nothing of any."""
    with pytest.raises(CannotTell):
        host_kernel.modules(tmp_path, None, here(expected_gpus=8))


def test_a_driver_that_shows_devices_is_loaded(tmp_path):
    """Whatever it is called, as in a sandbox or below Windows."""
    (tmp_path / "module").mkdir()
    with pytest.raises(NotHere, match="the driver answers"):
        host_kernel.modules(tmp_path, None, GPUS)


# Clock


def test_the_clock_of_this_machine_can_be_read():
    """By anybody, without a network."""
    measurement = host_clock.look(NONE)
    offset, most = measurement.metrics["clock_offset_s"], measurement.metrics["clock_max_error_s"]
    assert isinstance(offset, float)
    assert isinstance(most, float)
    assert 0 <= offset < 3600
    assert most > 0
    assert isinstance(measurement.facts["clock_synchronised"], bool)


def test_the_kernels_structure_has_its_size():
    """208 bytes on every 64-bit Linux: less, and the kernel would write behind it."""
    assert ctypes.sizeof(host_clock._Timex) == 208


@pytest.mark.parametrize(
    ("synchronised", "offset", "most", "expected"),
    [
        (True, 0.001, 0.1, {}),
        (True, 0.2, 0.3, {"host.clock_off": "WARNING"}),
        (False, 0.0, 16.0, {"host.clock_unsynchronised": "WARNING"}),
        (False, 0.0, 0.1, {}),
    ],
    ids=["right", "off", "nobody cares for it", "chronyd without rtcsync"],
)
def test_judgement_of_the_clock(synchronised, offset, most, expected):
    """An offset means something only where the clock is synchronised."""
    measurement = Measurement(
        metrics={"clock_offset_s": offset, "clock_max_error_s": most}, facts={"clock_synchronised": synchronised}
    )
    assert judged(host_clock, measurement) == expected


# Processes


class Procfs:
    """A /proc with the processes that the test says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.add(1, "systemd", "S")

    def add(self, pid: int, name: str, state: str, switches: int = 7) -> Path:
        words = {"D": "disk sleep", "Z": "zombie", "S": "sleeping"}
        return write(
            self.root / str(pid) / "status",
            f"Name:\t{name}\nState:\t{state} ({words[state]})\nPid:\t{pid}\n"
            f"voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t3\n",
        ).parent


@pytest.fixture
def procfs(tmp_path):
    write(tmp_path / "cpuinfo", "")
    return Procfs(tmp_path)


def test_a_driver_thread_in_the_kernel_at_two_looks_is_stuck(procfs):
    """One look is not enough, and a thread that ran in between is none."""
    look = Processes(procfs.root, DRIVER_NAMES)
    procfs.add(50, "nv_queue", "D")
    procfs.add(51, "nvidia-smi", "D")
    procfs.add(52, "postgres", "D")
    assert judged(host_processes, look(NONE)) == {"host.not_yet_compared": "SKIPPED"}
    procfs.add(51, "nvidia-smi", "D", switches=8)
    measurement = look(NONE)
    assert judged(host_processes, measurement) == {"host.stuck_process": "ERROR"}
    assert ProcessesReading.model_validate(measurement.facts["processes"]).stuck == ("nv_queue (50)",)
    assert measurement.metrics["stuck_processes"] == 1.0
    for pid in (50, 51):
        procfs.add(pid, "nv_queue", "S")
    assert judged(host_processes, look(NONE)) == {}


@pytest.mark.parametrize(
    ("wchan", "device", "is_stuck"),
    [
        ("nvidia_ioctl", None, True),
        ("uvm_ioctl", None, True),
        ("rpc_wait_bit_killable", None, False),
        ("0", None, False),
        (None, "/dev/nvidia0", True),
        (None, "/dev/sda", False),
    ],
)
def test_a_job_that_waits_for_the_driver_is_stuck(procfs, wchan, device, is_stuck):
    """By the function that it waits in, or by the device that it holds; one that waits for a disk is not ours."""
    entry = procfs.add(60, "python", "D")
    if wchan:
        write(entry / "wchan", wchan)
    if device:
        (entry / "fd").mkdir()
        (entry / "fd/3").symlink_to(device)
    look = Processes(procfs.root, DRIVER_NAMES)
    look(NONE)
    assert (judged(host_processes, look(NONE)) == {"host.stuck_process": "ERROR"}) == is_stuck


def test_a_killed_job_with_a_thread_in_the_kernel_is_stuck(procfs):
    """It cannot die: a zombie to those who look at processes only."""
    entry = procfs.add(70, "python", "Z")
    write(entry / "task/70/status", "Name:\tpython\nState:\tZ (zombie)\n")
    thread = write(entry / "task/71/status", "Name:\tpython\nState:\tD (disk sleep)\n")
    look = Processes(procfs.root, DRIVER_NAMES)
    look(NONE)
    assert judged(host_processes, look(NONE)) == {"host.stuck_process": "ERROR"}
    thread.unlink()
    assert judged(host_processes, look(NONE)) == {}


def test_zombies_of_the_driver_are_named_and_others_counted(procfs):
    """A zombie of a shell is nothing; many are a warning."""
    procfs.add(80, "nvidia-imex", "Z")
    procfs.add(81, "sh", "Z")
    look = Processes(procfs.root, DRIVER_NAMES)
    look(NONE)
    measurement = look(NONE)
    assert judged(host_processes, measurement) == {"host.driver_zombie": "WARNING"}
    assert measurement.metrics["zombies"] == 2.0
    assert judged(host_processes, Measurement(metrics={"zombies": 1001.0})) == {"host.zombies": "WARNING"}


def test_processes_that_vanish_or_make_no_sense_are_left_out(procfs):
    """They end while we look, and their files are gone or empty."""
    (procfs.root / "90").mkdir()
    write(procfs.root / "91/status", "\x00garbage\n::::\n")
    assert Processes(procfs.root, DRIVER_NAMES)(NONE).metrics == {"stuck_processes": 0.0, "zombies": 0.0}


def test_hidden_processes_cannot_be_judged(tmp_path):
    """With hidepid, a user sees nobody else's: nothing found says nothing."""
    with pytest.raises(CannotTell, match="1/status"):
        Processes(tmp_path, DRIVER_NAMES)(NONE)


# Services

SHOW = """\
LoadState={fm_load}
ActiveState={fm_active}
UnitFileState={fm_enabled}

LoadState=not-found
ActiveState=inactive
UnitFileState=
"""


@pytest.fixture
def systemctl(tmp_path):
    """A stand-in that answers for two units, and writes down what it was asked; an NVSwitch is on the bus."""
    switch = write(tmp_path / "bus/pci/devices/0000:c5:00.0/class", "0x068000\n").parent
    write(switch / "vendor", "0x10de\n")

    def install(output: str, exit_code: int = 0) -> Path:
        write(tmp_path / "output", output)
        program = write(
            tmp_path / "systemctl",
            f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\ncat {tmp_path}/output\nexit {exit_code}\n',
        )
        program.chmod(0o755)
        return program

    return install


@pytest.mark.parametrize(
    ("load", "active", "enabled", "wanted", "expected"),
    [
        ("loaded", "active", "enabled", True, {}),
        ("loaded", "active", "enabled", False, {}),
        ("loaded", "failed", "enabled", False, {"host.service_down": "WARNING"}),
        ("loaded", "inactive", "enabled", False, {"host.service_down": "WARNING"}),
        ("loaded", "inactive", "disabled", False, {}),
        ("not-found", "inactive", "", False, {}),
        ("not-found", "inactive", "", True, {"host.service_down": "ERROR"}),
        ("loaded", "inactive", "disabled", True, {"host.service_down": "ERROR"}),
        ("loaded", "activating", "enabled", True, {"host.service_down": "ERROR"}),
    ],
)
def test_services(tmp_path, systemctl, *, load, active, enabled, wanted, expected):
    """What the settings name must be active; Fabric Manager and IMEX only where they are installed and enabled."""
    program = systemctl(SHOW.format(fm_load=load, fm_active=active, fm_enabled=enabled))
    units = ["nvidia-fabricmanager.service"] if wanted else []
    assert judged(host_services, host_services.units(program, units, tmp_path, GPUS)) == expected
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[-3:] == ["--", "nvidia-fabricmanager.service", "nvidia-imex.service"]


def test_fabric_manager_has_nothing_to_do_without_nvswitches(tmp_path, systemctl):
    """An image for many kinds of machine starts it everywhere; what the settings name is asked for all the same."""
    program = systemctl("LoadState=loaded\nActiveState=inactive\nUnitFileState=disabled\n")
    bare = tmp_path / "bare"
    assert judged(host_services, host_services.units(program, [], bare, GPUS)) == {}
    assert (tmp_path / "asked").read_text().splitlines()[-2:] == ["--", host_services.IMEX]


def test_a_container_without_systemd_is_none_of_its_machines(tmp_path, systemctl):
    """The program may be installed in it. What the settings name cannot be told then."""
    program = systemctl("")
    said = "System has not been booted with systemd as init system (PID 1). Can't operate."
    program.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
    with pytest.raises(NotHere, match="not been booted"):
        host_services.units(program, [], tmp_path, GPUS)
    with pytest.raises(CannotTell, match="not been booted"):
        host_services.units(program, ["chronyd.service"], tmp_path, GPUS)


def test_services_are_looked_at_where_gpus_are_or_the_settings_name_them(tmp_path, systemctl):
    """And where systemd is; a container without it is no fault, unless something is expected of it."""
    program = systemctl(SHOW)
    with pytest.raises(NotHere, match="no GPU"):
        host_services.units(program, [], tmp_path, NONE)
    with pytest.raises(NotHere, match="not installed"):
        host_services.units(tmp_path / "none", [], tmp_path, GPUS)
    with pytest.raises(CannotTell, match="not installed"):
        host_services.units(tmp_path / "none", ["chronyd.service"], tmp_path, NONE)


@pytest.mark.parametrize(("output", "exit_code"), [("", 0), ("garbage\n", 0), ("a=b\n", 0), (SHOW, 1)])
def test_services_that_cannot_be_told(tmp_path, systemctl, output, exit_code):
    """No bus, another program of the name, half an answer."""
    with pytest.raises(CannotTell, match="of 2 units"):
        host_services.units(systemctl(output, exit_code), [], tmp_path, GPUS)


def test_a_systemctl_that_hangs_is_ended(tmp_path, systemctl, monkeypatch):
    """A manager that does not answer is unknown."""
    monkeypatch.setattr(host_services, "ANSWER_S", 0.2)
    program = systemctl(SHOW)
    program.write_text("#!/bin/sh\nsleep 600\n")
    with pytest.raises(CannotTell, match=r"not done within 0\.2 s"):
        host_services.units(program, [], tmp_path, GPUS)


@pytest.fixture
def runtime(tmp_path):
    """The socket of a container runtime that listens."""
    path = tmp_path / "containerd.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield path, listener


def test_a_runtime_that_accepts_is_well(runtime):
    """Whether it was named or only found."""
    path, _ = runtime
    assert judged(host_services, host_services.runtimes([path], [], NONE)) == {}
    assert judged(host_services, host_services.runtimes([], [path, path.with_name("docker.sock")], NONE)) == {}


def test_a_runtime_that_is_gone_is_found(runtime):
    """Its socket outlives it: a fault if the settings name it, else a warning."""
    path, listener = runtime
    listener.close()
    assert judged(host_services, host_services.runtimes([path], [path], NONE)) == {"host.runtime_down": "ERROR"}
    assert judged(host_services, host_services.runtimes([], [path], NONE)) == {"host.runtime_down": "WARNING"}


def test_a_runtime_that_is_named_must_be_there(tmp_path):
    """One that is not named may be missing, and so may all."""
    path = tmp_path / "containerd.sock"
    assert judged(host_services, host_services.runtimes([path], [], NONE)) == {"host.runtime_down": "ERROR"}
    with pytest.raises(NotHere):
        host_services.runtimes([], [path], NONE)


def test_a_runtime_that_does_not_accept_any_more_is_found(tmp_path, monkeypatch):
    """Its queue is full: connecting would wait for ever."""
    monkeypatch.setattr(host_services, "ANSWER_S", 0.2)
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        assert judged(host_services, host_services.runtimes([path], [], NONE)) == {"host.runtime_down": "ERROR"}


@pytest.mark.parametrize(("wanted", "severity"), [(True, "UNKNOWN"), (False, "SKIPPED")])
def test_a_runtime_that_this_user_may_not_ask(runtime, monkeypatch, wanted, severity):
    """An agent that is not root cannot tell; it says so."""
    path, _ = runtime

    class Refusing(socket.socket):
        def connect(self, address):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "socket", Refusing)
    measurement = host_services.runtimes([path] if wanted else [], [path], NONE)
    assert judged(host_services, measurement) == {"host.runtime_refused": severity}
