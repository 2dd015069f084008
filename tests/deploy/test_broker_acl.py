"""The ACL file for Mosquitto: a node says what it may say under its own name, and hears only what is meant for it."""

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import aiomqtt
import pytest

from muster.wire.topics import FROM_NODE, TO_NODE, Topics

ACL = Path(__file__).parent.parent.parent / "docker" / "mosquitto.acl"
TOPICS = Topics("lab")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_until_listening(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.05).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nothing listens on {port}")


@pytest.fixture(scope="module")
def broker(tmp_path_factory) -> Iterator[int]:
    """Mosquitto with our ACL file and an account for the coordinator and two nodes; gives its port."""
    directory = tmp_path_factory.mktemp("mosquitto")
    passwords, acl, port = directory / "passwords", directory / "acl", free_port()
    passwords.write_text("".join(f"{name}:{name}\n" for name in ("coordinator", "n1", "n2")))
    subprocess.run(["mosquitto_passwd", "-U", passwords], check=True, timeout=60)
    shutil.copy(ACL, acl)
    settings = directory / "mosquitto.conf"
    settings.write_text(
        f"listener {port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\nacl_file {acl}\nuser root\n"
    )
    mosquitto = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")  # where Debian keeps it
    assert mosquitto is not None
    process = subprocess.Popen([mosquitto, "-c", settings], stderr=subprocess.DEVNULL)
    try:
        wait_until_listening(port)
        yield port
    finally:
        process.terminate()
        process.wait(10)


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
