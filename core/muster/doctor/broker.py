"""Whether the broker admits an account, and keeps the topics of others from it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress

import aiomqtt

from muster.broker_check.connection import Account, received, unless_ended
from muster.broker_check.trial import connected
from muster.config import BrokerSettings
from muster.doctor.setup_finding import SetupFinding
from muster.errors import MusterError
from muster.model import Verdict
from muster.mqtt import addresses
from muster.wire.topics import NodeTopic

LISTENED_S = 2.0
"""A broker sends what it has kept at once."""

SOME = 100


async def way_to_broker(
    broker: BrokerSettings,
    fleet: str,
    who: str,
    trials: Callable[[Account], Iterable[Awaitable[SetupFinding]]],
    *,
    is_connected: bool,
    identifier: str | None = None,
) -> AsyncIterator[SetupFinding]:
    """Whether the account of `who` gets in, and then the `trials` with it.

    Connects only while that daemon does not: a broker may end the daemon's connection for it.
    """
    if is_connected:
        yield SetupFinding("broker", Verdict.PASS, f"{who} is connected")
        yield SetupFinding("access", Verdict.SKIPPED, f"not tried while {who} is connected; stop it to try")
        return
    try:
        account = Account(broker, next(addresses(broker.agent_url)), fleet, identifier=identifier)
    except MusterError as error:
        yield SetupFinding("broker", Verdict.FAIL, str(error))
        return
    found = SetupFinding("broker", *await connected(account, who))
    yield found
    if found.verdict is Verdict.PASS:
        for trial in trials(account):
            yield await trial


async def keeps_apart(account: Account, node: str) -> SetupFinding:
    """The node gets none of the heartbeats that the broker has kept of others."""
    arrived: list[aiomqtt.Message] = []
    with suppress(aiomqtt.MqttError):  # a broker may end the connection of who asks for too much
        async with account.client() as client:
            await unless_ended(client, client.subscribe(account.topics.every_node(NodeTopic.PRESENCE), qos=0))
            arrived = await received(client, SOME, LISTENED_S)
    own = account.topics.node(node, NodeTopic.PRESENCE)
    if others := [message.topic.value for message in arrived if message.topic.value != own]:
        text = f"the account of {node} may read {others[0]}: give the broker the access list of `muster broker acl`"
        return SetupFinding("access", Verdict.FAIL, text)
    text = "nothing of other nodes can be read; `muster broker check --node` tries all rights of a node"
    return SetupFinding("access", Verdict.PASS, text)
