"""What a coordinator does for two minutes when agents have three times as much to send as it can take.

Claims: throughout, it takes at least 80 % of the runs a second that it takes at best; a fault that is fatal by nature
is cordoned within 2 s; its memory grows by less than 128 MiB; no node is lost; it says that it is overloaded; and two
minutes after the end each run is stored exactly once.

Method: simulated agents as in `fleet_scale`, with the real outbox, link and encoder, real Mosquitto and coordinator,
which enforces on a stand-in of the Kubernetes API. The best rate is found first: it is the highest rate that it takes
for good without being overloaded. The nodes run their checks STEP times as often, again and again, until the
coordinator says that it is overloaded or does not keep up: by the end it has taken less than KEEPS_UP of what was made,
and lacks more than a run of each node, which may be on its way. Each rate settles before it counts: agents gather runs
for up to 45 s, and send whole runs until the first of each check are acknowledged. The best rate is what it took at the
last rate but one; there is a figure of how many of its runs came as repeats. The nodes slow down until nothing waits,
and go back to that rate. Then they run their checks three times as often. Every few seconds another node has a fault.
After two minutes the nodes stop, and what they have kept must arrive. When all have joined and settled, the coordinator
gets a tenth of a core only, in turns of 25 ms, so that agents on the same host can make more than it takes.

Limits: simulated are the measurements and the Kubernetes API. The agents' outboxes are in memory. The best rate may be
too low by one step. In an overload reports have more runs, which makes them cheaper: more than 100 % is no mistake.
The coordinator asks agents to run their checks less often, so they make fewer runs than planned; both are given.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from benchmarks.core_share import slowed
from benchmarks.figures import Figure, arguments, median_of, publish
from benchmarks.fleet_scale import all_joined, stories_of_loss
from benchmarks.kubernetes_standin.server import StandIn
from benchmarks.overload_samples import Sample, rates, sample_of, speeds
from benchmarks.quarantine_cluster import cluster, cordons, enforcing, node_of
from benchmarks.quarantine_cluster import until as until_holds
from benchmarks.scale_agents import node_name
from benchmarks.scale_parts import Broker, Coordinator, Crowd, until
from benchmarks.scale_template import recorded

from muster.errors import Unavailable

FAULT = "nvml.device_lost"
TIMES = 3.0
ASKED = 1.02
"""Nodes make a little less than what they are asked for: 2.997 times where it was 3."""

STEP = 1.25
CALM = 0.5
"""The share of the best rate at which what waits is taken before the overload begins."""

KEEPS_UP = 0.9
"""A coordinator that takes less than this share of what is made does not keep up."""

CORDONED_WITHIN_S = 30.0
JOINED_WITHIN_S = 300.0
SETTLED_WITHIN_S = 600.0

RATE_SETTLES_TIMES = 4.0
"""A rate has this many times as long as one without an overload needs. A slowdown that ends takes two minutes of it."""

ARRIVED_WITHIN_S = 600.0

LOOK_AGAIN_S = 1.0
"""Each look asks for all metrics: 6.5 ms for 500 nodes. Every 0.1 s, that took a third of a tenth of a core."""

YIELDS = 10
"""The niceness of the agents, so that the coordinator gets its share of a busy host."""

NO_QUOTA = {"store": {"node_mb_per_day": 100_000}}
"""The few nodes of this benchmark report as much as many do."""


class Steady(NamedTuple):
    """A rate that it takes for good: as a multiple of the usual cadence, and in runs a second.

    In the same time the nodes have made `made_per_s`, which may be less: what waited before was taken, too. In the
    worst WINDOW_S it has taken `worst_per_s`. `repeats` is their share. `speed` is the machine's own meanwhile.
    """

    factor: float
    made_per_s: float
    runs_per_s: float
    worst_per_s: float
    repeats: float
    speed: float


class Overload:
    """One coordinator and its fleet."""

    def __init__(self, options: argparse.Namespace, coordinator: Coordinator, crowd: Crowd, standin: StandIn) -> None:
        self.options = options
        self.coordinator = coordinator
        self.crowd = crowd
        self.standin = standin

    async def best_rate(self) -> Steady:
        """The highest rate that it takes for good."""
        best, factor = None, self.options.factor
        for _ in range(self.options.steps):
            await self.crowd.set_speed(factor)
            if not await self.settles(RATE_SETTLES_TIMES * self.options.settle_s):
                break
            made_before = await self.crowd.planned()
            async with self.watching() as samples:
                await asyncio.sleep(self.options.step_s)
            first, last, made = samples[0], samples[-1], await self.crowd.planned() - made_before
            taken, passed_s = last.runs - first.runs, last.at - first.at
            seen = f"overloaded {last.overloaded:.0f}, slowdown {last.slowdown:.0f}"
            print(f"planned {made / passed_s:.0f}/s, taken {taken / passed_s:.0f}/s, {seen}", flush=True)
            if (
                last.overloaded
                or last.slowdown > 1
                or not taken
                or made - taken > max(self.options.nodes, (1 - KEEPS_UP) * made)
            ):
                break
            repeats, worst_per_s = (last.repeats - first.repeats) / taken, min(rates(samples), default=taken / passed_s)
            speed = statistics.mean(each.speed for each in samples)
            best = Steady(factor, made / passed_s, taken / passed_s, worst_per_s, repeats, speed)
            factor *= STEP
        if best is None:
            raise Unavailable("it does not keep up at the first rate: give a smaller --factor or a larger --share")
        return best

    async def settle(self) -> None:
        """Returns when it has settled."""
        if not await self.settles(SETTLED_WITHIN_S):
            raise Unavailable(f"it is overloaded for {SETTLED_WITHIN_S:.0f} s or more: give a larger --share")

    async def settles(self, within_s: float) -> bool:
        """Whether there comes a time, as long as a rate settles, in which it is not overloaded and slows down no agent.

        Without it, an overload of some seconds when the rate changes would pass for the most that it can take.
        """
        began = since = time.monotonic()
        while (now := time.monotonic()) - since < self.options.settle_s:
            if now - began > within_s:
                return False
            await asyncio.sleep(LOOK_AGAIN_S)
            seen = await self.sample()
            if seen.overloaded or seen.slowdown > 1:
                since = time.monotonic()
        return True

    async def sample(self) -> Sample:
        """How it is now."""
        return await asyncio.to_thread(sample_of, self.coordinator)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[list[Sample]]:
        """Meanwhile, samples are taken, which costs the coordinator some percent of what it may use."""
        samples: list[Sample] = []
        watching = asyncio.create_task(self._watch(samples))
        try:
            yield samples
        finally:
            watching.cancel()

    async def _watch(self, samples: list[Sample]) -> None:
        while True:
            samples.append(await self.sample())
            await asyncio.sleep(LOOK_AGAIN_S)

    async def cordoned_s(self, number: int) -> float:
        """Seconds from a fatal fault on a node until the call that cordons it."""
        before, node = len(self.standin.requests), node_name(number)
        await self.crowd.fail(number, FAULT)
        began = time.monotonic()
        what = f"{node}, whose GPU is lost, is cordoned"
        await until_holds(lambda: node in map(node_of, cordons(self.standin, before)), CORDONED_WITHIN_S, what)
        return next(each.at for each in cordons(self.standin, before) if node_of(each) == node) - began


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures."""
    await recorded(directory)
    names = [node_name(number) for number in range(options.nodes)]
    broker, crowd = Broker(directory), Crowd()
    async with AsyncExitStack() as stack:
        standin = await stack.enter_async_context(cluster(directory / "kubernetes", names))
        await broker.start()
        stack.push_async_callback(broker.stop)
        coordinator = Coordinator(directory, broker.url, None, {**enforcing(standin), **NO_QUOTA})
        await coordinator.start()
        stack.push_async_callback(coordinator.stop)
        await stack.enter_async_context(crowd.running(options.nodes, 2, broker.url, directory / "template.json"))
        await until(lambda: all_joined(coordinator, options.nodes), JOINED_WITHIN_S)
        run = Overload(options, coordinator, crowd, standin)
        await run.settle()
        for each in crowd.processes:
            psutil.Process(each.pid).nice(YIELDS)
        stack.enter_context(slowed(coordinator.process.pid, options.share))
        return figures(await overloaded(run))


@dataclass(frozen=True, slots=True)
class Measured:
    """The best rate, the runs planned and made as multiples of it, what was seen, and how long all took afterwards."""

    best: Steady
    planned_times: float
    made_times: float
    samples: list[Sample]
    cordoned_s: list[float]
    late_s: float
    lost_stories: float
    surplus_runs: float
    deferred: float


async def overloaded(run: Overload) -> Measured:
    """Measures the best rate, the overload and the time after it."""
    best = await run.best_rate()
    await run.crowd.set_speed(CALM * best.factor)
    await run.settle()
    await run.crowd.set_speed(best.factor)
    await run.settle()
    lost_before = await stories_of_loss(run.coordinator)
    deferred_before = await run.coordinator.metric("muster_reports_deferred")
    planned_before = await run.crowd.planned()
    made_before = await run.crowd.set_speed(ASKED * TIMES * best.factor * max(1.0, best.runs_per_s / best.made_per_s))
    async with run.watching() as samples:
        began = time.monotonic()
        cordoned_s = await faults(run, began)
        print((await asyncio.to_thread(run.coordinator.client.get, "fleet"))["load"], flush=True)
    made = await run.crowd.set_speed(0.0)
    ended = time.monotonic()
    planned = await run.crowd.planned() - planned_before
    deferred = await run.coordinator.metric("muster_reports_deferred") - deferred_before
    await until(lambda: has_all(run.coordinator, made), ARRIVED_WITHIN_S, look_s=LOOK_AGAIN_S)
    late_s = time.monotonic() - ended
    await asyncio.sleep(run.options.after_s)
    return Measured(
        best=best,
        planned_times=planned / (ended - began) / best.runs_per_s,
        made_times=(made - made_before) / (ended - began) / best.runs_per_s,
        samples=samples,
        cordoned_s=cordoned_s,
        late_s=late_s,
        lost_stories=await stories_of_loss(run.coordinator) - lost_before,
        surplus_runs=await run.coordinator.metric("muster_runs") - made,
        deferred=deferred,
    )


async def faults(run: Overload, began: float) -> list[float]:
    """Breaks nodes one after the other while the overload lasts. Returns the seconds until each was cordoned."""
    cordoned_s = []
    for number in range(run.options.faults):
        due = began + (number + 1) * run.options.last_s / (run.options.faults + 1)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        cordoned_s.append(await run.cordoned_s(number))
    await asyncio.sleep(max(0.0, began + run.options.last_s - time.monotonic()))
    return cordoned_s


def figures(found: Measured) -> list[Figure]:
    """The figures of the overload and of the two minutes after it."""
    taken = [100 * rate / found.best.runs_per_s for rate in rates(found.samples)]
    first, last = found.samples[0], found.samples[-1]
    repeats = (last.repeats - first.repeats) / max(1.0, last.runs - first.runs)
    grown_mib = max(each.mib for each in found.samples) - found.samples[0].mib
    says_so = 100 * statistics.mean(each.overloaded for each in found.samples)
    slowdown = statistics.mean(each.slowdown for each in found.samples)
    lost = max(each.lost for each in found.samples)
    slowest_s = max(found.cordoned_s)
    slowest = 100 * min(speeds(found.samples)) / found.best.speed
    planned, made, best = found.planned_times, found.made_times, "% of best"
    return [
        Figure(what="runs taken at best", unit="1/s", value=found.best.runs_per_s),
        Figure(what="the worst 10 s of that", unit=best, value=100 * found.best.worst_per_s / found.best.runs_per_s),
        Figure(what="repeats among them", unit="%", value=100 * found.best.repeats),
        Figure(what="runs planned while overloaded", unit="times the best rate", value=planned, target=(">=", TIMES)),
        Figure(what="runs made while overloaded", unit="times the best rate", value=made),
        Figure(what="taken while overloaded, the worst 10 s", unit=best, value=min(taken), target=(">=", 80.0)),
        Figure(what="taken while overloaded, all of it", unit=best, value=statistics.mean(taken)),
        Figure(what="repeats among them", unit="%", value=100 * repeats),
        Figure(what="this machine's own speed meanwhile, the slowest 10 s", unit="% of that at best", value=slowest),
        median_of("a fatal fault to its cordon", "s", found.cordoned_s),
        Figure(what="a fatal fault to its cordon, the slowest", unit="s", value=slowest_s, target=("<=", 2.0)),
        Figure(what="growth of memory", unit="MiB", value=grown_mib, target=("<=", 128.0)),
        Figure(what="nodes lost, at most", unit="nodes", value=lost, target=("<=", 0.0)),
        Figure(what="stories of a loss", unit="entries", value=found.lost_stories, target=("<=", 0.0)),
        Figure(what="says that it is overloaded", unit="% of the time", value=says_so),
        Figure(what="asks for runs this many times less often", unit="times, on average", value=slowdown),
        Figure(what="reports deferred", unit="reports", value=found.deferred),
        Figure(what="all has arrived after the end", unit="s", value=found.late_s, target=("<=", 120.0)),
        Figure(what="runs stored without those made", unit="runs", value=found.surplus_runs, target=("<=", 0.0)),
    ]


async def has_all(coordinator: Coordinator, made: float) -> bool:
    """Whether all runs have arrived."""
    return await coordinator.metric("muster_runs") >= made


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=500, help="size of the fleet")
    parser.add_argument("--last-s", type=float, default=120.0, help="how long the overload lasts")
    parser.add_argument("--factor", type=float, default=3.0, help="how often checks run at first, as a multiple")
    parser.add_argument("--settle-s", type=float, default=60.0, help="how long each rate settles")
    parser.add_argument("--step-s", type=float, default=45.0, help="how long each rate is measured")
    parser.add_argument("--steps", type=int, default=12, help="how many rates are tried at most")
    parser.add_argument("--after-s", type=float, default=10.0, help="how long to wait for runs that come twice")
    parser.add_argument("--faults", type=int, default=10, help="nodes that break meanwhile")
    parser.add_argument("--share", type=float, default=0.1, help="share of a core that the coordinator gets")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        publish(options, asyncio.run(measure(options, Path(directory))))


if __name__ == "__main__":
    main()
