"""One look at the kernel's log: what stands after it. All of this runs in a child process, the resident as a rule."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from muster import Severity
from muster_plugins.checks.kernel_log.file import Memory
from muster_plugins.checks.kernel_log.records import Record
from muster_plugins.checks.kernel_log.rules import End, Event, recognise
from muster_plugins.checks.kernel_log.source import Kmsg, Unavailable, read_journal
from muster_plugins.checks.kernel_log.standing import Standing, Windows, fold

JOURNAL_TIMEOUT_S = 5.0


class Look(NamedTuple):
    """What stands, at which second since the boot, and at which time the boot was, in seconds since the epoch."""

    standing: Standing
    now_s: float
    booted_at: float


class KernelLog:
    """The log, read on from where it was left, with what of it still stands.

    What happened before the file `cleared` was last touched does not stand. The kernel's own clock is taken for
    CLOCK_MONOTONIC, which it follows but for the time that a machine sleeps.
    """

    def __init__(self, kmsg: Path, journalctl: Path, windows: Windows, memory: Memory, cleared: Path) -> None:
        self._kmsg = Kmsg(kmsg)
        self._ahead = Kmsg(kmsg)
        self._journalctl = journalctl
        self._windows = windows
        self._memory = memory
        self._cleared = cleared

    @property
    def forgetful(self) -> str | None:
        """Why what stands will not outlast this process; None when it will."""
        return self._memory.trouble

    def look(self) -> Look:
        """Reads what is new; Unavailable when there is no way to."""
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
        return Look(standing, now_s, booted_at)

    def clear(self) -> None:
        """Lets nothing stand that has happened until now, from the next look of whichever process on."""
        self._cleared.touch()

    def watch(self) -> None:
        """Blocks until the log tells of more than what an application did; Unavailable when it cannot be waited for."""
        while True:
            self._ahead.wait()
            told = {recognise(record) for record in self._ahead.records() if record}
            if any(map(_matters, told)):
                return

    def _records(self, since_epoch_s: float) -> Iterator[Record | None]:
        try:
            return self._kmsg.records()
        except Unavailable as no_kmsg:
            try:
                return read_journal(self._journalctl, since_epoch_s, JOURNAL_TIMEOUT_S)
            except Unavailable as no_journal:
                raise Unavailable(f"{no_kmsg}; {no_journal}") from None

    def _cleared_at(self) -> float:
        """In seconds since the epoch; 0 for never."""
        try:
            return self._cleared.stat().st_mtime
        except OSError:
            return 0.0


def _matters(told: Event | End | None) -> bool:
    return isinstance(told, End) or (isinstance(told, Event) and told.severity is not Severity.INFO)
