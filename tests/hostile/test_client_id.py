"""Who knows an account comes under no other client id than that account."""

import time
from collections.abc import Iterator

import pytest
from tests.brokers import docker_settings
from tests.faults.desk import Desk
from tests.hostile.conftest import accounts_file
from tests.hostile.world import World

from muster.wire.topics import NodeTopic

VICTIM = "n2"


@pytest.fixture(scope="module")
def world_at_each_broker(tmp_path_factory, new_mosquitto, mosquitto_program, mischief) -> Iterator[World]:
    """A fleet at each Mosquitto that muster is held against."""
    with new_mosquitto(docker_settings(accounts_file(tmp_path_factory)), mosquitto_program) as broker:
        desk = Desk(tmp_path_factory.mktemp("desk"))
        world = World(tmp_path_factory.mktemp("world"), broker, mischief, desk)
        world.set_right()
        yield world
        world.end()


def test_another_s_client_id_takes_nothing_over(world_at_each_broker):
    """The agent keeps its connection, its last will stays unsaid, and nobody is shown lost."""
    world, agent = world_at_each_broker, world_at_each_broker.agents[VICTIM]
    refused = world.counter("muster_messages_refused_total", kind="malformed")
    attacker = world.attacker(client_id=f"muster-default-{VICTIM}")
    try:
        for number in range(1, 4):
            # The coordinator has heard everything that was said before, a last will, too.
            attacker.say(NodeTopic.REPORT, b"garbage")
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
