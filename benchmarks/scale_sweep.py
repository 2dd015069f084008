"""A sweep of all nodes of the scale benchmark in pairs, with a simulated payload (`sweep_member`)."""

import asyncio
import time
from dataclasses import dataclass

from benchmarks.scale_database import ScaleDatabase
from benchmarks.scale_parts import Coordinator, until

from muster.errors import Unavailable
from muster_coordinator.model.sweep_records import SweepState

RECORDED_WITHIN_S = 300.0
LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Swept:
    """Seconds from the request until the end of the sweep and the runs of all nodes were in the database.

    `processor_s` is what the coordinator took of a core meanwhile, its work for reports of background checks included.
    `missing` are the runs that were not there after RECORDED_WITHIN_S.
    """

    recorded_s: float
    processor_s: float
    missing: int


async def sweep_all(coordinator: Coordinator, database: ScaleDatabase, nodes: int, work_s: float) -> Swept:
    """Sweeps all nodes once. The database is asked and not the API, which would take the coordinator's time."""
    before_s = sum(coordinator.process.cpu_times()[:2])
    asked_at = time.monotonic()
    request = {"check": "noop-group", "strategy": "pairs", "params": {"work_s": work_s}}
    sweep = (await asyncio.to_thread(coordinator.client.post, "sweeps", body=request))["id"]

    async def runs() -> int:
        query = """SELECT count(*) FROM runs WHERE "group" LIKE :group"""
        return int(await database.scalar(query, group=f"{sweep}-%"))

    async def is_recorded() -> bool:
        state = await database.scalar("SELECT state FROM sweeps WHERE id = :sweep", sweep=sweep)
        return state == SweepState.FINISHED and await runs() >= nodes

    try:
        await until(is_recorded, RECORDED_WITHIN_S, LOOK_S)
    except Unavailable as error:
        print(error, flush=True)
    recorded_s = time.monotonic() - asked_at
    processor_s = sum(coordinator.process.cpu_times()[:2]) - before_s
    return Swept(recorded_s, processor_s, nodes - await runs())
