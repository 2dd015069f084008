"""Output that nobody reads, or that cannot be written: no traceback, and never the exit code of a verdict."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("live")

COMMANDS = [["--help"], ["check", "list", "--help"], ["check", "list"], ["check", "list", "--json"]]


def run_into(out: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "muster", *arguments]
    return subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_output_that_nobody_reads_ends_the_command_in_silence(arguments):
    """As in `muster check list | head -1`; the help, too, which rich prints."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run_into(writer, *arguments)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [[], *COMMANDS], ids=" ".join)
def test_output_on_a_full_disk_is_an_error_in_one_line(arguments):
    """It is no bug in muster, and the exit code says that not everything was written; the help, too."""
    with Path("/dev/full").open("w") as full:
        done = run_into(full.fileno(), *arguments)
    assert (done.returncode, done.stderr) == (74, "muster: cannot write the output: No space left on device\n")


def test_an_error_that_cannot_be_printed_keeps_its_exit_code():
    """There is no other place to say it."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "muster", "nope"], stderr=full, timeout=60, check=False)
    assert done.returncode == 64


@pytest.mark.parametrize(("stream", "code"), [("1", 0), ("2", 64)])
def test_a_closed_stream_is_no_error(stream, code):
    """A shell's `>&-` and some supervisors start a program so."""
    command = f"exec {sys.executable} -m muster {'check list' if code == 0 else 'nope'} {stream}>&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
