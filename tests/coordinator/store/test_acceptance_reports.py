"""Acceptance reports in the database: found again, damaged, and past retention."""

import pytest
from sqlalchemy import func, select, update
from tests.coordinator.web.acceptances import acceptance

from muster.config import StoreSettings
from muster.model import Verdict
from muster_coordinator.model.acceptance_records import AcceptanceFilter, acceptance_record
from muster_coordinator.store.acceptance_reports import AcceptanceReports
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.rows import Unreadable
from muster_coordinator.store.tables import ACCEPTANCE_NODES, ACCEPTANCE_REPORTS

DAY = 86_400.0
NOW = 20_000 * DAY


def record(*nodes, age_days=0.0, **more):
    return acceptance_record(acceptance(*nodes, **more), received_at=NOW - age_days * DAY, sent_by="job 17")


async def test_a_report_is_read_as_it_was_stored(store):
    """Alone and in the list, and once however often it is stored."""
    reports, kept = AcceptanceReports(store.database), record("n1", "n2", failed={"n2"})
    for _ in range(2):
        summary = await reports.add(kept)
    assert await reports.get(kept.id) == kept
    assert (await reports.page(AcceptanceFilter(), 10, None)).items == (summary,)
    assert await reports.get("nothing") is None


@pytest.mark.parametrize(
    ("wanted", "suites"),
    [
        (AcceptanceFilter(), ["c", "b", "a"]),
        (AcceptanceFilter(node="n2"), ["c", "b"]),
        (AcceptanceFilter(verdict=Verdict.FAIL), ["b"]),
        (AcceptanceFilter(suite="a"), ["a"]),
        (AcceptanceFilter(node="n2", verdict=Verdict.PASS), ["c"]),
    ],
)
async def test_the_latest_come_first(store, wanted, suites):
    """In pages, and all conditions of a filter count."""
    reports = AcceptanceReports(store.database)
    for kept in (
        record("n1", suite="a", age_days=3),
        record("n1", "n2", suite="b", failed={"n2"}, age_days=2),
        record("n2", suite="c", age_days=1),
    ):
        await reports.add(kept)
    page = await reports.page(wanted, 1, None)
    found = [*page.items]
    while page.next_cursor:
        page = await reports.page(wanted, 1, page.next_cursor)
        found += page.items
    assert [summary.suite for summary in found] == suites


async def test_reports_go_when_findings_go(store):
    """With what says which nodes they are about."""
    reports = AcceptanceReports(store.database)
    for age_days in (1, 99, 101):
        await reports.add(record("n1", "n2", suite=f"{age_days} days", age_days=age_days))
    keep = StoreSettings(keep_days=10, keep_findings_days=100)
    await Retention(store.database, keep, lambda: NOW, lambda _: None).thin()
    assert [each.suite for each in (await reports.page(AcceptanceFilter(), 9, None)).items] == ["1 days", "99 days"]
    async with store.database.reading() as connection:
        assert await connection.scalar(select(func.count()).select_from(ACCEPTANCE_NODES)) == 4


async def test_a_damaged_report_is_said(store):
    """The list still has it: its summary is another column."""
    reports, kept = AcceptanceReports(store.database), record("n1")
    await reports.add(kept)
    async with store.database.writing() as connection:
        await connection.execute(update(ACCEPTANCE_REPORTS).values(body=b"no"))
    with pytest.raises(Unreadable, match=f"row '{kept.id}' of table acceptance_reports"):
        await reports.get(kept.id)
    assert len((await reports.page(AcceptanceFilter(), 9, None)).items) == 1
