"""What is written down of decisions: how much of it a day leaves on the disk, and how long it takes after a restart.

The coordinator's own decisions and its real database (SQLite) run in this process, in simulated time; nodes, their runs
and the scheduler are simulated, there is no broker, and nothing is measured on real nodes. The fleet has been accepted
by an actor that does as it is told.

Disk: on each simulated day a share of all nodes lose a GPU, are cordoned, repaired an hour later, tested and let
in again, with the default settings for that. What grows is divided by the days and by each thousand nodes; on a quiet
day nothing happens at all. Runs are not counted, which depend on the checks, nor the nodes themselves.

Restart: the processor time until a coordinator that starts with that database can decide.

Limits: texts are as short as those of the built-in checks and of one actor. SQLite gives space back to itself, not to
the file system.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, arguments, publish
from benchmarks.quarantine_fleet import SimulatedFleet
from sqlalchemy import text

from muster.config import Settings
from muster_coordinator.store.store import Store

TABLES = {
    "transitions": "actions",
    "stories": "story",
}


async def measure(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of days with and without faults, and of a restart."""
    store = await Store.open(Settings(data_dir=directory))
    fleet = SimulatedFleet(store, options.nodes)
    await fleet.begin()
    await fleet.join()
    figures = await disk(store, fleet, options, 0)
    figures += await disk(store, fleet, options, round(options.nodes * options.percent / 100))
    figures += await restart(fleet)
    await store.close()
    return figures


async def disk(store: Store, fleet: SimulatedFleet, options: argparse.Namespace, faults: int) -> list[Figure]:
    """What this number of faults a day leaves on the disk."""
    what = f"{100 * faults / options.nodes:g} % of the nodes break" if faults else "nothing happens"
    before = await sizes(store)
    for _ in range(options.days):
        await fleet.live_for_a_day(faults)
    grown = {name: size - before[name] for name, size in (await sizes(store)).items()}
    per = options.days * options.nodes / 1000
    return [
        Figure(what=f"{name}, a day on which {what}", unit="KiB per 1,000 nodes", value=size / per / 1024)
        for name, size in grown.items()
    ]


async def sizes(store: Store) -> dict[str, int]:
    """By what is kept, how many bytes its table and its indexes have."""
    found = {}
    async with store.database.engine.connect() as connection:
        for what, table in TABLES.items():
            pages = text(
                "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = :table)"
            )
            found[what] = int(await connection.scalar(pages, {"table": table}) or 0)
    return found


async def restart(fleet: SimulatedFleet) -> list[Figure]:
    """How long it takes until a coordinator that starts decides."""
    begun = time.process_time()
    await fleet.begin()
    took_s = time.process_time() - begun
    return [Figure(what=f"until a restarted coordinator decides, {len(fleet.names)} nodes", unit="s", value=took_s)]


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=1_000, help="simulated nodes")
    parser.add_argument("--days", type=int, default=7, help="simulated days of each kind")
    parser.add_argument("--percent", type=float, default=1.0, help="how many of a hundred nodes break in a day")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
