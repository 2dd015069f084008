"""A process that is no member attacks the port where the ranks of a node meet the others, again and again."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.hostile.world import HONEST

pytestmark = pytest.mark.torch

VICTIM, ADDRESS = "n2", "127.0.0.2"
"""The node that is attacked, and its address, which no other node has."""

INTRUDER = """
import socket, struct, sys, threading, time
from pathlib import Path

def ports(address):
    own = socket.inet_aton(address)[::-1].hex().upper()
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {int(place[9:], 16) for _, place, _, state, *_ in lines if place[:8] == own and state == "0A"}

def text(content): return struct.pack("<Q", len(content)) + content

HELLO = bytes([0]) + struct.pack("<I", 0x3C85F7CE)
WORDS = b"".join(bytes([1]) + text(b"/rank/%d" % rank) + text(b"[]") for rank in range(8)) * 20

def attack(address, port):
    try:
        with socket.create_connection((address, port), timeout=1) as store:
            store.sendall(HELLO)
            for _ in range(100):
                store.sendall(WORDS)
    except OSError:
        time.sleep(0.001)

print("ready", flush=True)
while True:
    for port in ports(sys.argv[1]):
        threading.Thread(target=attack, args=(sys.argv[1], port), daemon=True).start()
    time.sleep(0.005)
"""
"""Finds the listening ports of an address, as a fast scanner does, and writes false introductions into the store."""


@pytest.fixture
def intruder(world) -> Iterator[None]:
    """Attacks the victim's ports during the test."""
    agent = world.agents[VICTIM]
    agent.kill()
    agent.settings["agent"]["address"] = ADDRESS
    agent.start()
    world.set_right()
    with subprocess.Popen([sys.executable, "-c", INTRUDER, ADDRESS], stdout=subprocess.PIPE) as attacking:
        assert attacking.stdout is not None
        assert attacking.stdout.readline() == b"ready\n"
        yield
        attacking.kill()
    agent.kill()
    del agent.settings["agent"]["address"]


@pytest.mark.usefixtures("intruder")
def test_a_stranger_at_its_port_gets_no_node_convicted(world):
    """Every group of the victim is attacked; the sweep clears all nodes."""
    body = {"check": "reunion", "nodes": [*HONEST]}
    sweep = world.ended_sweep(world.api.post("sweeps", body=body)["id"])
    assert (sweep["verdict"], sorted(sweep["cleared_nodes"])) == ("PASS", sorted(HONEST)), sweep
