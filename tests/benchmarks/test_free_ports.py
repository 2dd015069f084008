"""Ports that are given to servers before they listen."""

import socket
import subprocess
import sys
from pathlib import Path

from benchmarks import free_ports

SCRIPT = "from benchmarks.free_ports import free_port; print(*[free_port() for _ in range(60)])"


def test_no_two_processes_get_the_same_port_while_both_live():
    """Neither does the kernel give any of them to a connection; 60 are more than a block."""
    ours = {free_ports.free_port() for _ in range(60)}
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True, text=True)
    others = set(map(int, ended.stdout.split()))
    assert (len(ours), len(others), ours & others) == (60, 60, set())
    kernels = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]
    assert max(ours | others) < int(kernels)


def test_a_port_on_which_somebody_listens_is_not_given(monkeypatch):
    """As by a server that did not ask here."""
    taken, free = free_ports.free_port(), free_ports.free_port()
    monkeypatch.setattr(free_ports, "_ports", iter((taken, free)))
    with socket.create_server(("127.0.0.1", taken)):
        assert free_ports.free_port() == free
