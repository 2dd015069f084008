"""The broker is killed at any moment of a sweep. The sweep ends, nobody is blamed, and no run is lost."""

import os
import signal
import time

import pytest

MEMBERS = ("n1", "n2", "n3")
MOMENTS_S = (0.0, 0.1, 0.4)
"""After the request: the group forms within a tenth of a second, and its ranks meet half a second later."""


@pytest.mark.parametrize("moment_s", MOMENTS_S)
def test_a_broker_that_is_killed_in_a_sweep_costs_time_only(fleet, book, eventually, moment_s):
    """Members that wait for it are no suspects. The sweep clears them, or says that it could not tell."""
    sweep = fleet.start_sweep(*MEMBERS, book=str(book))
    time.sleep(moment_s)
    os.kill(fleet.broker.pid, signal.SIGKILL)
    eventually(lambda: not fleet.broker.runs, "the broker to end")
    time.sleep(1.0)
    fleet.broker.start()
    ended = fleet.ended_sweep(sweep)
    assert (ended["state"], ended["suspects"], ended["failed_nodes"]) == ("finished", [], []), ended
    assert sorted([*ended["cleared_nodes"], *ended["inconclusive"]]) == [*MEMBERS]
    for node in MEMBERS:
        fleet.wait_until_stored(node)
    fleet.wait_until_free(*MEMBERS)
