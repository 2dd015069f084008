"""What the check `host` makes of file systems."""

import os
import threading
from pathlib import Path

import pytest
from tests.cases import cases
from tests.plugins.checks.host.looking import NONE, judged, write

from muster import Measurement
from muster.references import applicable, shipped
from muster_plugins.checks.host import file_systems as host_file_systems
from muster_plugins.checks.host.file_systems import FileSystems, FileSystemsReading, Mount, mounts, writable_by_fstab


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


@cases(
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
