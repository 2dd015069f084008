"""From a fault on a node to the call that cordons it, one after the other."""

import argparse
import asyncio
import os
import time
from pathlib import Path

from benchmarks.figures import Figure, median_of
from benchmarks.fleet import Fleet, install_plugin, mosquitto
from benchmarks.kubernetes_standin.server import StandIn
from benchmarks.quarantine_cluster import (
    PLUGIN,
    cluster,
    cordons,
    enforcing,
    is_in_service,
    node_names,
    node_of,
    until,
)

MAX_P50_MS = 250.0
MAX_P99_MS = 1000.0

APART_S = 2.0
"""Between two faults of an agent: its watch rests for a second after each."""

BEAT_S = 0.25
"""The coordinator's timer; pauses are spread over it, so that no fault keeps step with it."""

DONE_WITHIN_S = 30.0

OTHERS = ("fabric", "gemm", "host", "kernel_log", "memory", "nvml", "training")
"""The built-in plugins that check something by themselves. A host without GPUs is not healthy for all of them."""


class Breakable:
    """What can break on the node of an agent: the other end of the plugin `breakable`."""

    def __init__(self, node: str, directory: Path) -> None:
        self.node = node
        self.settings = {"plugins": {"disabled": [*OTHERS], "breakable": {"directory": str(directory)}}}
        self.broken_at = -APART_S
        self._broken = directory / "broken"
        directory.mkdir()
        os.mkfifo(directory / "wake")
        self._wake = os.open(directory / "wake", os.O_RDWR)

    def break_down(self) -> None:
        """Begins a fault, and wakes the check."""
        self._broken.touch()
        self.broken_at = time.monotonic()
        os.write(self._wake, b"!")

    def repair(self) -> None:
        """Ends the fault."""
        self._broken.unlink()


async def latency(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The median and the 99th percentile over all faults."""
    (directory / "site").mkdir()
    variables = install_plugin(PLUGIN, directory / "site")
    nodes = node_names(options.agents)
    async with (
        cluster(directory / "kubernetes", nodes) as standin,
        mosquitto(directory) as broker,
        Fleet(directory, broker, settings=enforcing(standin), variables=variables) as fleet,
    ):
        agents = [Breakable(node, directory / f"breakable-{node}") for node in nodes]
        for agent in agents:
            await fleet.start_agents(agent.node, settings=agent.settings, variables=variables)
        for node in nodes:
            await back_in_service(standin, node)
        latencies_ms = []
        for number in range(options.faults):
            pause_s = BEAT_S * (number * 0.618 % 1)
            latencies_ms.append(await broken(agents[number % len(agents)], fleet, standin, pause_s))
    p50 = median_of("from the fault to the call that cordons", "ms", latencies_ms, ("<=", MAX_P50_MS))
    p99 = Figure(what="its 99th percentile", unit="ms", value=p50.spread["p99"], target=("<=", MAX_P99_MS))
    return [p50, p99]


async def broken(agent: Breakable, fleet: Fleet, standin: StandIn, pause_s: float) -> float:
    """Milliseconds from a fault until somebody wants the node cordoned; afterwards it is in service again."""
    await asyncio.sleep(max(0.0, agent.broken_at + APART_S - time.monotonic()) + pause_s)
    before = len(standin.requests)
    agent.break_down()
    cordoned_at = await cordoned(standin, agent.node, before)
    agent.repair()
    released = {"by": "benchmark", "reason": "repaired", "untested": True}
    await asyncio.to_thread(fleet.client.post, "nodes", agent.node, "release", body=released)
    await back_in_service(standin, agent.node)
    return 1e3 * (cordoned_at - agent.broken_at)


async def cordoned(standin: StandIn, node: str, before: int) -> float:
    """When the first request to cordon the node came, after so many others."""

    def is_cordoned() -> bool:
        return node in map(node_of, cordons(standin, before))

    await until(is_cordoned, DONE_WITHIN_S, f"{node}, which is broken, is cordoned")
    return next(request.at for request in cordons(standin, before) if node_of(request) == node)


async def back_in_service(standin: StandIn, node: str) -> None:
    """Returns when the node is in service, as the cluster has it."""
    await until(lambda: is_in_service(standin, node), DONE_WITHIN_S, f"{node}, which is healthy, is in service")
