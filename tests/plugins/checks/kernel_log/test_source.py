"""Reading the kernel's log from files and a FIFO in its place."""

import errno
import os
import time
from pathlib import Path

import pytest

from muster_plugins.checks.kernel_log.source import Kmsg, LogUnavailable, read_journal

LINES = b"6,1,1000000,-;one\n6,2,2000000,-;two\n"


def texts(source):
    return [record and record.text for record in source.records()]


def test_each_look_goes_on_where_the_last_one_ended(tmp_path):
    """A line that has only begun waits for its end."""
    log = tmp_path / "kmsg"
    log.write_bytes(LINES + b"6,3,3000")
    source = Kmsg(log)
    assert texts(source) == ["one", "two"]
    with log.open("ab") as more:
        more.write(b"000,-;three\n")
    assert texts(source) == ["three"]


def test_a_log_that_nobody_reads_any_more_is_closed(tmp_path):
    """Otherwise a process would run out of descriptors, one for each reader."""
    log = tmp_path / "kmsg"
    log.write_bytes(LINES)
    source = Kmsg(log)
    texts(source)
    opened = [link for link in Path("/proc/self/fd").iterdir() if link.exists() and link.samefile(log)]
    assert len(opened) == 1
    del source
    assert not opened[0].exists()


def test_an_account_without_the_right_to_read_it_is_told_what_it_takes(tmp_path, monkeypatch):
    """The kernel says only that it is not permitted."""

    def denied(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(LogUnavailable, match="not permitted; the agent must run as root, or have CAP_SYSLOG"):
        Kmsg(tmp_path / "kmsg").records()


def test_a_log_that_ends_cannot_be_waited_for(tmp_path):
    """Otherwise the end would be reported again and again."""
    os.mkfifo(tmp_path / "kmsg")
    source = Kmsg(tmp_path / "kmsg")
    assert texts(source) == []
    os.close(os.open(tmp_path / "kmsg", os.O_WRONLY))
    with pytest.raises(LogUnavailable, match="has come to its end"):
        source.wait()


def test_lines_overwritten_while_they_are_read_are_passed_over(tmp_path, monkeypatch):
    """The kernel says so with an error, upon which the next read goes on."""
    (tmp_path / "kmsg").write_bytes(LINES)
    read, errors = os.read, [BrokenPipeError(), BrokenPipeError()]

    def overwritten(descriptor, size):
        if errors:
            raise errors.pop()
        return read(descriptor, size)

    monkeypatch.setattr("muster_plugins.checks.kernel_log.source.os.read", overwritten)
    assert texts(Kmsg(tmp_path / "kmsg")) == ["one", "two"]


def test_a_line_without_end_is_not_kept(tmp_path):
    """The memory stays bounded for any content of the file."""
    (tmp_path / "kmsg").write_bytes(b"x" * 1_000_000 + b"\n" + LINES)
    found = texts(Kmsg(tmp_path / "kmsg"))
    assert (set(found[:-2]), found[-2:]) == ({None}, ["one", "two"])
    assert len(found) < 20


@pytest.mark.usefixtures("live")
def test_a_journal_that_says_more_than_is_read_at_once_is_cut_at_a_line(tmp_path):
    """What follows is read by the next look, which asks from the last line on."""
    program = tmp_path / "journalctl"
    line = '{"MESSAGE": "one", "_SOURCE_MONOTONIC_TIMESTAMP": "1000000"}'
    program.write_text(f"#!/bin/sh\nyes '{line}' | head -n 100000\n")
    program.chmod(0o755)
    read = list(read_journal(program, time.time(), timeout_s=60))
    assert 10_000 < len(read) < 100_000
    assert None not in read
