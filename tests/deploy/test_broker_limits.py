"""How much the broker keeps for one account: the limits in our settings, and a Mosquitto that reaches them."""

import re
from contextlib import suppress

import psutil
import pytest
from benchmarks.mqtt_packets import PUBLISH, header
from tests.brokers import ROOT, docker_settings, write_passwords
from tests.deploy.clients import client
from tests.deploy.raw_mqtt import RawClient, published

from muster.wire.codec import MAX_MESSAGE_BYTES
from muster.wire.topics import FROM_NODE, NodeTopic, Topics

TOPICS = Topics("default")
REPORT = TOPICS.node("n1", NodeTopic.REPORT)
ACK = TOPICS.node("n1", NodeTopic.ACK)
LIMIT = re.compile(r"^(max_\w+|message_size_limit|memory_limit) (\d+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def start(tmp_path_factory, new_mosquitto, mosquitto_program):
    """Starts a broker with our settings and other numbers for some limits: `start(max_queued_messages=50)`."""
    passwords = tmp_path_factory.mktemp("accounts") / "passwords"
    write_passwords(passwords, {name: name for name in ("coordinator", "n1", "n2")})

    def starting(**limits: int):
        def number(line: re.Match[str]) -> str:
            return f"{line[1]} {limits.pop(line[1], line[2])}"

        settings = LIMIT.sub(number, docker_settings(passwords))
        assert not limits, "these limits are not in our settings"
        return new_mosquitto(settings, mosquitto_program)

    return starting


@pytest.fixture(scope="module")
def broker(start):
    """A broker with our limits."""
    with start() as running:
        yield running


async def test_the_coordinator_gets_the_retained_messages_of_ten_thousand_nodes(broker):
    """None of them is lost while the coordinator is too busy to read."""
    nodes, payload = 10_000, b"x" * 2000
    topics = [f"muster/v1/default/node/{node:05}/{topic}" for node in range(nodes) for topic in FROM_NODE[:2]]
    size = sum(len(published(topic, payload)) for topic in topics)
    with RawClient(broker.port, "coordinator") as coordinator:
        for topic in topics:
            coordinator.send(published(topic, payload, retain=True))
        coordinator.subscribe("muster/v1/default/node/+/+")
        coordinator.subscribe("muster/v1/default/coordinator")
        async with client(broker.port, "n1") as node:
            await node.subscribe(ACK, qos=1)  # the broker answers after it has queued all of them
            assert len(coordinator.receive(5 + size + 5)) == 5 + size + 5


async def test_the_queue_of_a_node_that_does_not_read_is_bounded(start):
    """The broker drops further messages, and keeps the connection of the sender."""
    session = {"identifier": "n1", "clean_session": False}
    with start(max_queued_messages=50) as broker:
        async with client(broker.port, "n1", **session) as node:
            await node.subscribe(ACK, qos=1)
        async with client(broker.port, "coordinator") as coordinator:
            for number in range(60):
                await coordinator.publish(ACK, b"%d" % number, qos=1)
            async with client(broker.port, "n1", **session) as node:
                kept = [int((await anext(node.messages)).payload) for _ in range(50)]
                await coordinator.publish(ACK, b"60", qos=1)
                assert [*kept, int((await anext(node.messages)).payload)] == [*range(50), 60]


async def test_a_message_that_is_too_large_is_not_delivered(broker):
    """The largest message of our protocol is."""
    async with client(broker.port, "coordinator") as coordinator, client(broker.port, "n1") as node:
        await coordinator.subscribe(REPORT, qos=1)
        await node.publish(REPORT, b"x" * (MAX_MESSAGE_BYTES + 1), qos=1)
        await node.publish(REPORT, b"x" * MAX_MESSAGE_BYTES, qos=1)
        assert len((await anext(coordinator.messages)).payload) == MAX_MESSAGE_BYTES


def test_a_packet_that_is_too_large_is_refused_after_its_header(broker):
    """Before the broker allocates memory for the rest of it."""
    with RawClient(broker.port, "n1") as node:
        node.send(header(PUBLISH, 200 << 20))
        assert node.receive(1) == b""


async def test_the_broker_s_memory_is_bounded(start):
    """If a node sends faster than the coordinator reads, the broker closes that node's connection, and no other."""
    limit = 64 << 20
    with start(memory_limit=limit) as broker, RawClient(broker.port, "coordinator") as coordinator:
        coordinator.subscribe(TOPICS.every_node(NodeTopic.REPORT))
        async with client(broker.port, "n2") as other:
            with RawClient(broker.port, "n1") as node, suppress(ConnectionError):
                for _ in range(300):
                    node.send(published(REPORT, b"x" * (1 << 20)))
                assert node.receive(1) == b""
            await other.publish(TOPICS.node("n2", NodeTopic.PRESENCE), b"x", qos=1)
        assert psutil.Process(broker.pid).memory_info().rss < 2 * limit


def test_both_brokers_have_the_same_limits():
    """The broker of docker/ and the broker in Kubernetes."""
    files = (ROOT / "docker" / "mosquitto.conf", ROOT / "daemonset" / "components" / "broker" / "mosquitto.conf")
    ours, theirs = (dict(LIMIT.findall(path.read_text(encoding="utf-8"))) for path in files)
    assert ours == theirs
    assert int(ours["message_size_limit"]) == MAX_MESSAGE_BYTES
