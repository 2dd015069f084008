"""One look at the kernel's log, in a child process, usually the resident one."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from muster import Severity
from muster_plugins.checks.kernel_log.event_file import StandingEventsFile
from muster_plugins.checks.kernel_log.events import EventEnd, KernelEvent, LinkStart
from muster_plugins.checks.kernel_log.hardware_records import HardwareRecords
from muster_plugins.checks.kernel_log.recognition import recognise
from muster_plugins.checks.kernel_log.record_parser import Record
from muster_plugins.checks.kernel_log.source import Kmsg, LogUnavailable, read_journal
from muster_plugins.checks.kernel_log.standing import StandingEvents, StandingTimes, fold

JOURNAL_TIMEOUT_S = 5.0


class KernelLogLook(NamedTuple):
    """The standing events, the second since the boot, and the time of the boot in seconds since the epoch."""

    standing: StandingEvents
    now_s: float
    booted_at: float


class KernelLog:
    """The log, read from the end of the last look, with the events that still stand.

    Events before the last change of the file `cleared` do not stand. The time of the kernel's log is taken for
    CLOCK_MONOTONIC. Both agree except for the time in which a machine sleeps.
    """

    def __init__(
        self, kmsg: Path, journalctl: Path, windows: StandingTimes, memory: StandingEventsFile, cleared: Path
    ) -> None:
        self._kmsg = Kmsg(kmsg)
        self._ahead = Kmsg(kmsg)
        self._journalctl = journalctl
        self._windows = windows
        self._memory = memory
        self._cleared = cleared

    @property
    def forgetful(self) -> str | None:
        """Why the events cannot outlast this process; None if they can."""
        return self._memory.trouble

    def look(self) -> KernelLogLook:
        """Reads the new records. Raises LogUnavailable if there is no way to read the log."""
        now_s, booted_at = time.monotonic(), time.time() - time.monotonic()
        before = self._memory.recall()
        standing = fold(
            before,
            self._records(before.at_s + booted_at),
            now_s=now_s,
            windows=self._windows,
            forgiven_s=self._cleared_at() - booted_at,
        )
        self._memory.keep(standing)
        return KernelLogLook(standing, now_s, booted_at)

    def clear(self) -> None:
        """Clears all events so far, from the next look of any process on.

        Raises OSError if it cannot, also if no process stores its events in this directory.
        """
        self._memory.require_kept()
        self._cleared.touch()

    def watch(self) -> None:
        """Blocks until the log has an event that no application caused. Raises LogUnavailable if it cannot."""
        while True:
            self._ahead.wait()
            if any(map(_matters, {recognise(record) for record in _whole(self._ahead.records())})):
                return

    def _records(self, since_epoch_s: float) -> Iterator[Record | None]:
        try:
            return self._kmsg.records()
        except LogUnavailable as no_kmsg:
            try:
                return read_journal(self._journalctl, since_epoch_s, JOURNAL_TIMEOUT_S)
            except LogUnavailable as no_journal:
                raise LogUnavailable(f"{no_kmsg}; {no_journal}") from None

    def _cleared_at(self) -> float:
        """When the operator cleared the events, in seconds since the epoch; 0 for never."""
        try:
            return self._cleared.stat().st_mtime
        except OSError:
            return 0.0


def _whole(records: Iterable[Record | None]) -> Iterator[Record]:
    """The records, with the lines of each hardware error as one."""
    hardware = HardwareRecords()
    for record in records:
        if record:
            yield from hardware.add(record)
    yield from hardware.rest()


def _matters(recognised: KernelEvent | EventEnd | LinkStart | None) -> bool:
    return isinstance(recognised, EventEnd) or (
        isinstance(recognised, KernelEvent) and recognised.severity is not Severity.INFO
    )
