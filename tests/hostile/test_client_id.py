"""The broker gives a client its account as client id, whatever id it asks for."""

import time
from collections.abc import Iterator

import pytest
from tests.brokers import docker_settings
from tests.faults.fleet import TIGHT
from tests.hostile.world import World, write_accounts

from muster.wire.topics import NodeTopic

VICTIM = "n2"


@pytest.fixture(scope="module")
def world_at_each_broker(tmp_path_factory, new_mosquitto, mosquitto_program, mischief) -> Iterator[World]:
    """A small fleet with each Mosquitto that muster is tested with."""
    settings = docker_settings(write_accounts(tmp_path_factory.mktemp("accounts")))
    with new_mosquitto(settings, mosquitto_program) as broker:
        world = World(tmp_path_factory.mktemp("world"), broker, mischief, nodes=(VICTIM, TIGHT))
        world.set_right()
        yield world
        world.end()


def test_another_node_s_client_id_takes_nothing_over(world_at_each_broker):
    """The agent keeps its connection, the broker does not publish its last will, and no node is shown as lost."""
    world, agent = world_at_each_broker, world_at_each_broker.agents[VICTIM]
    refused = world.counter("muster_messages_refused_total", kind="malformed")
    attacker = world.attacker(client_id=f"muster-default-{VICTIM}")
    try:
        for number in range(1, 4):
            # When this message is counted, everything before it has arrived, a last will too.
            attacker.send(NodeTopic.REPORT, b"garbage")
            deadline = time.monotonic() + 20
            while world.counter("muster_messages_refused_total", kind="malformed") < refused + number:
                assert not world.api.get("nodes", VICTIM)["lost"]
                assert time.monotonic() < deadline
            world.run(VICTIM, "simulated")
    finally:
        attacker.leave()
    assert agent.counter("muster_agent_reconnects_total") == 0
    assert agent.log("broker_not_connected") == []
    assert [node for node in world.agents if world.api.get("nodes", node)["lost"]] == []
