"""File systems of the host: space, inodes, mounts that hang, and mounts that the kernel has made read-only."""

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from muster import Action, Context, Finding, Measurement, Reference, Severity, judge_value
from muster.model import Data, Metric
from muster_plugins.checks.host.look import SHARE_DIGITS, CannotDetermine, read
from muster_plugins.shared.listed_finding import listed_finding

ANSWER_S = 3.0
"""A file system that does not answer within this time hangs, for example a network mount without its server."""

_NEVER_WRITABLE = frozenset({"cramfs", "erofs", "iso9660", "squashfs", "udf"})

FINDS = {
    "host.disk_full": "a file system has little space left",
    "host.inodes_low": "a file system has few inodes left",
    "host.mount_unusable": "required paths cannot be used",
    "host.mount_refused": "paths that this user may not access",
    "host.mount_hangs": "file systems that do not answer",
    "host.read_only": "file systems that were writable, or should be, are read-only",
}


class Space(Data):
    """The free shares of the file system at `path`, from 0 to 1; None if it does not count or need them."""

    path: str
    available_share: float | None = None
    inodes_free_share: float | None = None


class FileSystemsReading(Data):
    """One look at the configured paths and at all mounts. `unusable` and `refused` give the path and the reason."""

    spaces: tuple[Space, ...] = ()
    unusable: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    hanging: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()


class Mount(NamedTuple):
    """A mount in /proc/1/mountinfo, with the options of the file system itself and not of the mount."""

    device: str
    path: str
    kind: str
    source: str
    options: frozenset[str]


class FileSystems:
    """Examines `paths`, and remembers which mounts were writable and which still hang."""

    def __init__(self, paths: Sequence[Path], proc: Path, fstab: Path) -> None:
        self._paths = paths
        self._proc = proc
        self._fstab = fstab
        self._asked: dict[Path, _SpaceQuery] = {}
        self._writable: frozenset[str] = frozenset()

    def __call__(self, context: Context) -> Measurement:
        """Free shares as metrics, of the fullest file system."""
        questions = self._ask()
        answers = {path: question.answer for path, question in questions.items() if not question.hangs}
        errors = {path: answer for path, answer in answers.items() if isinstance(answer, OSError)}
        reading = FileSystemsReading(
            spaces=tuple(_space(path, answer) for path, answer in answers.items() if not isinstance(answer, OSError)),
            unusable=_why(errors, refused=False),
            refused=_why(errors, refused=True),
            hanging=tuple(str(path) for path, question in questions.items() if question.hangs),
            read_only=self._read_only(),
        )
        shares = [space.available_share for space in reading.spaces if space.available_share is not None]
        inodes = [space.inodes_free_share for space in reading.spaces if space.inodes_free_share is not None]
        metrics: dict[str, Metric] = {}
        if shares:
            metrics["disk_available_share"] = min(shares)
        if inodes:
            metrics["inodes_free_share"] = min(inodes)
        return Measurement(metrics=metrics, facts={"file_systems": reading.model_dump(mode="json")})

    def _ask(self) -> "dict[Path, _SpaceQuery]":
        """Asks each path. A path that still hangs is not asked again, because its thread is still waiting."""
        hanging = {path: question for path, question in self._asked.items() if question.hangs}
        self._asked = {path: hanging.get(path) or _SpaceQuery(path) for path in self._paths}
        deadline = time.monotonic() + ANSWER_S
        for question in self._asked.values():
            question.wait(deadline)
        return dict(self._asked)

    def _read_only(self) -> tuple[str, ...]:
        """The mounts that became read-only, on disks only: images and container layers are read-only by design.

        A mount of a writable file system may also be read-only by design: in a container, or to keep a service from
        writing.
        """
        seen = mounts(read(self._proc / "1" / "mountinfo"))
        on_disk = [mount for mount in seen if mount.source.startswith("/dev/") and mount.kind not in _NEVER_WRITABLE]
        try:
            configured = writable_by_fstab(read(self._fstab))
        except CannotDetermine:  # containers and image-based systems have none
            configured = frozenset()
        there = {mount.device for mount in on_disk}
        self._writable = frozenset(
            {mount.device for mount in on_disk if "ro" not in mount.options} | (self._writable & there)
        )
        should = self._writable | {mount.device for mount in on_disk if mount.path in configured}
        return tuple(sorted({mount.path for mount in on_disk if _was_made_read_only(mount, should)}))


class _SpaceQuery:
    """Reads the free space of a file system in its own thread, because the answer may never come."""

    def __init__(self, path: Path) -> None:
        self.answer: os.statvfs_result | OSError = TimeoutError()
        self._path = path
        self._thread = threading.Thread(target=self._ask, name=f"statvfs {path}", daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self.answer = os.statvfs(self._path)
        except OSError as error:
            self.answer = error

    def wait(self, deadline: float) -> None:
        self._thread.join(max(0.0, deadline - time.monotonic()))

    @property
    def hangs(self) -> bool:
        return self._thread.is_alive()


def mounts(text: str) -> list[Mount]:
    """The lines of /proc/1/mountinfo; lines that are no mounts are left out."""
    halves = (line.partition(" - ") for line in text.splitlines())
    rows = ((mount.split(), file_system.split()) for mount, _, file_system in halves)
    return [
        Mount(
            device=mount[2],
            path=_unescaped(mount[4]),
            kind=file_system[0],
            source=_unescaped(file_system[1]),
            options=frozenset(file_system[2].split(",")),
        )
        for mount, file_system in rows
        if len(mount) >= 6 and len(file_system) >= 3
    ]


def writable_by_fstab(text: str) -> frozenset[str]:
    """The mount points that /etc/fstab mounts at boot and writable."""
    rows = (line.split() for line in text.splitlines() if not line.lstrip().startswith("#"))
    meant = ((_unescaped(row[1]), row[3].split(",")) for row in rows if len(row) >= 4)
    return frozenset(path for path, options in meant if "ro" not in options and "noauto" not in options)


def _was_made_read_only(mount: Mount, should_be_writable: frozenset[str]) -> bool:
    """Since Linux 6.15, ext4 keeps `rw` after an error and says `emergency_ro`."""
    return "emergency_ro" in mount.options or ("ro" in mount.options and mount.device in should_be_writable)


def _unescaped(text: str) -> str:
    """Decodes spaces and other characters, which these files write as three octal digits."""
    return text.replace(r"\040", " ").replace(r"\011", "\t").replace(r"\012", "\n").replace(r"\134", "\\")


def _why(errors: Mapping[Path, OSError], *, refused: bool) -> tuple[str, ...]:
    chosen = ((path, error) for path, error in errors.items() if isinstance(error, PermissionError) == refused)
    return tuple(f"{path} ({error.strerror})" for path, error in chosen)


def _space(path: Path, answer: os.statvfs_result) -> Space:
    """The free shares from statvfs. A read-only image has neither free space nor free inodes, and needs none."""
    is_image = bool(answer.f_flag & os.ST_RDONLY) and not answer.f_bfree and not answer.f_ffree
    return Space(
        path=str(path),
        available_share=None if is_image else _share(answer.f_bavail, answer.f_blocks),
        inodes_free_share=None if is_image else _share(answer.f_favail, answer.f_files),
    )


def _share(free: int, total: int) -> float | None:
    return round(free / total, SHARE_DIGITS) if total else None


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Judges space and inodes by reference; a missing, hanging or read-only path is a finding by itself."""
    reading = FileSystemsReading.model_validate(measurement.facts.get("file_systems", {}))
    space, inodes = references.get("disk_available_share"), references.get("inodes_free_share")
    shares = ((each.path, each.available_share) for each in reading.spaces)
    free = ((each.path, each.inodes_free_share) for each in reading.spaces)
    return [
        *_by_path(shares, space, "host.disk_full"),
        *_by_path(free, inodes, "host.inodes_low"),
        *listed_finding(FINDS, "host.mount_unusable", Severity.ERROR, reading.unusable),
        *listed_finding(FINDS, "host.mount_refused", Severity.UNKNOWN, reading.refused),
        *listed_finding(FINDS, "host.mount_hangs", Severity.ERROR, reading.hanging),
        *listed_finding(FINDS, "host.read_only", Severity.ERROR, reading.read_only, Action.INSPECT_HARDWARE),
    ]


def _by_path(shares: Iterable[tuple[str, float | None]], reference: Reference | None, code: str) -> list[Finding]:
    return [
        found.model_copy(update={"summary": f"{path}: {found.summary}", "evidence": found.evidence | {"path": path}})
        for path, share in shares
        for found in judge_value(share, reference, code=code)
    ]
