"""What the check `host` makes of processes."""

from pathlib import Path

import pytest
from tests.plugins.checks.host.looking import NONE, judged, write

from muster import Measurement
from muster_plugins.checks.host import processes as host_processes
from muster_plugins.checks.host.look import CannotDetermine
from muster_plugins.checks.host.processes import DRIVER_NAMES, Processes, ProcessesReading


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
    """One look is not enough, and a thread that ran in between is not stuck."""
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
    """The function in which it waits, or the device that it holds, shows it; waiting for a disk does not count."""
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
    """The process cannot end, although its main thread is a zombie."""
    entry = procfs.add(70, "python", "Z")
    write(entry / "task/70/status", "Name:\tpython\nState:\tZ (zombie)\n")
    thread = write(entry / "task/71/status", "Name:\tpython\nState:\tD (disk sleep)\n")
    look = Processes(procfs.root, DRIVER_NAMES)
    look(NONE)
    assert judged(host_processes, look(NONE)) == {"host.stuck_process": "ERROR"}
    thread.unlink()
    assert judged(host_processes, look(NONE)) == {}


def test_zombies_of_the_driver_are_named_and_others_counted(procfs):
    """One zombie of a shell is no finding; many are a warning."""
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
    """With hidepid, a user sees no processes of others, so finding none says nothing."""
    with pytest.raises(CannotDetermine, match="1/status"):
        Processes(tmp_path, DRIVER_NAMES)(NONE)
