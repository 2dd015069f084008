"""Networks on which healthy hosts look slow, or a slow one looks healthy: shared uplinks, busy cores, hanging links."""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.network.laboratory import ENOUGH_SEGMENTS
from tests.network.wires import GBITPS

from muster.model import Verdict

MBIT_PER_GB = 8000
LARGE_MESSAGE = 1 << 22
"""Bytes: with smaller messages, fast links wait for the processes at their ends."""


@contextmanager
def busy_cores() -> Iterator[None]:
    """Two other processes compute for as long as the context lasts."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def reached(sweep, node=None):
    """What all groups of a sweep reached, or those of one node, in Mbit/s."""
    groups = [group for each in sweep.rounds for group in each.groups if group.objective]
    return [group.objective * MBIT_PER_GB for group in groups if node in (None, *group.members)]


def uncounted(sweep):
    """The nodes of groups that do not know which share of their segments was sent again."""
    places = [place for each in sweep.rounds for group in each.groups for place in group.places]
    return [place.node for place in places if not all("tcp_resent_share" in each for each in place.measured)]


def named(sweep):
    """All that a sweep convicts."""
    nodes = [failed.node for failed in sweep.failed_nodes]
    return nodes, [failed.between for failed in sweep.failed_links], [failed.leaves for failed in sweep.failed_fabric]


def test_a_host_behind_a_link_that_hangs(laboratory):
    """Connections begin, and nothing large passes. Its partners fail with it, and it alone is convicted."""
    laboratory.network.hang("node-5")
    sweep = laboratory.sweep()
    assert (named(sweep), sweep.inconclusive) == ((["node-5"], [], []), ())


def test_a_host_that_loses_packets_on_sending_only(laboratory):
    """Only what it sends has to be sent again, and nobody else is convicted for that."""
    laboratory.network.lose("node-5", percent=5, on_sending_only=True)
    sweep = laboratory.sweep(iterations=ENOUGH_SEGMENTS)
    assert (named(sweep), sweep.inconclusive) == ((["node-5"], [], []), ())
    assert any("sent again" in reason for reason in sweep.failed_nodes[0].reasons)
    assert uncounted(sweep) == [], "a rank counts before the others may leave"


def test_a_slow_host_beside_busy_cores(laboratory):
    """It gets a quarter of what the others reach at the moment, and it alone is convicted."""
    with busy_cores():
        quarter = round(statistics.median(reached(laboratory.sweep())) / 4)
        laboratory.network.limit("node-2", sends=quarter, receives=quarter)
        sweep = laboratory.sweep()
    assert (named(sweep), sweep.inconclusive) == ((["node-2"], [], []), ())


def test_a_loss_that_noise_may_hide(laboratory):
    """Links are so fast that the cores decide. A sweep that passes says which loss it could not have found."""
    for node in laboratory.agents:
        laboratory.network.limit(node, sends=20 * GBITPS, receives=20 * GBITPS)
    third = round(statistics.median(reached(laboratory.sweep(size_bytes=LARGE_MESSAGE))) / 3)
    laboratory.network.limit("node-3", sends=third, receives=third)
    sweep = laboratory.sweep(size_bytes=LARGE_MESSAGE)
    typical = statistics.median(reached(sweep))
    assert sweep.verdict is not Verdict.PASS or max(reached(sweep, "node-3")) > (1 - sweep.smallest_loss) * typical


def test_leaves_that_share_an_uplink(large_laboratory):
    """All groups across it are slow at once. Nobody is convicted, because each is fast by itself."""
    large_laboratory.set_right()
    large_laboratory.network.oversubscribe(6)
    sweep = large_laboratory.sweep(iterations=42)  # a busy machine starts the groups one after another
    assert min(reached(sweep)) < 0.75 * large_laboratory.network.cabling.link_mbitps
    assert named(sweep) == ([], [], [])


def test_a_slow_host_behind_a_shared_uplink(large_laboratory):
    """It is told from the uplink."""
    large_laboratory.set_right()
    large_laboratory.network.oversubscribe(2)
    large_laboratory.network.limit("node-9", sends=25, receives=25)
    assert named(large_laboratory.sweep()) == (["node-9"], [], [])
