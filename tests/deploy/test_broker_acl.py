"""The ACL file for Mosquitto: a node publishes under its own name only, and reads only what is sent to it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import aiomqtt
import pytest
from tests.brokers import docker_settings, write_passwords
from tests.deploy.clients import arrived, client, delivered

from muster.wire.topics import FROM_NODE, TO_NODE, Topics

TOPICS = Topics("default")
ELSEWHERE = Topics("lab")
LAST = TOPICS.node("n1", FROM_NODE[0])
"""When a message on this topic arrives, everything that was published before it has arrived, or never will."""

ODD = ("a/b", "+", "n+", "n#", "%u", "%c")
"""Accounts that an operator may have created by mistake."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory, new_mosquitto, mosquitto_program) -> Iterator[int]:
    """Mosquitto with our settings, and accounts for the coordinator, two nodes and odd names; gives its port."""
    passwords = tmp_path_factory.mktemp("accounts") / "passwords"
    write_passwords(passwords, {name: name for name in ("coordinator", "n1", "n2", *ODD)})
    with new_mosquitto(docker_settings(passwords), mosquitto_program) as running:
        yield running.port


async def test_a_node_writes_its_own_topics_only(broker):
    """It cannot publish as another node, in another fleet, or as the coordinator."""
    last, *own = [TOPICS.node("n1", topic) for topic in FROM_NODE]
    forbidden = [TOPICS.node("n2", topic) for topic in FROM_NODE]
    forbidden += [ELSEWHERE.node("n1", topic) for topic in FROM_NODE]
    forbidden += [TOPICS.node(node, topic) for node in ("n1", "n2") for topic in TO_NODE]
    forbidden += [TOPICS.coordinator, TOPICS.references, f"{last}/below", "elsewhere"]
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await coordinator.subscribe("#", qos=1)
        assert await delivered(coordinator, node, [*forbidden, *own], last) == set(own)


async def test_a_node_reads_only_what_is_sent_to_it(broker):
    """Its own acknowledgements and orders, and what the coordinator sends to all; nothing to or from other nodes."""
    meant = [*(TOPICS.node("n1", topic) for topic in TO_NODE), TOPICS.references]
    others = [TOPICS.node("n2", topic) for topic in (*TO_NODE, *FROM_NODE)]
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await node.subscribe("#", qos=1)
        assert await delivered(node, coordinator, [*others, *meant], TOPICS.coordinator) == set(meant)


@pytest.mark.parametrize("wanted", ["$share/group/muster/v1/default/node/+/report", "$share/group/#", "$SYS/#"])
async def test_no_subscription_bypasses_the_acl(broker, wanted):
    """A shared subscription, or one to the broker's own topics, gets no message and takes none from the coordinator."""
    report = TOPICS.node("n2", FROM_NODE[2])
    async with (
        client(broker, "coordinator") as coordinator,
        client(broker, "n1") as spy,
        client(broker, "n2") as victim,
    ):
        await spy.subscribe([(wanted, 1), (TOPICS.coordinator, 1)])
        await coordinator.subscribe(TOPICS.every_node(FROM_NODE[2]), qos=1)
        for _ in range(4):  # a shared subscription takes turns
            assert await delivered(coordinator, victim, [], report) == set()
        await coordinator.publish(TOPICS.coordinator, b"x", qos=1)
        assert await arrived(spy, TOPICS.coordinator) == set()


@pytest.mark.parametrize("topic", [TOPICS.node("n2", FROM_NODE[0]), TOPICS.coordinator, "$SYS/broker/version"])
async def test_a_last_will_is_published_under_the_own_name_only(broker, topic):
    """The broker drops a last will on any other topic."""
    will = aiomqtt.Will(topic, b"x", qos=1, retain=True)
    async with client(broker, "coordinator") as coordinator:
        await coordinator.subscribe([("#", 1), ("$SYS/broker/version", 1)])
        with suppress(aiomqtt.MqttError):
            async with client(broker, "n1", will=will) as dying:
                connection: Any = dying._client.socket()
                connection.shutdown(socket.SHUT_RDWR)
        async with client(broker, "n1") as node:
            assert await delivered(coordinator, node, [], LAST) == set()


async def test_a_node_cannot_clear_retained_messages_of_others(broker):
    """Neither another node's nor the coordinator's."""
    theirs = {"n2": TOPICS.node("n2", FROM_NODE[0]), "coordinator": TOPICS.references}
    for owner, topic in theirs.items():
        async with client(broker, owner) as speaker, client(broker, "n1") as node:
            await speaker.publish(topic, b"kept", qos=1, retain=True)
            await node.publish(topic, b"", qos=1, retain=True)
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await coordinator.subscribe("muster/v1/#", qos=1)
        assert await delivered(coordinator, node, [], LAST) == {*theirs.values()}
        for topic in theirs.values():
            await coordinator.publish(topic, b"", qos=1, retain=True)


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_account_publishes_for_no_node(broker, name):
    """Wildcards and slashes in a user name do not match other nodes' topics in the ACL."""
    topics = [TOPICS.node(node, topic) for node in ("n1", "n2", "a") for topic in (*FROM_NODE, *TO_NODE)]
    topics += [TOPICS.coordinator, TOPICS.references]
    async with (
        client(broker, "coordinator") as coordinator,
        client(broker, name) as odd,
        client(broker, "n1") as node,
    ):
        await coordinator.subscribe([(TOPICS.node("+", topic), 1) for topic in FROM_NODE])
        for topic in topics:
            await odd.publish(topic, b"x", qos=1)
        assert await delivered(coordinator, node, [], LAST) == set()


@pytest.mark.parametrize("identifier", ["n2", "muster-default-n2", "", "+"])
async def test_an_account_has_one_connection(broker, identifier):
    """With any client id, a new connection ends the earlier one of the same account, and no other account's."""
    async with (
        client(broker, "n2", identifier="n2") as victim,
        client(broker, "n1") as earlier,
        client(broker, "n1", identifier=identifier),
    ):
        with pytest.raises(aiomqtt.MqttError):
            async with asyncio.timeout(20):
                async for _ in earlier.messages:
                    pass
        await victim.publish(TOPICS.node("n2", FROM_NODE[0]), b"x", qos=1)  # would fail on a connection that has ended


async def test_nobody_connects_without_an_account(broker):
    """The broker refuses a wrong password."""
    with pytest.raises(aiomqtt.MqttError):
        async with aiomqtt.Client("127.0.0.1", broker, username="n1", password="wrong"):
            pass
