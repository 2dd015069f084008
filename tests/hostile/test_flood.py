"""One node sends as much as it can, of every kind: the others are heard, and nobody is accused of it.

How long the others wait is measured by `benchmarks.flood`.
"""

import time

import pytest
from benchmarks.flood import FLOODS, MOST_MIB, Probe, flooding, memory_mib
from tests.hostile.world import FLOODER, PROBE, TOPICS, Attacker, password_of

REPORTS = 60


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_harms_nobody_else(world, kind, eventually):
    """Others' reports are served, memory stays bounded, the API answers, and only the flooder is accused."""
    eventually(lambda: not world.accused(), "everybody to be well")
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
        more = memory_mib(world.coordinator.pid) - before
        accused = world.accused()
        held = {finding["code"] for finding in world.api.get("nodes", FLOODER)["findings"]}
    probe.leave()
    assert accused == []
    assert "agent.flooding" in held
    assert more < MOST_MIB
