"""A sweep in pairs over thousands of simulated agents, behind a real Mosquitto and a real coordinator."""

import argparse
import asyncio
import resource
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import psutil
from benchmarks.figures import Figure, median_of
from benchmarks.fleet import ROOT, Fleet, interpreter, mosquitto
from benchmarks.sweep_formation import last

from muster.errors import Unavailable
from muster.model import Verdict
from muster_coordinator.model.sweep_records import SweepRecord, SweepState

MAX_BEYOND_S = 10.0
POLL_S = 0.05
RECORDED_WITHIN_S = 60.0

AGENTS_OF_A_PROCESS = 500
"""Each has a connection of its own, for which its process opens three files."""


STATE = "SELECT state FROM sweeps WHERE id = :sweep"
RUNS = """SELECT count(*) FROM runs WHERE "group" LIKE :sweep || '-%'"""
"""Members report the runs themselves with their other ones, after they have told the sweep what they measured."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Seconds from the request until the last rank of all was at its rendezvous, was let go, and all was recorded.

    `recorded_s` is until the database has the end of the sweep, with what every member measured; `processor_s` is what
    the coordinator has taken of a core until then.
    """

    arrived_s: float
    released_s: float
    recorded_s: float
    processor_s: float


async def crowd(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of all agents, in one sweep after the other."""
    _allow_many_connections()
    names = [f"node-{number:05}" for number in range(1, options.crowd + 1)]
    async with mosquitto(directory) as broker, Fleet(directory, broker) as fleet, simulated_agents(broker, names):
        await fleet.know(names)
        seen = [await swept(fleet, len(names), options.crowd_work_s) for _ in range(options.crowd_turns)]
    beyond = [one.recorded_s - options.crowd_work_s for one in seen]
    where = f"{len(names)} simulated agents in pairs"
    return [
        median_of(f"all at the rendezvous, {where}", "s", [one.arrived_s for one in seen]),
        median_of(f"all let go, {where}", "s", [one.released_s for one in seen]),
        median_of(f"formed, run and recorded beyond the payload, {where}", "s", beyond, ("<=", MAX_BEYOND_S)),
        median_of(f"of that the coordinator's processor time, {where}", "s", [one.processor_s for one in seen]),
    ]


async def swept(fleet: Fleet, agents: int, work_s: float) -> Seen:
    """One sweep; Unavailable unless every pair has passed and every run is in the database."""
    coordinator = psutil.Process(fleet.parts["coordinator"].process.pid)
    processor_before_s = sum(coordinator.cpu_times()[:2])
    asked_at = time.time()
    request = {"check": "noop-group", "strategy": "pairs", "params": {"work_s": work_s}}
    asked = await asyncio.to_thread(fleet.client.post, "sweeps", body=request)
    until = asked_at + RECORDED_WITHIN_S
    await until_in_database(fleet.database, STATE, asked["id"], SweepState.FINISHED, until)
    recorded_at = time.time()
    processor_s = sum(coordinator.cpu_times()[:2]) - processor_before_s
    runs = await until_in_database(fleet.database, RUNS, asked["id"], agents, until)
    sweep = SweepRecord.model_validate(await asyncio.to_thread(fleet.client.get, "sweeps", asked["id"]))
    groups = [group for found in sweep.rounds for group in found.groups]
    if (sweep.verdict, len(groups), runs) != (Verdict.PASS, agents // 2, agents):
        told = f"{sweep.state} {sweep.verdict}, {len(groups)} groups, {runs} runs; {'; '.join(sweep.notes[:5])}"
        raise Unavailable(f"the sweep over {agents} agents has come to: {told}")
    return Seen(
        arrived_s=max(last(group, "arrived_at") for group in groups) - asked_at,
        released_s=max(last(group, "released_at") for group in groups) - asked_at,
        recorded_s=recorded_at - asked_at,
        processor_s=processor_s,
    )


async def until_in_database(database: Path, query: str, sweep: str, wanted: object, until: float) -> object:
    """What the query finds for the sweep once that is what is `wanted`, or else at the time `until`.

    The database is asked and not the API, which would take the coordinator's time to write down a thousand groups.
    """
    while True:
        found = await asyncio.to_thread(in_database, database, query, sweep)
        if found == wanted or time.time() > until:
            return found
        await asyncio.sleep(POLL_S)


def in_database(database: Path, query: str, sweep: str) -> object:
    """The one value that the query finds for the sweep."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (found,) = connection.execute(query, {"sweep": sweep}).fetchone()
    return found


@asynccontextmanager
async def simulated_agents(broker: str, names: list[str]) -> AsyncIterator[None]:
    """Agents that live as long as the context, some hundreds in a process."""
    shares = [names[start : start + AGENTS_OF_A_PROCESS] for start in range(0, len(names), AGENTS_OF_A_PROCESS)]
    command = interpreter("-m", "benchmarks.sweep_crowd_agents", broker)
    processes = [await asyncio.create_subprocess_exec(*command, *share, cwd=ROOT) for share in shares]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        await asyncio.gather(*(process.wait() for process in processes))


def _allow_many_connections() -> None:
    """As many open files as this user may have at all: the broker inherits this."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
