"""A thousand nodes of ten thousand break at the same time, behind a real Mosquitto and a real coordinator."""

import argparse
import asyncio
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import psutil
from benchmarks.figures import Figure
from benchmarks.fleet import Fleet, install_plugin, mosquitto
from benchmarks.intake import begin, part
from benchmarks.kubernetes_standin.server import Request, StandIn
from benchmarks.quarantine_cluster import PER_MINUTE, PLUGIN, cluster, cordons, enforcing, node_names, node_of, until
from benchmarks.quarantine_crowd import beating, faults, first_words

from muster.errors import Unavailable

MAX_DECIDED_S = 2.0
LEAST_PER_S = PER_MINUTE / 60

POLL_S = 0.02
DONE_WITHIN_S = 300.0

ACCEPTED = "SELECT count(*) FROM cases WHERE json_extract(body, '$.decision.state') = 'IN_SERVICE'"
SURVEYED = "SELECT count(*) FROM cases WHERE json_extract(body, '$.actors.observed.kubernetes') IS NOT NULL"
CORDONED = "SELECT count(*) FROM cases WHERE json_extract(body, '$.decision.state') = 'CORDONED'"
DECIDED = (
    "SELECT count(*) FROM cases WHERE node <= ? AND json_extract(body, '$.decision.state') IN ('CORDONED', 'HELD')"
)
"""Only of the nodes up to a name: to read all would keep a core busy."""


async def storm(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of one storm."""
    (directory / "site").mkdir()
    variables = install_plugin(PLUGIN, directory / "site")
    nodes = node_names(options.nodes)
    async with (
        cluster(directory / "kubernetes", nodes) as standin,
        mosquitto(directory) as broker,
        beating(nodes, broker),
    ):
        async with Fleet(directory, broker, variables=variables) as observing:
            await join(nodes, broker, observing.database)
        async with Fleet(directory, broker, settings=enforcing(standin), variables=variables) as fleet:
            await reached(len(nodes), fleet.database, SURVEYED)
            return await struck(nodes[: options.broken], broker, fleet, standin)


async def join(nodes: list[str], broker: str, database: Path) -> None:
    """Lets all nodes join and pass their first check at the same time; afterwards they are in service."""
    await sent(first_words(nodes), broker, database.parent)
    await reached(len(nodes), database, ACCEPTED)


async def struck(nodes: list[str], broker: str, fleet: Fleet, standin: StandIn) -> list[Figure]:
    """The figures when these nodes break; Unavailable unless they and no others are cordoned, each of them once."""
    coordinator = psutil.Process(fleet.parts["coordinator"].process.pid)
    processor_before_s = processor_s(coordinator)
    before = len(standin.requests)
    began = await sent(faults(nodes), broker, fleet.database.parent)
    await reached(len(nodes), fleet.database, DECIDED, nodes[-1])
    decided, taken_s = time.monotonic(), processor_s(coordinator)
    await reached(len(nodes), fleet.database, CORDONED)
    calls = await all_cordoned(nodes, standin, before)
    lasted_s = calls[-1].at - calls[0].at
    return [
        Figure(what="all decided and stored", unit="s", value=decided - began, target=("<=", MAX_DECIDED_S)),
        Figure(what="coordinator's processor time until then", unit="s", value=taken_s - processor_before_s),
        Figure(what="cordoned", unit="nodes/s", value=(len(nodes) - 1) / lasted_s, target=(">=", LEAST_PER_S)),
        Figure(what="until the first call that cordons", unit="s", value=calls[0].at - began),
        Figure(what="until the last call that cordons", unit="s", value=calls[-1].at - began),
        Figure(
            what="coordinator's processor time for all", unit="s", value=processor_s(coordinator) - processor_before_s
        ),
        Figure(what="cordoned exactly once", unit="nodes", value=len(calls), target=(">=", len(nodes))),
    ]


async def sent(packets: list[bytes], broker: str, directory: Path) -> float:
    """Sends packets as fast as the broker takes them; when that began, by the monotonic clock."""
    file = directory / "packets.mqtt"
    file.write_bytes(b"".join(packets))
    async with part("intake_publisher", broker, str(file), str(len(packets))) as publisher:
        return await begin(publisher)


async def reached(count: int, database: Path, query: str, *parameters: str) -> None:
    """Returns when a query that counts rows of the database returns this number; Unavailable if it never does."""
    deadline = time.monotonic() + DONE_WITHIN_S
    while (found := await asyncio.to_thread(counted, database, query, *parameters)) != count:
        if time.monotonic() > deadline:
            raise Unavailable(f"of {count} nodes only {found} within {DONE_WITHIN_S:g} s: {query}")
        await asyncio.sleep(POLL_S)


def counted(database: Path, query: str, *parameters: str) -> int:
    """What a query counts."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute(query, parameters).fetchone()[0])


async def all_cordoned(nodes: list[str], standin: StandIn, before: int) -> list[Request]:
    """The requests that cordon these nodes, when each has come; Unavailable unless there is just one for each."""

    def are_cordoned() -> bool:
        return all(standin.node(node)["spec"].get("unschedulable") for node in nodes)

    await until(are_cordoned, DONE_WITHIN_S, "every broken node is cordoned")
    calls = cordons(standin, before)
    if sorted(map(node_of, calls)) != nodes:
        raise Unavailable(f"not each of {len(nodes)} nodes was cordoned once: {Counter(map(node_of, calls))}")
    return calls


def processor_s(process: psutil.Process) -> float:
    """Seconds of processor time since it began, in user space and in the kernel."""
    return sum(process.cpu_times()[:2])
