"""How soon a result is known, and what a run costs beyond its own work.

Claims: a result is visible in the API within 100 ms of the end of the run's own work, at the median; a run costs at
most 150 ms beyond its own work.

Method: the check `noop` of a third-party plugin sleeps and tells when it began and ended, by the host's clock. One run
after the other is asked for through the API of a real coordinator and carried out by a real agent, through the embedded
broker and through Mosquitto. Latency is the time from the end that the run itself tells to its arrival at a listener of
the event stream, or, for as many runs again, in the first answer of `GET /api/v1/runs` that holds it (asked every 2 ms,
which is part of the figure). The cost of a run is the time from the request to the event less the run's own work; in it
are the way of the order to the node and of the result back. `noop-idle` needs an idle node, as checks that use a device
do, so the idle probe of `nvml` is asked before it starts.

Limits: one host, an otherwise idle fleet of one node, no simulated network delay.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
from benchmarks.figures import Figure, Target, arguments, median_of, publish
from benchmarks.fleet import Fleet, install_noop_plugin, mosquitto

from muster.errors import Unavailable
from muster.model import Json

NODE = "node-1"
MAX_LATENCY_MS = 100.0
MAX_COST_MS = 150.0
WORK_S = 0.02
POLL_S = 0.002
RESULT_WITHIN_S = 30.0

BEAT_S = 0.25
"""The coordinator's and the agent's timers; pauses are spread over it, so that no run keeps step with them."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as the API gave it, when it was asked for and when it was seen, in seconds since the epoch."""

    asked_at: float
    seen_at: float
    run: dict[str, Any]

    @property
    def latency_ms(self) -> float:
        """From the end of the run's own work until it was seen."""
        return 1e3 * (self.seen_at - float(self.run["metrics"]["ended_at"]))

    @property
    def own_ms(self) -> float:
        metrics = self.run["metrics"]
        return 1e3 * float(metrics["ended_at"] - metrics["began_at"])

    @property
    def cost_ms(self) -> float:
        """From the request until it was seen, without the run's own work."""
        return 1e3 * (self.seen_at - self.asked_at) - self.own_ms

    @property
    def cost_on_node_ms(self) -> float:
        """How long the agent says that the run took, without the run's own work."""
        return 1e3 * float(self.run["duration_s"]) - self.own_ms


class Api:
    """The coordinator's API on one connection."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._turns = count()

    async def through_stream(self, check: str) -> Seen:
        """Asks for a run and waits for its event."""
        async with self._session.get("/api/v1/events") as stream:
            await stream.content.readline()
            asked_at, run = await self._ask(check)
            async for line in stream.content:
                seen_at = time.time()
                told = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
                if told.get("id") == run and "seq" in told:
                    return Seen(asked_at, seen_at, told)
        raise Unavailable("the event stream has ended")

    async def through_list(self, check: str) -> Seen:
        """Asks for a run and lists runs until it is among them."""
        asked_at, run = await self._ask(check)
        while True:
            async with self._session.get("/api/v1/runs", params={"check": check, "limit": 1}) as response:
                items = (await response.json())["items"]
            seen_at = time.time()
            if items and items[0]["id"] == run:
                return Seen(asked_at, seen_at, items[0])
            await asyncio.sleep(POLL_S)

    async def _ask(self, check: str) -> tuple[float, str]:
        await asyncio.sleep(BEAT_S * (next(self._turns) * 0.618 % 1))
        body: Json = {"check": check, "params": {"work_s": WORK_S}}
        asked_at = time.time()
        async with self._session.post(f"/api/v1/nodes/{NODE}/runs", json=body) as response:
            response.raise_for_status()
            return asked_at, (await response.json())["id"]


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures through every broker."""
    site = directory / "site"
    site.mkdir()
    variables = install_noop_plugin(site)
    figures = []
    for broker in options.brokers:
        own = directory / broker
        own.mkdir()
        async with api(broker, own, variables) as found:
            figures += await through(broker, found, options.runs)
    return figures


@asynccontextmanager
async def api(broker: str, directory: Path, variables: dict[str, str]) -> AsyncIterator[Api]:
    """The API of a fleet of one node on this broker."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(mosquitto(directory)) if broker == "mosquitto" else None
        fleet = await stack.enter_async_context(Fleet(directory, url))
        await _start_agent(fleet, variables)
        yield Api(await stack.enter_async_context(aiohttp.ClientSession(fleet.url)))


async def _start_agent(fleet: Fleet, variables: dict[str, str]) -> None:
    """In the background it runs nothing that imports torch in the midst of the measurement."""
    quiet = {"plugins": {"disabled": ["gemm", "training"]}}
    await fleet.start_agents(NODE, settings=quiet, variables=variables)


async def through(broker: str, found: Api, runs: int) -> list[Figure]:
    """The figures through one broker, after a few runs that do not count."""
    await several(found.through_stream, "noop", 5)
    told = await several(found.through_stream, "noop", runs)
    listed = await several(found.through_list, "noop", runs)
    idle = await several(found.through_stream, "noop-idle", runs)
    latency: Target = ("<=", MAX_LATENCY_MS)
    cost: Target = ("<=", MAX_COST_MS)
    return [
        median_of(f"latency to the event stream, {broker}", "ms", [seen.latency_ms for seen in told], latency),
        median_of(f"latency to GET runs, {broker}", "ms", [seen.latency_ms for seen in listed], latency),
        median_of(f"cost of a run, {broker}", "ms", [seen.cost_ms for seen in told], cost),
        median_of(f"cost of a run that needs the node idle, {broker}", "ms", [seen.cost_ms for seen in idle], cost),
        median_of(f"of that on the node, {broker}", "ms", [seen.cost_on_node_ms for seen in idle]),
    ]


async def several(one: Callable[[str], Awaitable[Seen]], check: str, runs: int) -> list[Seen]:
    """One run after the other."""
    seen = []
    for _ in range(runs):
        async with asyncio.timeout(RESULT_WITHIN_S):
            seen.append(await one(check))
    return seen


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--runs", type=int, default=150, help="runs for each figure")
    parser.add_argument("--brokers", nargs="+", choices=("embedded", "mosquitto"), default=["embedded", "mosquitto"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
