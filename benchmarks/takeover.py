"""How long nobody leads when the leader of two coordinators ends or stands still.

Claim: another coordinator leads within 1 s after SIGTERM, and within 10 s after the leader was killed or paused; each
run is stored exactly once.

Method: two real coordinators with one PostgreSQL and a real Mosquitto; simulated agents as in `fleet_scale`. In turns
the leader gets SIGTERM, SIGKILL or SIGSTOP. Time runs from the signal until the other coordinator answers as the
leader, and until it has stored a run. Then the first one is started again, or goes on, and stands by. At the end the
agents stop, and each run that they have made must be stored once.

Limits: all processes share the cores of one host, so a takeover takes longer than on hosts of their own. Nothing is on
another host, so no network is lost.
"""

import argparse
import asyncio
import signal
import tempfile
import time
from contextlib import AsyncExitStack
from http.client import HTTPException
from pathlib import Path

from benchmarks.figures import Figure, arguments, median_of, publish
from benchmarks.fleet_scale import all_joined
from benchmarks.private_postgres import private_postgres
from benchmarks.scale_database import opened
from benchmarks.scale_parts import Broker, Coordinator, Crowd, until
from benchmarks.scale_template import recorded

JOINED_WITHIN_S = TAKEN_WITHIN_S = STORED_WITHIN_S = 120.0
LOOK_S = 0.01
STORED = "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM quiet_runs)"

SIGNALS: dict[signal.Signals, tuple[str, float]] = {
    signal.SIGTERM: ("after SIGTERM", 1.0),
    signal.SIGKILL: ("after SIGKILL", 10.0),
    signal.SIGSTOP: ("of a paused leader", 10.0),
}


class Rivals:
    """Two coordinators, and how long each takeover took until the new leader answered, and until it stored a run."""

    def __init__(self, pair: list[Coordinator]) -> None:
        self.pair = pair
        self.answered_s: dict[signal.Signals, list[float]] = {number: [] for number in SIGNALS}
        self.stored_s: dict[signal.Signals, list[float]] = {number: [] for number in SIGNALS}

    async def leader(self) -> Coordinator:
        """Who leads; waits until somebody does."""
        found: list[Coordinator] = []

        async def one_leads() -> bool:
            found[:] = [each for each in self.pair if await leads(each)]
            return bool(found)

        await until(one_leads, TAKEN_WITHIN_S, LOOK_S)
        return found[0]

    async def measure(self, number: signal.Signals) -> None:
        """Sends a signal to the leader, and times the takeover. Both run and one leads when it returns."""
        leader = await self.leader()
        other = next(each for each in self.pair if each is not leader)
        began = time.monotonic()
        leader.process.send_signal(number)
        await until(lambda: leads(other), TAKEN_WITHIN_S, LOOK_S)
        self.answered_s[number].append(time.monotonic() - began)
        await until(lambda: stores(other), TAKEN_WITHIN_S, LOOK_S)
        self.stored_s[number].append(time.monotonic() - began)
        if number is signal.SIGSTOP:
            leader.process.send_signal(signal.SIGCONT)
        else:
            await leader.part.process.wait()
            await leader.start()
        await until(lambda: stands_by(leader), TAKEN_WITHIN_S, LOOK_S)


async def leads(coordinator: Coordinator) -> bool:
    """Whether it answers as the leader."""
    return await leadership(coordinator) == 1


async def stands_by(coordinator: Coordinator) -> bool:
    """Whether it answers as a standby."""
    return await leadership(coordinator) == 0


async def leadership(coordinator: Coordinator) -> float | None:
    """1 if it leads, 0 if it stands by; None if it does not answer."""
    try:
        return await coordinator.metric("muster_leads")
    except (OSError, HTTPException):
        return None


async def stores(coordinator: Coordinator) -> bool:
    """Whether it has stored a run since it leads."""
    return await coordinator.metric("muster_runs") > 0


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures."""
    await recorded(directory)
    broker, crowd = Broker(directory), Crowd()
    async with AsyncExitStack() as stack:
        url = stack.enter_context(private_postgres()).url
        await broker.start()
        stack.push_async_callback(broker.stop)
        pair = []
        for name in "ab":
            place = directory / name
            place.mkdir()
            pair.append(Coordinator(place, broker.url, url))
            await pair[-1].start()
            stack.push_async_callback(pair[-1].stop)
        await stack.enter_async_context(crowd.running(options.nodes, 2, broker.url, directory / "template.json"))
        await until(lambda: all_joined(pair[0], options.nodes), JOINED_WITHIN_S)
        await asyncio.sleep(options.settle_s)
        rivals = Rivals(pair)
        for _ in range(options.turns):
            for number in SIGNALS:
                await rivals.measure(number)
                print(f"{number.name}: {rivals.answered_s[number][-1]:.2f} s", flush=True)
                await asyncio.sleep(options.pause_s)
        return [*figures(rivals), await surplus(crowd, pair[0], url)]


def figures(rivals: Rivals) -> list[Figure]:
    """How long takeovers took."""
    return [
        figure
        for number, (when, most_s) in SIGNALS.items()
        for figure in (
            median_of(f"until another one leads, {when}", "s", rivals.answered_s[number], ("<=", most_s)),
            median_of(f"until that one has stored a run, {when}", "s", rivals.stored_s[number]),
        )
    ]


async def surplus(crowd: Crowd, coordinator: Coordinator, url: str) -> Figure:
    """How many runs are stored without those that were made; waits until all are stored that will be."""
    made = await crowd.set_speed(0.0)
    async with opened(coordinator.data_dir, url) as database:

        async def stored() -> float:
            return float(
                await database.scalar("SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM quiet_runs)")
            )

        async def has_all() -> bool:
            return await stored() >= made

        await until(has_all, STORED_WITHIN_S)
        return Figure(
            what="runs stored without those made", unit="runs", value=await stored() - made, target=("<=", 0.0)
        )


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=1_000, help="size of the fleet")
    parser.add_argument("--turns", type=int, default=5, help="how often the leader gets each signal")
    parser.add_argument("--settle-s", type=float, default=60.0, help="seconds before the first signal")
    parser.add_argument("--pause-s", type=float, default=10.0, help="seconds between two takeovers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        publish(options, asyncio.run(measure(options, Path(directory))))


if __name__ == "__main__":
    main()
