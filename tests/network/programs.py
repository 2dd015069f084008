"""A program that runs in a namespace, and what the tests see of it from outside."""

from pathlib import Path

import psutil
from tests.muster_process import AnyProcess

ESTABLISHED = "01"
"""The state of a connection in /proc/net/tcp (include/net/tcp_states.h)."""


class Program:
    """A program of the laboratory, which writes to `log`. Its properties are those of an agent."""

    def __init__(self, process: AnyProcess, log: Path) -> None:
        self._process = process
        self._log = log

    def has_said(self, words: str) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        return words in self._log.read_text()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def children(self) -> list[psutil.Process]:
        """The children of its launcher: ranks, one that stays, and one that comes and goes with idle probes."""
        launcher = psutil.Process(self._process.pid).children()
        return launcher[0].children() if launcher else []

    @property
    def ranks(self) -> list[psutil.Process]:
        """Those of its children that are connected with ranks of other nodes."""
        return [child for child in self.children if is_connected(child.pid)]

    @property
    def bytes_sent(self) -> int:
        """What has left its node since that has a link."""
        lines = Path(f"/proc/{self._process.pid}/net/dev").read_text().splitlines()
        (counters,) = (line.split() for line in lines if line.lstrip().startswith("eth0:"))
        return int(counters[9])


def opened(file: Path) -> str:
    """What an open file of a process is; empty if it was closed meanwhile, which says nothing about the others."""
    try:
        return str(file.readlink())
    except FileNotFoundError:
        return ""


def is_connected(pid: int) -> bool:
    """Whether a process has an established TCP connection; False if it has ended."""
    try:
        files = [target for file in Path(f"/proc/{pid}/fd").iterdir() if (target := opened(file))]
        _, *connections = (line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(line[3] == ESTABLISHED and f"socket:[{line[9]}]" in files for line in connections)
