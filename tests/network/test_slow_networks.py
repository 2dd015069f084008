"""Links that are slow or lose packets: the sweep's record tells which part of the network it is, and in which way."""

from tests.network.laboratory import ENOUGH_SEGMENTS

from muster.model import Verdict


def test_a_healthy_network(new_laboratory):
    """Everybody is cleared, and nothing else is said."""
    sweep = new_laboratory.sweep()
    assert sweep.verdict is Verdict.PASS
    assert (sweep.cleared_nodes, sweep.notes) == (sweep.nodes, ())


def test_a_host_that_is_slow_both_ways(laboratory):
    """It is slow with everyone, in neither direction more than in the other."""
    laboratory.network.limit("node-2", sends=20, receives=20)
    sweep = laboratory.sweep()
    (failed,) = sweep.failed_nodes
    assert (failed.node, failed.code, failed.direction) == ("node-2", "collective.slow", None)
    assert (sweep.failed_links, sweep.failed_fabric, sweep.inconclusive) == ((), (), ())


def test_a_host_that_is_slow_on_sending_only(laboratory):
    """It is slow with everyone as well, but receives as fast as the others."""
    laboratory.network.limit("node-5", sends=20)
    sweep = laboratory.sweep()
    (failed,) = sweep.failed_nodes
    assert (failed.node, failed.code, failed.direction) == ("node-5", "collective.slow", "send")
    assert (sweep.failed_links, sweep.failed_fabric, sweep.inconclusive) == ((), (), ())


def test_a_slow_path_between_healthy_hosts(laboratory):
    """The path between the leaves is named, and none of the hosts at its ends."""
    laboratory.network.limit_uplink(60)
    sweep = laboratory.sweep()
    (failed,) = sweep.failed_fabric
    assert (failed.leaves, failed.code) == (("r1", "r2"), "collective.slow")
    assert (sweep.failed_nodes, sweep.failed_links, sweep.cleared_nodes) == ((), (), sweep.nodes)


def test_a_host_that_loses_packets(laboratory):
    """Its bandwidth hardly suffers, but what had to be sent again gives it away."""
    laboratory.network.lose("node-5", percent=5)
    sweep = laboratory.sweep(iterations=ENOUGH_SEGMENTS)
    (failed,) = sweep.failed_nodes
    assert (failed.node, failed.code) == ("node-5", "collective.failed")
    assert sum("sent again" in reason for reason in failed.reasons) >= 2, failed.reasons
    assert (sweep.failed_links, sweep.failed_fabric, sweep.inconclusive) == ((), (), ())
