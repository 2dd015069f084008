"""The ACL file for Mosquitto: a node says what it may say under its own name, and hears only what is meant for it."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiomqtt
import pytest

from muster.wire.topics import FROM_NODE, TO_NODE, Topics

ACL = Path(__file__).parent.parent.parent / "docker" / "mosquitto.acl"
TOPICS = Topics("lab")


@pytest.fixture(scope="module")
def broker(tmp_path_factory, new_mosquitto) -> Iterator[int]:
    """Mosquitto with our ACL file and an account for the coordinator and two nodes; gives its port."""
    passwords = tmp_path_factory.mktemp("accounts") / "passwords"
    passwords.write_text("".join(f"{name}:{name}\n" for name in ("coordinator", "n1", "n2")))
    subprocess.run(["mosquitto_passwd", "-U", passwords], check=True, timeout=60)
    with new_mosquitto(f"allow_anonymous false\npassword_file {passwords}\nacl_file {ACL}") as running:
        yield running.port


def client(port: int, name: str) -> aiomqtt.Client:
    return aiomqtt.Client("127.0.0.1", port, username=name, password=name)


async def heard(listener: aiomqtt.Client, sender: aiomqtt.Client, topics: list[str], last: str) -> set[str]:
    """What of `topics`, published by `sender`, comes to `listener` before a `last` that surely does."""
    for topic in [*topics, last]:
        await sender.publish(topic, b"x", qos=1)
    arrived: set[str] = set()
    async with asyncio.timeout(20):
        async for message in listener.messages:
            if message.topic.value == last:
                return arrived
            arrived.add(message.topic.value)
    return arrived


async def test_a_node_writes_its_own_topics_only(broker):
    """Reports under another's name, orders to anybody and words of the coordinator never get through."""
    own = [TOPICS.node("n1", topic) for topic in FROM_NODE]
    forbidden = [TOPICS.node("n2", topic) for topic in FROM_NODE]
    forbidden += [TOPICS.node(node, topic) for node in ("n1", "n2") for topic in TO_NODE]
    forbidden += [TOPICS.coordinator, TOPICS.references, "muster/v1/lab/node/n1/report/below", "elsewhere"]
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await coordinator.subscribe("muster/v1/#", qos=1)
        *before, last = own
        assert await heard(coordinator, node, [*forbidden, *before], last) == set(before)


async def test_a_node_reads_what_is_meant_for_it(broker):
    """Its own acks and orders and the coordinator's retained words, nothing of other nodes."""
    meant = [*(TOPICS.node("n1", topic) for topic in TO_NODE), TOPICS.references]
    others = [*(TOPICS.node("n2", topic) for topic in TO_NODE), *(TOPICS.node("n2", topic) for topic in FROM_NODE)]
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await node.subscribe("muster/v1/#", qos=1)
        assert await heard(node, coordinator, [*others, *meant], TOPICS.coordinator) == set(meant)


async def test_nobody_comes_in_without_an_account(broker):
    """A wrong password ends at the broker."""
    with pytest.raises(aiomqtt.MqttError):
        async with aiomqtt.Client("127.0.0.1", broker, username="n1", password="wrong"):
            pass
