"""How long the list of a large fleet takes: the API's pages, `muster node list`, and how long others wait meanwhile.

Claim: with 10,000 nodes, 95 % of all pages are answered within 100 ms, `muster node list` takes at most 2 s, and no
other request waits more than 50 ms longer because of them.

Method: a real agent with eight simulated GPUs is recorded (`scale_template`). Then a real coordinator with Mosquitto
gets its inventory in the names of all nodes. Pages of 1,000 nodes are read one after the other, as the command does,
while another client asks /healthz all the time; beforehand it asks as often with nobody else there.

Limits: the nodes have no findings and send nothing after their inventory, so the coordinator is idle otherwise. Client
and coordinator share the cores.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import aiomqtt
from benchmarks.figures import Figure, arguments, median_of, percentile, publish
from benchmarks.fleet import POLL_S, Fleet, mosquitto
from benchmarks.scale_parts import until
from benchmarks.scale_template import Template, recorded

import muster
from muster.client import PAGE, Client
from muster.errors import Unavailable
from muster.wire import codec
from muster.wire.messages import Presence
from muster.wire.topics import NodeTopic, Topics

JOINED_WITHIN_S = 300.0
AT_ONCE = 250
PROBES = 200
COMMANDS = 3
PAGES = {"/nodes": ("nodes",), "/fleet/nodes": ("fleet", "nodes")}


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of one fleet."""
    names = [f"node-{number:05}" for number in range(options.nodes)]
    template = await recorded(directory)
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet:
        await join(fleet, broker, template, names)
        figures = [await undisturbed(fleet.url)]
        for name, path in PAGES.items():
            figures += await pages(fleet, name, path, options.rounds)
        figures += await command(fleet.url)
    return figures


async def join(fleet: Fleet, broker: str, template: Template, names: list[str]) -> None:
    """Sends a heartbeat and the inventory of every node, and returns when the coordinator knows them all.

    The broker keeps both, as it does those of agents: the coordinator may begin to listen in the middle of it. An
    inventory alone, when it was kept, is no sign that its node is there.
    """
    host, port = broker.removeprefix("mqtt://").split(":")
    topics = Topics("default")
    async with aiomqtt.Client(host, int(port)) as client:
        for begin in range(0, len(names), AT_ONCE):
            batch = names[begin : begin + AT_ONCE]
            for name in batch:
                presence = Presence(sent_at=time.time(), node=name, online=True, version=muster.__version__)
                for topic, message in (
                    (NodeTopic.PRESENCE, presence),
                    (NodeTopic.INVENTORY, template.inventory_of(name)),
                ):
                    await client.publish(topics.node(name, topic), codec.encode(message), qos=1, retain=True)
            await until(partial(knows, fleet, begin + len(batch)), JOINED_WITHIN_S, POLL_S)


async def knows(fleet: Fleet, nodes: int) -> bool:
    """Whether the coordinator knows that many nodes."""
    answer: dict[str, int] = await asyncio.to_thread(fleet.client.get, "fleet")
    return answer["nodes"] >= nodes


async def undisturbed(url: str) -> Figure:
    """How long /healthz takes while nobody else asks."""
    return median_of("/healthz, alone", "s", [await asyncio.to_thread(probe, url) for _ in range(PROBES)])


async def pages(fleet: Fleet, name: str, path: tuple[str, ...], rounds: int) -> list[Figure]:
    """How long the pages of a list take, how large they are, and how long /healthz takes meanwhile."""
    reading = asyncio.create_task(asyncio.to_thread(read_all, fleet.client, path, rounds))
    waits = []
    while not reading.done():
        waits.append(await asyncio.to_thread(probe, fleet.url))
    took, size = await reading
    return [
        Figure(what=f"{name}, p95 of a page", unit="s", value=percentile(took, 95), target=("<=", 0.1)),
        Figure(what=f"{name}, all of it", unit="MB", value=size / 1e6),
        median_of(f"/healthz beside {name}", "s", waits),
        Figure(what=f"/healthz beside {name}, most", unit="s", value=max(waits), target=("<=", 0.05)),
    ]


def read_all(client: Client, path: tuple[str, ...], rounds: int) -> tuple[list[float], int]:
    """Seconds for each page, and the bytes of all pages. The JSON is not read: that would delay the probe beside it."""
    took, size = [], 0
    for _ in range(rounds):
        cursor, size = None, 0
        while True:
            began = time.monotonic()
            text = client.text(*path, limit=str(PAGE), **({} if cursor is None else {"cursor": cursor}))
            took.append(time.monotonic() - began)
            size += len(text)
            cursor = json.loads(text.rpartition('"next_cursor":')[2].removesuffix("}"))
            if cursor is None:
                break
    return took, size


def probe(url: str) -> float:
    """Seconds that a request to /healthz takes."""
    began = time.monotonic()
    with closing(HTTPConnection(url.removeprefix("http://"), timeout=60)) as connection:
        connection.request("GET", "/healthz")
        connection.getresponse().read()
    return time.monotonic() - began


async def command(url: str) -> list[Figure]:
    """How long `muster node list` takes, and how much processor time."""
    took, before = [], os.times()
    for _ in range(COMMANDS):
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "muster", "node", "list", "--url", url), stdout=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            raise Unavailable("muster node list has failed")
        took.append(time.monotonic() - began)
    after = os.times()
    cpu_s = after.children_user - before.children_user + after.children_system - before.children_system
    return [
        median_of("muster node list", "s", took, ("<=", 2.0)),
        Figure(what="muster node list, processor time", unit="s", value=cpu_s / COMMANDS),
    ]


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=10_000, help="how many nodes the fleet has")
    parser.add_argument("--rounds", type=int, default=3, help="how often each list is read")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
