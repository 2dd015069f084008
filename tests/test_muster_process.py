"""The interpreter that forks for each command: what it may know of the tests, and how long it is there."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.muster_process import Prepared, prepared, run_muster
from tests.waiting import can_be_read

pytestmark = pytest.mark.usefixtures("live")


def parent(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("PPid:"))


def ends(process: int, within_s: float) -> bool:
    """Whether a process, by its descriptor, has ended or does so in this time."""
    return can_be_read(process, within_s)


def test_the_prepared_interpreter_knows_no_test():
    """It is for all tests: one that kills what has its variables would end the commands of all others."""
    assert run_muster("--version").returncode == 0
    environment = prepared().environment
    assert b"PATH=" in environment
    assert b"PYTEST_CURRENT_TEST=" not in environment


def test_workers_share_the_imports():
    """Each worker has an interpreter of its own, forked from one that has imported muster."""
    ours, others = Prepared("json"), Prepared("json")
    assert ours.pid != others.pid
    assert parent(ours.pid) == parent(others.pid)
    ours.end()
    others.end()


def test_the_last_worker_ends_it():
    """It stays while one worker has its interpreter, ends with the last, and is started again when needed."""
    first, second = Prepared("csv"), Prepared("csv")
    forks = os.pidfd_open(parent(first.pid))
    first_ends = os.pidfd_open(first.pid)
    try:
        first.end()
        assert ends(first_ends, within_s=60)
        assert not ends(forks, within_s=0)
        second.end()
        assert ends(forks, within_s=60)
    finally:
        os.close(forks)
        os.close(first_ends)
    Prepared("csv").end()


STRANGER = """
import socket, sys
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.connect("\\0" + sys.argv[1])
print(int(connection.recv(32) or 0))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_other_users_get_none():
    """They could run programs as the user of the tests."""
    interpreter = Prepared("json")
    address = interpreter.address.decode().removeprefix("\0")
    command = ["python3", "-I", "-c", STRANGER, address]
    ours, others = (int(subprocess.check_output(command, user=user)) for user in (0, 65534))
    interpreter.end()
    assert ours
    assert not others


def test_an_interpreter_that_cannot_start_is_told(monkeypatch, tmp_path, capfd):
    """With its own words, and not as a test that waits."""
    program = tmp_path / "program.py"
    program.write_text("import os, sys\nos.fork() or sys.exit('no room')")
    monkeypatch.setattr("tests.muster_process.PROGRAM", program)
    with pytest.raises(AssertionError, match="did not start"):
        Prepared("this")
    assert "no room" in capfd.readouterr().err
