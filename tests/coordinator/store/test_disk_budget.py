"""A database near its limit: the oldest detail goes first, findings never, and people are told before."""

import pytest
from sqlalchemy import func, select
from structlog.testing import capture_logs
from tests.coordinator.store.test_quiet_storage import DAY, HOUR, START, Fed

from muster.config import StoreSettings
from muster.model import ServiceState, Verdict
from muster_coordinator.model.events import SaveNode
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.store.disk_budget import EARLY_SHARE, ENOUGH, GB, NEAR
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.tables import QUIET_RUNS, RUNS, SERIES

KEEP = StoreSettings(keep_full_days=30, keep_days=300)


@pytest.fixture
async def fed(store):
    node = NodeRecord(name="a", online=True, first_seen=0.0, last_seen=0.0, service=ServiceState.IN_SERVICE)
    await store.write([SaveNode(node)])
    return Fed(store)


class Disk:
    """A database that takes a byte for each run or summary, or as many as `size` says."""

    def __init__(self, fed, monkeypatch, most):
        self.fed = fed
        self.now = START
        self.size = self._rows
        self.retention = Retention(
            fed.store.database, KEEP.model_copy(update={"max_gb": most / GB}), lambda: self.now, lambda _: None
        )

        async def used(_connection):
            return float(await self.size())

        monkeypatch.setattr("muster_coordinator.store.disk_budget.used_bytes", used)

    async def _rows(self):
        async with self.fed.store.database.reading() as connection:
            counts = [await connection.scalar(select(func.count()).select_from(table)) for table in (RUNS, QUIET_RUNS)]
            return sum(counts) + (await connection.scalar(select(func.sum(SERIES.c.count))) or 0)

    async def keep(self):
        """The events of the log while it is kept within its limit."""
        with capture_logs() as logs:
            await self.retention.budget.keep()
        return [line["event"] for line in logs]

    async def starts(self, resolution_s):
        """The first start of this resolution, in hours, and how many starts there are."""
        async with self.fed.store.database.reading() as connection:
            query = select(func.min(SERIES.c.since), func.sum(SERIES.c.count))
            first, count = (await connection.execute(query.where(SERIES.c.resolution_s == resolution_s))).one()
        return None if first is None else (first - START) / HOUR, count or 0


async def test_the_oldest_detail_goes_first(fed, monkeypatch):
    """As much of it as must; what is younger stays in full."""
    disk = Disk(fed, monkeypatch, most=1_000)
    await fed.feed_day(hours=48, step_s=150.0)
    disk.now = START + 48 * HOUR
    await disk.retention.compactor.compact()
    assert await disk.keep() == ["database_nearly_full", "detail_removed_early"]
    first, _ = await disk.starts(0)
    assert 6 <= first <= 42
    assert (await disk.starts(300))[0] < 1
    assert disk.retention.budget.use.used_bytes <= ENOUGH * 1_000
    assert sum(sum(point.verdicts.values()) for point in await fed.points()) == 1152
    assert await disk.keep() == []


async def test_findings_stay_when_all_other_detail_goes(fed, monkeypatch):
    """However small the limit is; and it comes to an end."""
    disk = Disk(fed, monkeypatch, most=1)
    for number in range(60):
        await fed.feed(START + number * 600, Verdict.FAIL if number % 20 == 0 else Verdict.PASS)
    disk.now = START + 40 * DAY
    await disk.retention.compactor.compact()
    await disk.keep()
    left = await fed.listed()
    assert {run.id for run in fed.runs.values() if run.verdict is Verdict.FAIL} <= {*left}
    assert (await disk.starts(0), await disk.starts(300)) == ((None, 0), (None, 0))


async def test_a_damaged_block_does_not_keep_it_busy_for_ever(fed, monkeypatch):
    """It stays, and what else is old goes."""
    disk = Disk(fed, monkeypatch, most=1)
    await fed.feed_day(hours=12)
    disk.now = START + 30 * HOUR
    await disk.retention.compactor.compact()
    async with fed.store.database.writing() as connection:
        await connection.execute(SERIES.update().where(SERIES.c.since < START + HOUR).values(body=b"x"))
    await disk.keep()
    assert (await disk.starts(0))[0] < 1


async def test_people_are_told_before_it_is_full(fed, monkeypatch):
    """Once a day, by the growth of the last day or by the share that is used."""
    disk = Disk(fed, monkeypatch, most=1_000)
    sizes = iter([100, 100, 200, 300, 310, 320, 330, 850])

    async def size():
        return next(sizes)

    disk.size = size
    told, days = [], []
    for _ in range(8):
        told.append(await disk.keep())
        days.append(disk.retention.budget.use.days_left)
        disk.now += 6 * HOUR
    assert told == [[], [], [], ["database_nearly_full"], [], [], [], ["database_nearly_full"]]
    assert days[:2] == [float("inf")] * 2
    assert days[2] == pytest.approx((NEAR * 1_000 - 200) / 200)
    assert EARLY_SHARE * 1_000 < 850


async def test_the_size_of_a_database_is_known(fed):
    """It grows with what is stored, and space that became free does not count."""
    retention = Retention(fed.store.database, KEEP, lambda: START + 5 * DAY, lambda _: None)
    await retention.budget.keep()
    before = retention.budget.use.used_bytes
    await fed.feed_day(hours=4, step_s=20.0)
    await retention.budget.keep()
    full = retention.budget.use.used_bytes
    assert full > before + 100_000
    await retention.compactor.compact()
    await retention.budget.keep()
    assert before <= retention.budget.use.used_bytes < (before + full) / 2
