"""What the runs of a node with eight GPUs take in the database: on the first day, and on each day after that.

Claim: at most 2 MB for the first day, and 150 KB for each day after it, for each node, with SQLite and with PostgreSQL.

Method: a simulated node (see `storage_node`) reports the runs of all checks that run in the background, at the cadences
as shipped, in simulated time. The real decisions take each report, the real store writes what follows from it, and
compactor and retention run every hour of simulated time, all with the settings as shipped. Counted is how much larger
the database is than without runs: for SQLite its pages without the free ones, for PostgreSQL the tables with their
indexes. These are vacuumed every hour, as PostgreSQL does by itself. The first day ends after 24 hours, when nothing is
downsampled yet. The growth of a later day is the mean over the days after the third, in which the oldest numbers in
full are downsampled as fast as new ones come.

Beside it, with `--prometheus`: the blocks of a real Prometheus with the numbers of the same first day.

Limits: one healthy node, whose noise is simulated; whole runs of faults, sweeps and stories come on top. PostgreSQL
needs `--postgres`: it starts a server of its own from Debian's package. A Prometheus scrapes all numbers at one
interval; here it has each number as often as it was measured.
"""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks.figures import Figure, Target, arguments, publish
from benchmarks.private_postgres import private_postgres
from benchmarks.prometheus_blocks import Series, block_bytes
from benchmarks.storage_node import SimulatedNode
from sqlalchemy import text

from muster.config import Settings, StoreSettings
from muster.wire.messages import Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, ReportSeen, StoreRuns
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store

HOUR_S, DAY_S = 3_600.0, 86_400.0
START = 20_850 * DAY_S
SETTLED_AFTER = 3
"""Days after which as much is downsampled as comes."""

FIRST_DAY: Target = ("<=", 2_000.0)
LATER_DAYS: Target = ("<=", 150.0)
NODE = "gpu-node-00001"
TABLES = ("runs", "quiet_runs", "series", "run_bases", "streams")


class Day:
    """A coordinator without network that takes the reports of one node, in simulated time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._node = SimulatedNode(NODE, seed=1)
        self._fleet = Fleet(name="benchmark", epoch=1)
        self._now = START
        self._retention = Retention(store.database, StoreSettings(), lambda: self._now, lambda _: None)
        self.runs = self.whole = 0
        self.intake_s = self.packing_s = 0.0

    async def begin(self) -> None:
        """Makes the node known."""
        seen = InventorySeen(self._node.inventory(START))
        await self._store.write(self._fleet.handle(seen, START))

    async def live(self, hours: int) -> None:
        """Handles the reports of `hours` hours, and after each hour the hourly work of the store."""
        for _ in range(hours):
            for run in self._node.runs(self._now, self._now + HOUR_S):
                message = Report(sent_at=run.started_at, node=NODE, stream="f" * 32, after=run.seq - 1, runs=(run,))
                begun = time.process_time()
                commands = self._fleet.handle(ReportSeen(message), run.started_at + 0.05)
                await self._store.write(commands)
                self.intake_s += time.process_time() - begun
                self.runs += 1
                self.whole += sum(len(each.runs) for each in commands if isinstance(each, StoreRuns))
            self._now += HOUR_S
            begun = time.process_time()
            await self._retention.compactor.compact()
            await self._retention.thin()
            self.packing_s += time.process_time() - begun
            await vacuum(self._store)


async def measure(what: str, settings: Settings, days: int, hours: int) -> list[Figure]:
    """The figures of one database."""
    store = await Store.open(settings)
    day = Day(store)
    await day.begin()
    sizes = [await size_of(store)]
    for _ in range(days):
        await day.live(hours)
        sizes.append(await size_of(store))
        print(f"{what}: {(sizes[-1] - sizes[0]) / 1000:.0f} KB after {len(sizes) - 1} days", flush=True)
    parts = await parts_of(store)
    await store.close()
    figures = [Figure(what=f"first day, {what}", unit="KB", value=(sizes[1] - sizes[0]) / 1000, target=FIRST_DAY)]
    if days > SETTLED_AFTER:
        grown = (sizes[-1] - sizes[SETTLED_AFTER]) / (days - SETTLED_AFTER)
        figures.append(Figure(what=f"a later day, {what}", unit="KB", value=grown / 1000, target=LATER_DAYS))
    figures += [Figure(what=f"of it in {table}, {what}", unit="KB", value=each / 1000) for table, each in parts.items()]
    return [
        *figures,
        Figure(what=f"runs a day, {what}", unit="runs", value=day.runs / days),
        Figure(what=f"whole runs a day, {what}", unit="runs", value=day.whole / days),
        Figure(
            what=f"processor time of intake and store, {what}", unit="ms a run", value=1000 * day.intake_s / day.runs
        ),
        Figure(what=f"processor time of packing, {what}", unit="s a day", value=day.packing_s / days),
    ]


async def vacuum(store: Store) -> None:
    """Does what PostgreSQL does by itself within a minute, which is more than an hour of simulated time."""
    async with store.database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(text("VACUUM"))


async def size_of(store: Store) -> int:
    """The bytes that the database uses."""
    async with store.database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
            return int(await connection.scalar(text(f"SELECT {sizes}")) or 0)
        await connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))
        pages, free, size = [
            int(await connection.scalar(text(f"PRAGMA {name}")) or 0)
            for name in ("page_count", "freelist_count", "page_size")
        ]
        return (pages - free) * size


async def parts_of(store: Store) -> dict[str, int]:
    """The bytes of each table with its indexes."""
    query = "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = :table)"
    async with store.database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            query = "SELECT pg_total_relation_size(cast(:table AS regclass))"
        return {table: int(await connection.scalar(text(query), {"table": table}) or 0) for table in TABLES[:3]}


def measure_prometheus(hours: int, directory: Path) -> list[Figure]:
    """What Prometheus needs for the numbers of the first day."""
    series = Series()
    for run in SimulatedNode(NODE, seed=1).runs(START, START + hours * HOUR_S):
        series.take(run)
    directory.mkdir()
    return [
        Figure(what="first day, Prometheus", unit="KB", value=block_bytes(series, directory) / 1000),
        Figure(what="of it series", unit="series", value=len(series)),
        Figure(what="of it samples", unit="samples", value=series.count),
    ]


async def measure_all(options: argparse.Namespace, directory: Path) -> list[Figure]:
    """The figures of every database."""
    figures = await measure("SQLite", Settings(data_dir=directory / "sqlite"), options.days, options.hours)
    if options.postgres:
        with private_postgres() as server:
            settings = Settings(data_dir=directory / "postgres", store=StoreSettings(url=server.url))
            figures += await measure("PostgreSQL", settings, options.days, options.hours)
    if options.prometheus:
        figures += measure_prometheus(options.hours, directory / "prometheus")
    return figures


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--days", type=int, default=5, help="simulated days")
    parser.add_argument("--hours", type=int, default=24, help="hours of a day; fewer only to try it out")
    parser.add_argument("--postgres", action="store_true", help="with PostgreSQL as well")
    parser.add_argument("--prometheus", action="store_true", help="with the blocks of Prometheus as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(measure_all(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
