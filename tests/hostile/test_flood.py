"""One node floods with each kind of message: the reports of other nodes are served, and no other node is accused.

`benchmarks.flood` measures how long the other nodes wait.
"""

import time

import pytest
from benchmarks.flood import FLOODS, MOST_MIB, Probe, flooding, memory_mib
from tests.hostile.world import FLOODER, PROBE, TOPICS, Attacker, World, password_of

REPORTS = 30


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_harms_nobody_else(world, kind, eventually):
    """The API serves other nodes' reports, memory stays bounded, and a finding stands against the flooder only."""
    eventually(lambda: not world.accused(), "every honest node to be in service")
    topic, payloads = FLOODS[kind]
    hostile = Attacker(world.broker.port, FLOODER)
    hostile.join()
    hostile.leave()
    probe = Probe(world.url, world.broker.port, PROBE, password_of(PROBE))
    probe.latencies_ms(REPORTS)
    before = memory_mib(world.coordinator.pid)
    with flooding(world.broker.port, TOPICS.node(FLOODER, topic), payloads(FLOODER), (FLOODER, password_of(FLOODER))):
        time.sleep(2.0)
        assert len(probe.latencies_ms(REPORTS)) == REPORTS
        eventually(lambda: "agent.flooding" in findings_of_the_flooder(world), "the finding against the flooder")
        growth_mib = memory_mib(world.coordinator.pid) - before
        accused = world.accused()
    probe.leave()
    assert accused == []
    assert growth_mib < MOST_MIB


def findings_of_the_flooder(world: World) -> set[str]:
    return {finding["code"] for finding in world.api.get("nodes", FLOODER)["findings"]}
