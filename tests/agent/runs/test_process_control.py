"""The process table and signals, where others have made themselves out of reach."""

import os
from pathlib import Path

from muster_agent.runs import process_control


def test_a_process_of_another_user_is_passed_over(monkeypatch):
    """What a run has started as root cannot be killed by a mere user; the others are all the same."""
    killed = []

    def kill(pid: int, _signal: int) -> None:
        if pid == 1:
            raise PermissionError
        killed.append(pid)

    monkeypatch.setattr(os, "kill", kill)
    process_control.kill([1, 2])
    assert killed == [2]


def test_what_is_hidden_is_no_part_of_the_process_table(tmp_path, monkeypatch):
    """A /proc mounted with hidepid lists processes of others and refuses to show them."""
    real = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.parent.name == "7":
            raise PermissionError
        return real(path)

    for pid, line in {"7": b"", "8": b"8 (a run) S 1 8 8 0"}.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_bytes(line)
    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(process_control, "_PROC", tmp_path)
    assert process_control.table() == {8: process_control.ProcessEntry(parent=1, name="a run")}
