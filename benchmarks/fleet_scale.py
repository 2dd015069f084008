"""What a fleet of ten thousand nodes costs its coordinator, and how it stands a restart of coordinator and broker.

Claim: at default cadences, 10,000 nodes with eight GPUs take less than half a core and 1 GiB of one coordinator, all
have joined within 60 s, a fault is in the API within 1 s (p99), a sweep of all nodes in pairs is formed, run and
recorded within 10 s beyond its payload, and after a restart it decides within 5 s.

Method: a real agent is recorded first (see `scale_template`): its inventory, and one run of each background check that
needs no idle node. Then simulated agents repeat these at their cadences with the real link, encoder and timing, each
over a connection of its own to a real Mosquitto; several processes run them. The coordinator is real, with SQLite, with
`--postgres` (a server of its own for each fleet, from Debian's package), or with the database at `--store`, which must
be empty and so takes one number of nodes. For each number of nodes, in this order: the time until all have joined;
after `--settle-s`, the processor time of coordinator and broker, memory, and the growth of the database over
`--window-s`; the time from a fault on a node until the API says so, for `--faults` nodes one after the other; the API's
latencies; a sweep in pairs whose payload is simulated (`lean_member`: a real agent's answers, but no processes); an
orderly restart of the coordinator; an orderly restart of the broker, after which each node must have been heard again
and none may be lost.

Beside it, with `--prometheus`: a real Prometheus that scrapes the same numbers of as many nodes, after the rest has
ended. `python -m benchmarks.scale_plot` draws the growth from the figures that `--json` wrote.

Limits: agents, broker and coordinator share this host's cores, so latencies are higher than on hosts of their own,
unless `--apart` leaves two cores to broker, coordinator and this program, and all others to the agents. The agents'
outboxes are in memory, they choose among prepared runs (`scale_runs`), and their connections have no TLS.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
from benchmarks.figures import Figure, Target, arguments, median_of, percentile, publish
from benchmarks.private_postgres import private_postgres
from benchmarks.prometheus_scrape import scrape
from benchmarks.scale_agents import node_name
from benchmarks.scale_database import ScaleDatabase, opened
from benchmarks.scale_parts import MIB, Broker, Coordinator, Crowd, until
from benchmarks.scale_sweep import sweep_all
from benchmarks.scale_template import Template, recorded

DAY_S = 86_400.0
LARGE, MEDIUM = 10_000, 2_000
JOINED_WITHIN_S, BACK_WITHIN_S = 600.0, 600.0
FAULT = "nvml.ecc_uncorrected"
FOUND_WITHIN_S = 60.0
LOOK_S = 0.003
SERVER_CORES = 2


class Measuring:
    """Takes the figures of one number of nodes; `targets` hold for the largest fleet that was asked for."""

    def __init__(self, nodes: int, options: argparse.Namespace) -> None:
        self.nodes = nodes
        self.options = options
        self.figures: list[Figure] = []

    def note(self, what: str, unit: str, value: float, target: Target | None = None) -> None:
        """Adds a figure and prints it."""
        self.add(Figure(what=f"{what}, {self.nodes} nodes", unit=unit, value=value, target=target))

    def add(self, figure: Figure) -> None:
        """Adds a figure and prints it."""
        print(f"{figure.what}: {figure.value:.4g} {figure.unit} {figure.spread or ''}", flush=True)
        self.figures.append(figure)


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of all numbers of nodes."""
    template = directory / "template.json"
    recording = await recorded(directory)
    figures: list[Figure] = []
    for nodes in options.nodes:
        place = directory / str(nodes)
        place.mkdir()
        figures += await one_fleet(nodes, options, place, template)
        if options.prometheus:
            figures += await beside(nodes, options, place, recording)
    return figures


async def beside(nodes: int, options: argparse.Namespace, place: Path, template: Template) -> list[Figure]:
    """What Prometheus takes to scrape the same numbers."""
    taken = Measuring(nodes, options)
    found = await scrape(nodes, template, place, options.settle_s, options.window_s)
    taken.note("Prometheus, share of a core", "%", found.share)
    taken.note("memory of Prometheus", "MiB", found.mib)
    taken.note("samples of Prometheus", "1/s", found.samples_per_s)
    return taken.figures


async def one_fleet(nodes: int, options: argparse.Namespace, directory: Path, template: Path) -> list[Figure]:
    """The figures of one number of nodes."""
    taken = Measuring(nodes, options)
    broker = Broker(directory)
    crowd = Crowd(options.agents_cores)
    async with AsyncExitStack() as stack:
        url = stack.enter_context(private_postgres()).url if options.postgres else options.store
        coordinator = Coordinator(directory, broker.url, url)
        await broker.start()
        stack.push_async_callback(broker.stop)
        await coordinator.start()
        stack.push_async_callback(coordinator.stop)
        database = await stack.enter_async_context(opened(coordinator.data_dir, coordinator.store_url))
        began = time.monotonic()
        await stack.enter_async_context(crowd.running(nodes, options.processes, broker.url, template))
        await until(lambda: all_joined(coordinator, nodes), JOINED_WITHIN_S)
        taken.note("all have joined", "s", time.monotonic() - began, ("<=", 60.0))
        await asyncio.sleep(options.settle_s)
        await resources(taken, coordinator, database, broker, crowd)
        await faults(taken, coordinator, crowd)
        await latencies(taken, coordinator)
        await swept(taken, coordinator, database)
        await restarted_coordinator(taken, coordinator)
        await restarted_broker(taken, coordinator, broker)
    return taken.figures


async def all_joined(coordinator: Coordinator, nodes: int) -> bool:
    """Whether the coordinator knows all nodes, and none is lost."""
    known, lost = await asyncio.gather(coordinator.metric("muster_nodes"), coordinator.metric("muster_nodes_lost"))
    return known == nodes and lost == 0


async def resources(
    taken: Measuring, coordinator: Coordinator, database: ScaleDatabase, broker: Broker, crowd: Crowd
) -> None:
    """Processor time, memory, traffic and growth of the database, over a window."""
    parts = {"coordinator": coordinator.process, "broker": psutil.Process(broker.process.pid)}
    before = {name: cpu_s(process) for name, process in parts.items()}
    size, runs = await database.size_bytes(), await coordinator.metric("muster_runs")
    sent, received = await crowd.traffic()
    began = time.monotonic()
    await asyncio.sleep(taken.options.window_s)
    stored = await coordinator.metric("muster_runs") - runs
    passed = time.monotonic() - began
    for name, process in parts.items():
        share = 100 * (cpu_s(process) - before[name]) / passed
        taken.note(f"{name}, share of a core", "%", share, share_target(name, taken.nodes))
    taken.note("runs stored", "1/s", stored / passed)
    sent_since, received_since = await crowd.traffic()
    a_day = DAY_S / passed / taken.nodes / 1e6
    taken.note("sent by each node", "MB/day", (sent_since - sent) * a_day)
    taken.note("received by each node", "MB/day", (received_since - received) * a_day)
    both = (sent_since - sent + received_since - received) * a_day
    taken.note("traffic of each node", "MB/day", both, ("<=", 3.0))
    grown = (await database.size_bytes() - size) / passed * DAY_S / taken.nodes
    taken.note("growth of the database for each node", "MB/day", grown / 1e6)
    taken.note("memory of the coordinator", "MiB", coordinator.process.memory_info().rss / MIB, ("<=", 1024.0))
    taken.note("commands that wait to be stored", "commands", await coordinator.metric("muster_backlog"))


def share_target(part: str, nodes: int) -> Target | None:
    """What share of a core the coordinator may take."""
    return ("<=", {LARGE: 50.0, MEDIUM: 15.0}[nodes]) if part == "coordinator" and nodes in (LARGE, MEDIUM) else None


def cpu_s(process: psutil.Process) -> float:
    """Processor seconds of a process since it began."""
    return sum(process.cpu_times()[:2])


async def faults(taken: Measuring, coordinator: Coordinator, crowd: Crowd) -> None:
    """Seconds from a fault until the API says so."""
    delays = []
    for number in range(0, taken.nodes, max(1, taken.nodes // taken.options.faults)):
        at = await crowd.fail(number, FAULT)
        await found(coordinator, node_name(number))
        delays.append(time.time() - at)
    taken.add(median_of(f"fault to API, {taken.nodes} nodes", "s", delays))
    taken.note("fault to API, p99", "s", percentile(delays, 99), ("<=", 1.0))


async def found(coordinator: Coordinator, node: str) -> None:
    """Returns when the API shows the fault of a node."""

    async def is_found() -> bool:
        return any(each["code"] == FAULT for each in (await ask(coordinator, "nodes", node))["findings"])

    await until(is_found, FOUND_WITHIN_S, LOOK_S)


async def ask(coordinator: Coordinator, *path: str) -> dict[str, list[dict[str, str]]]:
    """An answer of the API."""
    answer: dict[str, list[dict[str, str]]] = await asyncio.to_thread(coordinator.client.get, *path)
    return answer


async def latencies(taken: Measuring, coordinator: Coordinator) -> None:
    """How long requests take: each alone, and all pages of the nodes one after the other."""
    client = coordinator.client
    requests: dict[str, Callable[[], object]] = {
        "/fleet": lambda: client.get("fleet"),
        "/nodes/NODE": lambda: client.get("nodes", node_name(0)),
        "/nodes, first page of 100": lambda: client.get("nodes", limit=100),
        "/metrics": coordinator.metrics_text,
    }
    for name, request in requests.items():
        took = [await seconds_of(request) for _ in range(taken.options.requests)]
        taken.note(f"{name}, p95", "s", percentile(took, 95), ("<=", 0.1))
    all_pages = [await seconds_of(lambda: client.pages("nodes")) for _ in range(3)]
    taken.add(median_of(f"all pages of /nodes, {taken.nodes} nodes", "s", all_pages))


async def seconds_of(request: Callable[[], object]) -> float:
    """How long a request takes."""
    began = time.monotonic()
    await asyncio.to_thread(request)
    return time.monotonic() - began


async def swept(taken: Measuring, coordinator: Coordinator, database: ScaleDatabase) -> None:
    """Seconds beyond its payload that a sweep of all nodes in pairs takes."""
    work_s = taken.options.sweep_work_s
    found = await sweep_all(coordinator, database, taken.nodes, work_s)
    what = "sweep in pairs, formed, run and recorded beyond its simulated payload"
    taken.note(what, "s", found.recorded_s - work_s, ("<=", 10.0))
    taken.note("processor time of the coordinator during the sweep", "s", found.processor_s)
    taken.note("runs of the sweep in the database", "s", found.reported_s - work_s)
    taken.note("runs of the sweep that are missing", "runs", found.missing, ("<=", 0.0))


async def restarted_coordinator(taken: Measuring, coordinator: Coordinator) -> None:
    """Seconds from the start of a new coordinator until it stores what the nodes report."""
    await coordinator.stop()
    began = time.monotonic()
    await coordinator.start()
    taken.note("restart until it answers", "s", time.monotonic() - began)
    await until(lambda: stores(coordinator), 120)
    taken.note("restart until it decides", "s", time.monotonic() - began, ("<=", 5.0))
    taken.note("memory after the restart", "MiB", coordinator.process.memory_info().rss / MIB, ("<=", 1024.0))


async def stores(coordinator: Coordinator) -> bool:
    """Whether it has stored a run since its start."""
    return await coordinator.metric("muster_runs") > 0


async def restarted_broker(taken: Measuring, coordinator: Coordinator, broker: Broker) -> None:
    """Seconds until all nodes have been heard again after a restart of the broker, and how many were lost by it."""
    await until(lambda: all_joined(coordinator, taken.nodes), BACK_WITHIN_S)
    lost_before = await stories_of_loss(coordinator)
    await broker.stop()
    began = time.monotonic()
    await broker.start()
    most_lost = 0.0
    reports = await coordinator.metric("muster_reports")

    async def all_back() -> bool:
        nonlocal most_lost
        most_lost = max(most_lost, await coordinator.metric("muster_nodes_lost"))
        taken_since = await coordinator.metric("muster_reports") - reports
        return taken_since > taken.nodes and await all_joined(coordinator, taken.nodes)

    await until(all_back, BACK_WITHIN_S)
    taken.note("all back after a restart of the broker", "s", time.monotonic() - began, ("<=", 60.0))
    taken.note("nodes lost meanwhile, at most", "nodes", most_lost, ("<=", 0.0))
    taken.note("stories of a loss", "entries", await stories_of_loss(coordinator) - lost_before, ("<=", 0.0))


async def stories_of_loss(coordinator: Coordinator) -> float:
    """How many entries of stories say that a node was lost."""
    async with opened(coordinator.data_dir, coordinator.store_url) as database:
        query = "SELECT count(*) FROM story WHERE body LIKE :lost"
        return float(await database.scalar(query, lost='%"kind":"lost"%'))


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 2_000, 5_000, 10_000], help="sizes of fleets")
    parser.add_argument("--processes", type=int, default=4, help="processes of simulated agents")
    parser.add_argument("--settle-s", type=float, default=60.0, help="seconds before the window")
    parser.add_argument("--window-s", type=float, default=60.0, help="seconds over which processor time is taken")
    parser.add_argument("--faults", type=int, default=100, help="nodes that break, one after the other")
    parser.add_argument("--requests", type=int, default=50, help="requests for each latency")
    parser.add_argument("--sweep-work-s", type=float, default=2.0, help="how long the ranks of the sweep work")
    parser.add_argument("--store", help="URL of an empty database, if not SQLite")
    parser.add_argument("--postgres", action="store_true", help="with a PostgreSQL server of its own")
    parser.add_argument("--prometheus", action="store_true", help="with a Prometheus beside it")
    parser.add_argument("--apart", action="store_true", help="two cores for the servers, the others for the agents")
    options = parser.parse_args()
    if min(options.faults, options.requests) < 1:
        parser.error("--faults and --requests: use at least 1")
    if options.store and (options.postgres or len(options.nodes) > 1):
        parser.error("--store takes one number of nodes, and no --postgres")
    cores = sorted(os.sched_getaffinity(0))
    if options.apart and len(cores) <= SERVER_CORES:
        parser.error(f"--apart needs more than {SERVER_CORES} cores, and this process may use {len(cores)}")
    options.agents_cores = cores[SERVER_CORES:] if options.apart else None
    if options.apart:
        os.sched_setaffinity(0, cores[:SERVER_CORES])
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
