"""A sweep of sixteen agents is called off by its command: at once its ranks are gone and its nodes are free."""

import contextlib
import json
import os
import subprocess
import sys
import time
from datetime import datetime

import pytest
from tests.waiting import can_be_read

WITHIN_S = 3.0
"""So soon after the coordinator has called the sweep off, by the one clock of this host, everything has ended."""


@pytest.fixture
def ends():
    """`ends(pids)` waits until all these processes have ended, for which the kernel wakes it, and tells when that was.

    To be called while they live; what it gives does the waiting.
    """
    with contextlib.ExitStack() as stack:

        def watch(pids):
            descriptors = [os.pidfd_open(pid) for pid in pids]
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)

            def wait():
                for descriptor in descriptors:
                    assert can_be_read(descriptor, 60.0), "a process has not ended"
                return time.time()

            return wait

        yield watch


def meet(sixteen, book):
    """A sweep of all sixteen whose ranks have met and stay together."""
    nodes = [*sixteen.agents]
    sweep = sixteen.start_sweep(*nodes, strategy="pairs", book=str(book), hosts=nodes)
    for node in nodes:
        book.pid(f"met-{node}")
    return sweep


def abort(sixteen, sweep):
    """`muster sweep abort` as a process that has just been started."""
    argv = [sys.executable, "-m", "muster", "sweep", "abort", sweep, "--json"]
    return subprocess.Popen(argv, env={**os.environ, **sixteen.env}, stdout=subprocess.PIPE, text=True)


def test_aborting_a_sweep_frees_everything_within_three_seconds(sixteen, book, reservations, ends, eventually):
    """Every rank has ended, every lease is free and its node given back, and the nodes can be swept again."""
    sweep = meet(sixteen, book)
    wait_for_ends = ends(book.pids())
    assert {entry.name for entry in reservations.iterdir()} == {*sixteen.agents}
    command = abort(sixteen, sweep)
    gone_at = wait_for_ends()
    eventually(lambda: not any(reservations.iterdir()), "every node to be given back")
    free_at = reservations.stat().st_mtime  # the last file was removed then
    aborted = json.loads(command.communicate(timeout=60)[0])
    assert (command.returncode, aborted["state"], aborted["verdict"]) == (0, "aborted", "UNKNOWN")
    assert {group["ending"] for group in aborted["rounds"][0]["groups"]} == {"ABORTED"}
    called_off_at = datetime.fromisoformat(aborted["ended_at"]).timestamp()
    assert gone_at - called_off_at < WITHIN_S
    assert free_at - called_off_at < WITHIN_S
    sixteen.wait_until_free(*sixteen.agents)
    assert book.is_closed()
    book.write("over")
    assert sixteen.ended_sweep(sixteen.start_sweep(*sixteen.agents, book=str(book)))["verdict"] == "PASS"
