"""Nodes of a large fleet that stay as they are: each has sent its inventory and a run of each check, and beats.

One connection speaks for all of them, so thousands cost this host little beside what is measured.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import aiomqtt
from benchmarks.scale_template import Template

import muster
from muster.wire import codec
from muster.wire.deflate import deflated
from muster.wire.messages import Presence, new_id
from muster.wire.topics import NodeTopic, Topics

BEAT_S = 20.0
"""A node is lost 30 s after its last heartbeat."""

AT_ONCE = 50

TOPICS = Topics("default")
ACKNOWLEDGEMENTS = TOPICS.every_node(NodeTopic.ACK)

RESEND_S = 5.0
"""A coordinator that is short of time drops reports unread: nodes send them again."""


@asynccontextmanager
async def beating(broker: str, template: Template, nodes: Sequence[str]) -> AsyncIterator[None]:
    """These nodes, whose inventory is known, report their runs and beat while the context lasts."""
    host, port = broker.removeprefix("mqtt://").split(":")
    async with aiomqtt.Client(host, int(port)) as client, asyncio.TaskGroup() as tasks:
        await client.subscribe(ACKNOWLEDGEMENTS, qos=1)
        for start in range(0, len(nodes), AT_ONCE):
            await _deliver(client, {node: _report(node, template) for node in nodes[start : start + AT_ONCE]})
        await client.unsubscribe(ACKNOWLEDGEMENTS)
        beats = tasks.create_task(_beat(client, nodes))
        yield
        beats.cancel()


async def _deliver(client: aiomqtt.Client, reports: dict[str, bytes]) -> None:
    """Sends the report of each node until the coordinator has stored all of them."""
    while reports:
        for node, report in reports.items():
            await client.publish(_topic(node, NodeTopic.REPORT), report, qos=1)
        with suppress(TimeoutError):
            async with asyncio.timeout(RESEND_S):
                while reports:
                    acknowledged = await anext(client.messages)
                    assert isinstance(acknowledged.payload, bytes)
                    if codec.decode(acknowledged.payload, codec.ACK).stored_through > 0:
                        reports.pop(TOPICS.parse_node(acknowledged.topic.value)[0], None)


async def _beat(client: aiomqtt.Client, nodes: Sequence[str]) -> None:
    while True:
        for start in range(0, len(nodes), AT_ONCE):
            for node in nodes[start : start + AT_ONCE]:
                presence = Presence(sent_at=time.time(), node=node, online=True, version=muster.__version__)
                await client.publish(_topic(node, NodeTopic.PRESENCE), deflated(codec.encode_short(presence)))
            await asyncio.sleep(BEAT_S * AT_ONCE / len(nodes))


def _report(node: str, template: Template) -> bytes:
    runs = [run for run, _ in template.checks.values()]
    changed = [
        run.model_copy(update={"id": new_id(), "node": node, "started_at": time.time(), "seq": seq})
        for seq, run in enumerate(runs, start=1)
    ]
    report = codec.encode_report(
        sent_at=time.time(),
        node=node,
        stream=new_id(),
        after=0,
        through=len(runs),
        urgent=False,
        runs=[run.model_dump_json(by_alias=True) for run in changed],
    )
    return deflated(report)


def _topic(node: str, topic: NodeTopic) -> str:
    return TOPICS.node(node, topic)
