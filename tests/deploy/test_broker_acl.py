"""The ACL file for Mosquitto: a node says what it may say under its own name, and hears only what is meant for it."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import aiomqtt
import pytest
from tests.brokers import docker_settings, write_passwords

from muster.wire.topics import FROM_NODE, TO_NODE, Topics

TOPICS = Topics("default")
ELSEWHERE = Topics("lab")
LAST = TOPICS.node("n1", FROM_NODE[0])
"""Whatever was published before it has arrived by then, or never will."""

ODD = ("a/b", "+", "n+", "n#", "%u", "%c")
"""Accounts that an operator may have made by mistake."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory, new_mosquitto, mosquitto_program) -> Iterator[int]:
    """Mosquitto with our settings and an account for the coordinator, two nodes and odd names; gives its port."""
    passwords = tmp_path_factory.mktemp("accounts") / "passwords"
    write_passwords(passwords, {name: name for name in ("coordinator", "n1", "n2", *ODD)})
    with new_mosquitto(docker_settings(passwords), mosquitto_program) as running:
        yield running.port


def client(port: int, name: str, **more) -> aiomqtt.Client:
    return aiomqtt.Client("127.0.0.1", port, username=name, password=name, **more)


async def arrived(listener: aiomqtt.Client, last: str = LAST) -> set[str]:
    """The topics on which something comes to `listener` before `last`."""
    topics: set[str] = set()
    async with asyncio.timeout(20):
        async for message in listener.messages:
            if message.topic.value == last:
                return topics
            topics.add(message.topic.value)
    return topics


async def heard(listener: aiomqtt.Client, sender: aiomqtt.Client, topics: list[str], last: str = LAST) -> set[str]:
    """What of `topics`, published by `sender`, comes to `listener`."""
    for topic in [*topics, last]:
        await sender.publish(topic, b"x", qos=1)
    return await arrived(listener, last)


async def test_a_node_writes_its_own_topics_only(broker):
    """Reports under another's name or in another fleet, orders and words of the coordinator never get through."""
    last, *own = [TOPICS.node("n1", topic) for topic in FROM_NODE]
    forbidden = [TOPICS.node("n2", topic) for topic in FROM_NODE]
    forbidden += [ELSEWHERE.node("n1", topic) for topic in FROM_NODE]
    forbidden += [TOPICS.node(node, topic) for node in ("n1", "n2") for topic in TO_NODE]
    forbidden += [TOPICS.coordinator, TOPICS.references, f"{last}/below", "elsewhere"]
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await coordinator.subscribe("#", qos=1)
        assert await heard(coordinator, node, [*forbidden, *own], last) == set(own)


async def test_a_node_reads_what_is_meant_for_it(broker):
    """Its own acks and orders and the coordinator's words, nothing of other nodes."""
    meant = [*(TOPICS.node("n1", topic) for topic in TO_NODE), TOPICS.references]
    others = [TOPICS.node("n2", topic) for topic in (*TO_NODE, *FROM_NODE)]
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await node.subscribe("#", qos=1)
        assert await heard(node, coordinator, [*others, *meant], TOPICS.coordinator) == set(meant)


@pytest.mark.parametrize("wanted", ["$share/group/muster/v1/default/node/+/report", "$share/group/#", "$SYS/#"])
async def test_no_subscription_leads_round_the_acl(broker, wanted):
    """A shared one brings nothing and takes nothing away from the coordinator; nor does one to the broker's own."""
    report = TOPICS.node("n2", FROM_NODE[2])
    async with (
        client(broker, "coordinator") as coordinator,
        client(broker, "n1") as spy,
        client(broker, "n2") as victim,
    ):
        await spy.subscribe([(wanted, 1), (TOPICS.coordinator, 1)])
        await coordinator.subscribe(TOPICS.every_node(FROM_NODE[2]), qos=1)
        for _ in range(4):  # a shared subscription takes turns
            assert await heard(coordinator, victim, [], report) == set()
        await coordinator.publish(TOPICS.coordinator, b"x", qos=1)
        assert await arrived(spy, TOPICS.coordinator) == set()


@pytest.mark.parametrize("topic", [TOPICS.node("n2", FROM_NODE[0]), TOPICS.coordinator, "$SYS/broker/version"])
async def test_a_last_will_is_said_under_the_own_name_only(broker, topic):
    """One for another's topic is dropped when its client is gone."""
    will = aiomqtt.Will(topic, b"x", qos=1, retain=True)
    async with client(broker, "coordinator") as coordinator:
        await coordinator.subscribe([("#", 1), ("$SYS/broker/version", 1)])
        with suppress(aiomqtt.MqttError):
            async with client(broker, "n1", will=will) as dying:
                connection: Any = dying._client.socket()
                connection.shutdown(socket.SHUT_RDWR)
        async with client(broker, "n1") as node:
            assert await heard(coordinator, node, []) == set()


async def test_what_another_has_retained_stays(broker):
    """A node clears neither another's words nor the coordinator's."""
    theirs = {"n2": TOPICS.node("n2", FROM_NODE[0]), "coordinator": TOPICS.references}
    for owner, topic in theirs.items():
        async with client(broker, owner) as speaker, client(broker, "n1") as node:
            await speaker.publish(topic, b"kept", qos=1, retain=True)
            await node.publish(topic, b"", qos=1, retain=True)
    async with client(broker, "coordinator") as coordinator, client(broker, "n1") as node:
        await coordinator.subscribe("muster/v1/#", qos=1)
        assert await heard(coordinator, node, []) == {*theirs.values()}
        for topic in theirs.values():
            await coordinator.publish(topic, b"", qos=1, retain=True)


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_account_speaks_for_no_node(broker, name):
    """Wildcards in a user name are no wildcards in the ACL, nor do its slashes lead to another's topics."""
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
        assert await heard(coordinator, node, []) == set()


@pytest.mark.parametrize("identifier", ["n2", "muster-default-n2", "", "+"])
async def test_an_account_is_one_client(broker, identifier):
    """Whatever id it comes with, it takes the place of its own connection and of nobody else's."""
    async with client(broker, "n2", identifier="n2") as victim, client(broker, "n1") as node:
        with pytest.raises(aiomqtt.MqttError):
            async with client(broker, "n1", identifier=identifier), asyncio.timeout(20):
                async for _ in node.messages:
                    pass
        await victim.publish(TOPICS.node("n2", FROM_NODE[0]), b"x", qos=1)  # would fail on a connection that has ended


async def test_nobody_comes_in_without_an_account(broker):
    """A wrong password ends at the broker."""
    with pytest.raises(aiomqtt.MqttError):
        async with aiomqtt.Client("127.0.0.1", broker, username="n1", password="wrong"):
            pass
