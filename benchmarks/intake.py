"""How many reports the coordinator takes and stores, beside how many messages a bare subscriber only counts.

Claim: the coordinator takes at least half the message rate that a bare aiomqtt subscriber takes from the same broker in
the same run, with every report stored.

Method: reports of 1 KiB with one run each, from 400 nodes in turns, are written down beforehand as MQTT packets of
QoS 1. A publisher in a process of its own sends them to a real Mosquitto as fast as it takes them. In turns the
receiver is the bare subscriber, in a process of its own, until it has counted the last message, or a real coordinator
with SQLite, until it has acknowledged every node's last report, which it does after the commit. Time runs from the
first packet. Afterwards the rows in the database are counted: every report must be there exactly once. What counts is
the median of the ratios of two turns that follow each other.

Limits: publisher, broker and receiver share the host's cores, so rates are lower than on hosts of their own. The nodes
are simulated: nobody but the benchmark hears the acks, and nothing is sent again. So each report says that it is
urgent: others would be deferred as soon as half a second of work waits.
"""

import argparse
import asyncio
import sqlite3
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
from benchmarks.figures import Figure, arguments, median_of, publish
from benchmarks.fleet import ROOT, Fleet, interpreter, mosquitto
from benchmarks.mqtt_packets import PUBLISH, QOS_1, packet, text

from muster.errors import Unavailable
from muster.model import Run, Verdict
from muster.wire.codec import ACK, decode, encode
from muster.wire.messages import Report
from muster.wire.topics import NodeTopic, Topics

LEAST_RATIO = 0.5
REPORT_BYTES = 1024
TAKEN_WITHIN_S = 30.0

FLEET = Topics("default")
BARE = Topics("bare")
"""Of another fleet, so that the coordinator does not get these."""

ANYBODY = "+"


@dataclass(frozen=True, slots=True)
class Load:
    """Prepared packets: `count` reports of one stream, `last` of them from each node."""

    file: Path
    stream: str
    count: int
    last: int

    @property
    def arguments(self) -> tuple[str, str]:
        """What the publisher needs to know."""
        return str(self.file), str(self.count)


def prepare(directory: Path, topics: Topics, stream: str, nodes: int, count: int) -> Load:
    """Writes the packets of a load, the nodes taking turns."""
    file = directory / f"{stream}.mqtt"
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    with file.open("wb") as out:
        for index in range(count):
            node, seq = names[index % nodes], index // nodes + 1
            out.write(published(topics.node(node, NodeTopic.REPORT), report(node, stream, seq), index % 65_535 + 1))
    return Load(file, stream, count, count // nodes)


def report(node: str, stream: str, seq: int) -> bytes:
    """A report of exactly REPORT_BYTES, as an agent would send it."""
    now = time.time()
    run = Run(
        id=f"{stream}-{node}-{seq}",
        node=node,
        check="nvml",
        verdict=Verdict.PASS,
        metrics={"temperature_c": [41.0] * 8, "power_w": [70.0] * 8},
        facts={"padding": ""},
        started_at=now,
        duration_s=0.01,
        seq=seq,
        cause="schedule",
    )
    made = Report(sent_at=now, node=node, stream=stream, after=seq - 1, through=seq, urgent=True, runs=(run,))
    padded = run.model_copy(update={"facts": {"padding": "x" * (REPORT_BYTES - len(encode(made)))}})
    return encode(made.model_copy(update={"runs": (padded,)}))


def published(topic: str, payload: bytes, identifier: int) -> bytes:
    """A message of QoS 1."""
    return packet(PUBLISH | QOS_1, text(topic) + identifier.to_bytes(2) + payload)


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of all turns."""
    rates: dict[str, list[float]] = {"coordinator": [], "bare": []}
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        for turn in range(options.turns + 1):  # the first one, in which the nodes are new, does not count
            for name in ("bare", "coordinator") if turn % 2 else ("coordinator", "bare"):
                topics = FLEET if name == "coordinator" else BARE
                load = prepare(directory, topics, f"{name}-{turn}", options.nodes, options.reports)
                rate = await (stored(load, broker, fleet) if name == "coordinator" else counted(load, broker))
                load.file.unlink()
                print(f"turn {turn}  {name:12}{rate:8.0f} messages/s", flush=True)
                rates[name] += [rate] if turn else []
    return figures(rates)


def figures(rates: dict[str, list[float]]) -> list[Figure]:
    """Both rates and the ratio in each turn."""
    ratios = [stored / counted for stored, counted in zip(rates["coordinator"], rates["bare"], strict=True)]
    return [
        median_of("coordinator, every report stored", "messages/s", rates["coordinator"]),
        median_of("bare subscriber", "messages/s", rates["bare"]),
        median_of("coordinator to bare subscriber", "ratio", ratios, (">=", LEAST_RATIO)),
    ]


async def counted(load: Load, broker: str) -> float:
    """Messages per second that the bare subscriber counts."""
    topic = BARE.every_node(NodeTopic.REPORT)
    async with AsyncExitStack() as stack:
        subscriber = await stack.enter_async_context(part("intake_subscriber", broker, topic, str(load.count)))
        publisher = await stack.enter_async_context(part("intake_publisher", broker, *load.arguments))
        began = await begin(publisher)
        ended = float(await line(subscriber))
    return load.count / (ended - began)


async def stored(load: Load, broker: str, fleet: Fleet) -> float:
    """Messages per second that the coordinator stores; Unavailable unless each is in the database exactly once."""
    where = urlsplit(broker)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(aiomqtt.Client(str(where.hostname), where.port or 1883))
        await client.subscribe(FLEET.node(ANYBODY, NodeTopic.ACK), qos=1)
        publisher = await stack.enter_async_context(part("intake_publisher", broker, *load.arguments))
        watch = asyncio.create_task(all_acknowledged(client, load), name="acks")
        began = await begin(publisher)
        try:
            async with asyncio.timeout(TAKEN_WITHIN_S):
                ended = await watch
        except TimeoutError:
            raise Unavailable("not every report was acknowledged: some were dropped, try fewer --reports") from None
    verify(fleet.database, load)
    return load.count / (ended - began)


async def all_acknowledged(client: aiomqtt.Client, load: Load) -> float:
    """When the last node's last report was acknowledged, by the monotonic clock."""
    waiting = load.count // load.last
    async for message in client.messages:
        ack = decode(bytes(message.payload), ACK)
        if ack.stream == load.stream and ack.stored_through == load.last:
            waiting -= 1
        if waiting == 0:
            break
    return time.monotonic()


def verify(database: Path, load: Load) -> None:
    """Counts the rows of the load."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        query = "SELECT count(*), count(DISTINCT id) FROM runs WHERE stream = ?"
        found = connection.execute(query, (load.stream,)).fetchone()
    if found != (load.count, load.count):
        raise Unavailable(f"{load.count} reports were sent; rows and distinct runs in the database: {found}")


@asynccontextmanager
async def part(module: str, broker: str, *options: str) -> AsyncIterator[Process]:
    """One of the benchmark's own programs, connected to the broker."""
    where = urlsplit(broker)
    command = interpreter("-m", f"benchmarks.{module}", str(where.hostname), str(where.port), *options)
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=ROOT)
    try:
        await line(process)
        yield process
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def begin(publisher: Process) -> float:
    """Lets the publisher begin; when it did so, by the monotonic clock, which it says at the end."""
    assert publisher.stdin
    publisher.stdin.write(b"\n")
    return float((await line(publisher)).split()[0])


async def line(process: Process) -> str:
    """The next line that a program prints."""
    assert process.stdout
    async with asyncio.timeout(TAKEN_WITHIN_S):
        text = (await process.stdout.readline()).decode()
    if not text:
        raise Unavailable(f"a part of the benchmark has ended with exit code {await process.wait()}")
    return text


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--turns", type=int, default=15, help="how often each receiver is measured")
    parser.add_argument("--reports", type=int, default=8_000, help="reports in a turn, a multiple of the nodes")
    parser.add_argument("--nodes", type=int, default=400, help="how many nodes they come from")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        found = asyncio.run(measure(options, Path(directory)))
    publish(options, found)


if __name__ == "__main__":
    main()
