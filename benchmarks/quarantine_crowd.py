"""The simulated nodes of part `storm`: what they say, as MQTT packets, and their heartbeats."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.breakable_plugin.muster_breakable import check, lost
from benchmarks.intake import published

from muster.check import describe
from muster.model import Finding, Inventory, Run, verdict_of
from muster.wire.codec import encode
from muster.wire.messages import InventoryReport, NodeMessage, PluginInfo, Presence, Report
from muster.wire.topics import NodeTopic, Topics

TOPICS = Topics("default")
STREAM = "boot"

CHECK = describe(check(Path()))
PLUGIN = PluginInfo(name=CHECK.name, distribution=None, version=None, status="loaded", checks=(CHECK.name,))

BEAT_S = 10.0
"""How often a real agent says that it is there."""

SLICES = 100
"""The number of parts into which all heartbeats are divided; they are sent one after the other."""

CONNECT = b"\x10\x11\x00\x04MQTT\x04\x02\x00\x3c\x00\x05beats"


def first_words(nodes: Iterable[str]) -> list[bytes]:
    """What the nodes are made of, and that they are healthy."""
    return _packets(message for node in nodes for message in (_inventory(node), _report(node, 1)))


def faults(nodes: Iterable[str]) -> list[bytes]:
    """That the nodes have broken down."""
    return _packets(_report(node, 2, lost()) for node in nodes)


@asynccontextmanager
async def beating(nodes: list[str], broker: str) -> AsyncIterator[None]:
    """Has the nodes beat for as long as the context lasts."""
    where = urlsplit(broker)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(CONNECT)
    tasks = [
        asyncio.create_task(_beat(nodes, writer), name="beats"),
        asyncio.create_task(_heed(reader), name="confirmed"),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        writer.close()


async def _beat(nodes: list[str], writer: asyncio.StreamWriter) -> None:
    beats = _packets(Presence(sent_at=time.time(), node=node, online=True) for node in nodes)
    for start in cycle(range(SLICES)):
        writer.write(b"".join(beats[start::SLICES]))
        await writer.drain()
        await asyncio.sleep(BEAT_S / SLICES)


async def _heed(reader: asyncio.StreamReader) -> None:
    """Takes the broker's confirmations, which nobody needs."""
    while await reader.read(1 << 16):
        pass


def _inventory(node: str) -> InventoryReport:
    return InventoryReport(sent_at=time.time(), node=node, inventory=Inventory(), checks=(CHECK,), plugins=(PLUGIN,))


def _report(node: str, seq: int, *findings: Finding) -> Report:
    now = time.time()
    run = Run(
        id=f"{node}-{seq}",
        node=node,
        check=CHECK.name,
        verdict=verdict_of(findings),
        findings=findings,
        started_at=now,
        duration_s=0.001,
        seq=seq,
        cause="schedule",
        simulated=True,
    )
    return Report(sent_at=now, node=node, stream=STREAM, after=seq - 1, runs=(run,))


_TOPIC_OF = {InventoryReport: NodeTopic.INVENTORY, Presence: NodeTopic.PRESENCE, Report: NodeTopic.REPORT}


def _packets(messages: Iterable[NodeMessage]) -> list[bytes]:
    return [
        published(TOPICS.node(it.node, _TOPIC_OF[type(it)]), encode(it), number % 65_535 + 1)
        for number, it in enumerate(messages)
    ]
