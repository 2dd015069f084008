"""A sweep of all nodes of the scale benchmark in pairs, with a simulated payload (`lean_member`)."""

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass

from benchmarks.scale_database import ScaleDatabase
from benchmarks.scale_parts import Coordinator, until

from muster.errors import Unavailable
from muster_coordinator.model.sweep_records import SweepState

RECORDED_WITHIN_S = 300.0
REPORTED_WITHIN_S = 120.0
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Swept:
    """Seconds from the request until the database had the end of the sweep, with what every member measured.

    `processor_s` is what the coordinator took of a core meanwhile, its work for reports of background checks included.
    `reported_s` are the seconds until the runs of all nodes were there too: members tell their sweep at once what they
    measured, and report the run with their others. `missing` are the runs that had not come after REPORTED_WITHIN_S.
    """

    recorded_s: float
    processor_s: float
    reported_s: float
    missing: int


async def sweep_all(coordinator: Coordinator, database: ScaleDatabase, nodes: int, work_s: float) -> Swept:
    """Sweeps all nodes once. The database is asked and not the API, which would take the coordinator's time."""
    before_s = sum(coordinator.process.cpu_times()[:2])
    asked_at = time.monotonic()
    request = {"check": "noop-group", "strategy": "pairs", "params": {"work_s": work_s}}
    sweep = (await asyncio.to_thread(coordinator.client.post, "sweeps", body=request))["id"]

    async def is_recorded() -> bool:
        state = await database.scalar("SELECT state FROM sweeps WHERE id = :sweep", sweep=sweep)
        return bool(state == SweepState.FINISHED)

    async def runs() -> int:
        query = """SELECT count(*) FROM runs WHERE "group" LIKE :group"""
        return int(await database.scalar(query, group=f"{sweep}-%"))

    async def are_reported() -> bool:
        return await runs() >= nodes

    await until(is_recorded, RECORDED_WITHIN_S, LOOK_S)
    recorded_s = time.monotonic() - asked_at
    processor_s = sum(coordinator.process.cpu_times()[:2]) - before_s
    with suppress(Unavailable):  # how many are missing is a figure
        await until(are_reported, REPORTED_WITHIN_S, LOOK_S)
    return Swept(recorded_s, processor_s, time.monotonic() - asked_at, nodes - await runs())
