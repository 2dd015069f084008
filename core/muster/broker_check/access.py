"""What the account of a node may do: publish as itself, read what is sent to it, and nothing else.

Each message that this sends is empty, and most are for a node that does not exist: where the broker lets one through
that it should not, nobody takes it for what it is not.
"""

from collections.abc import Awaitable, Callable, Mapping

import aiomqtt
from paho.mqtt.reasoncodes import ReasonCode

from muster.broker_check.connection import Account, BrokerAnswer, publish_empty, topics_before, unless_ended
from muster.model import Verdict
from muster.wire.topics import FROM_NODE, ROOT, TO_NODE, NodeTopic


async def writes(coordinator: Account, account: Account, node: str) -> BrokerAnswer:
    """The node publishes under its own name only."""
    own = [coordinator.topics.node(node, kind) for kind in FROM_NODE]
    forbidden = _not_to_be_written(coordinator, node)
    last = own[-1]
    async with coordinator.client() as listener:
        await listener.subscribe(f"{ROOT}/{coordinator.fleet}/#", qos=0)
        refused = await _publish(account, forbidden)
        async with account.client() as client:
            await publish_empty(client, own)
        try:
            arrived = await topics_before(listener, last) | {last}
        except TimeoutError:
            return BrokerAnswer(Verdict.FAIL, f"{node} cannot publish on {last}: its account must have its name")
    if wrong := _wrong(arrived, own, forbidden, f"{node} may publish on", f"{node} cannot publish on"):
        return BrokerAnswer(Verdict.FAIL, wrong)
    how = "by ending the connection" if refused else "without a word"
    return BrokerAnswer(Verdict.PASS, f"{len(own)} topics of its own; {len(forbidden)} others are refused, {how}")


def _not_to_be_written(coordinator: Account, node: str) -> list[str]:
    """Topics of another node, and of the coordinator."""
    topics, other = coordinator.topics, coordinator.other_node
    kinds = (*FROM_NODE, *TO_NODE)
    return [
        *(topics.node(other, kind) for kind in kinds),
        *(topics.node(node, kind) for kind in TO_NODE),
        topics.coordinator,
        topics.coordinator_echo,
        topics.references,
        coordinator.topic("as-a-node"),
    ]


async def _publish(account: Account, topics: list[str]) -> bool:
    """Tries to publish on each topic; True if the broker ended the connection for any."""
    has_ended = False
    for topic in topics:
        try:
            async with account.client() as client:
                await unless_ended(client, publish_empty(client, [topic]))
        except aiomqtt.MqttError:
            has_ended = True
    return has_ended


async def reads(coordinator: Account, account: Account, node: str) -> BrokerAnswer:
    """The node reads what is sent to it, and nothing that is sent to or by another."""
    topics, other = coordinator.topics, coordinator.other_node
    last, *own = [topics.node(node, kind) for kind in TO_NODE]
    forbidden = [*(topics.node(other, kind) for kind in (*FROM_NODE, *TO_NODE)), coordinator.topic("for-nobody")]
    wanted = [*forbidden, topics.every_node(NodeTopic.REPORT), "#"]
    taken = [topic for topic in wanted if await _may_subscribe(account, topic)]
    async with account.client() as listener:
        for topic in (*taken, *own, last):
            await listener.subscribe(topic, qos=0)
        async with coordinator.client() as speaker:
            await publish_empty(speaker, [*forbidden, *own, last])
        try:
            arrived = await topics_before(listener, last)
        except TimeoutError:
            return BrokerAnswer(Verdict.FAIL, f"{node} does not get what is sent to {last}")
    if wrong := _wrong(arrived, own, forbidden, f"{node} may read", f"{node} does not get what is sent to"):
        return BrokerAnswer(Verdict.FAIL, wrong)
    return BrokerAnswer(Verdict.PASS, f"what is sent to it; nothing of {len(forbidden)} topics that are not its own")


async def _may_subscribe(account: Account, topic: str) -> bool:
    """Whether a broker takes a subscription. It may refuse it in its answer, or by ending the connection."""
    try:
        async with account.client() as client:
            codes = await unless_ended(client, client.subscribe(topic, qos=0))
    except aiomqtt.MqttError:
        return False
    return not any(isinstance(code, ReasonCode) and code.is_failure for code in codes)


def _wrong(arrived: set[str], own: list[str], forbidden: list[str], may: str, cannot: str) -> str:
    """Which topics should not have arrived, or else which should have; empty if all is right."""
    if through := sorted(arrived & set(forbidden)):
        return f"{may} {_shown(through)}"
    missing = sorted(set(own) - arrived)
    return f"{cannot} {_shown(missing)}" if missing else ""


def _shown(topics: list[str]) -> str:
    """The first of them, and how many more there are."""
    return topics[0] + (f" and {len(topics) - 1} more" if len(topics) > 1 else "")


RIGHTS: Mapping[str, Callable[[Account, Account, str], Awaitable[BrokerAnswer]]] = {
    "a node's writing": writes,
    "a node's reading": reads,
}
"""By name; each takes the account of the coordinator, that of a node, and the node's name."""
