"""Sources of the kernel's log: the device /dev/kmsg, or the journal if that cannot be read."""

import os
import select
import stat
import weakref
from collections.abc import Iterator
from pathlib import Path

from muster_plugins.checks.kernel_log.record_parser import Record, journal_records, kmsg_records
from muster_plugins.shared.programs import NotRun, TimedOut, run_program

MOST_BYTES = 16 << 20
"""Bytes of one look, about 150,000 lines. The next look reads the rest."""

_READ_BYTES = 1 << 16
"""More than the kernel's longest record, which one read returns."""


class LogUnavailable(Exception):
    """The log cannot be read from here; the text says why."""


class Kmsg:
    """An open /dev/kmsg. It stays open while this object lives, so each look continues where the last one ended.

    A regular file or a FIFO with lines of the same form does as well.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._begun = b""

    def records(self) -> Iterator[Record | None]:
        """The records to read now, None for a line that is none. Raises LogUnavailable if reading is denied."""
        self._open()  # now, and not when the first record is asked for
        return kmsg_records(self._lines())

    def wait(self) -> None:
        """Blocks until there is something to read. Raises LogUnavailable if the source cannot be waited for."""
        descriptor = self._open()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise LogUnavailable(f"{self._path} is a file, which cannot be waited for")
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        (_, events), *_ = poll.poll()
        if events & (select.POLLHUP | select.POLLNVAL):
            raise LogUnavailable(f"{self._path} has come to its end")

    def _open(self) -> int:
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except PermissionError as error:
                needs = "the agent must run as root, or have CAP_SYSLOG"
                raise LogUnavailable(f"{self._path}: {error.strerror}; {needs}") from None
            except OSError as error:
                raise LogUnavailable(f"{self._path}: {error.strerror}") from None
            weakref.finalize(self, os.close, self._descriptor)
        return self._descriptor

    def _lines(self) -> Iterator[str]:
        left = MOST_BYTES
        while left > 0 and (chunk := self._read()):
            left -= len(chunk)
            *lines, self._begun = (self._begun + chunk).split(b"\n")
            if len(self._begun) > _READ_BYTES:  # no record is as long
                lines, self._begun = [*lines, self._begun], b""
            for line in lines:
                yield line.decode(errors="replace")

    def _read(self) -> bytes:
        """The next bytes; empty if all are read."""
        descriptor = self._open()
        while True:
            try:
                return os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                return b""
            except BrokenPipeError:  # lines were overwritten; what follows are the oldest that are left
                continue
            except OSError as error:
                raise LogUnavailable(f"{self._path}: {error.strerror}") from None


def read_journal(program: Path, since_epoch_s: float, timeout_s: float) -> Iterator[Record | None]:
    """The kernel's lines of this boot since `since_epoch_s`, up to the limit of one look.

    Raises LogUnavailable if there is no journal or reading is denied.
    """
    fields = "MESSAGE,_SOURCE_MONOTONIC_TIMESTAMP,_KERNEL_DEVICE,PRIORITY"
    argv = (program, "-k", "-o", "json", "--no-pager", "--quiet", f"--output-fields={fields}")
    try:
        done = run_program((*argv, f"--since=@{max(0, int(since_epoch_s))}"), timeout_s=timeout_s)
    except (NotRun, TimedOut) as error:
        raise LogUnavailable(str(error)) from None
    if done.exit_code or not done.stdout:
        raise LogUnavailable(f"{program}: {done.stderr.strip()[:200] or 'nothing from the kernel'}")
    lines = done.stdout.split("\n")[:-1]  # the last line is empty, or incomplete if there was too much for one read
    return journal_records(lines)
