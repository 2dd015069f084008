"""What a node measured in steps of time is the same wherever its runs are stored."""

import pytest
from sqlalchemy import update
from tests.coordinator.store.test_quiet_storage import DAY, HOUR, START, fed  # noqa: F401 (a fixture)

from muster.config import StoreSettings
from muster.errors import Refused
from muster.model import Verdict
from muster_coordinator.model.history import HistoryPoint, MetricFigures
from muster_coordinator.store import steps as steps_module
from muster_coordinator.store.history import HistoryFilter, stepped_history
from muster_coordinator.store.steps import StepFilter, read_steps
from muster_coordinator.store.summaries import merged
from muster_coordinator.store.tables import SERIES


async def steps(fed, step_s, **wanted):  # noqa: F811
    conditions = {"node": "a", "since": START, "until": START + DAY, **wanted}
    return await read_steps(fed.store.database, StepFilter(**conditions), step_s)


async def test_steps_are_the_same_before_and_after_packing(fed):  # noqa: F811
    """Quiet runs, whole runs that failed, blocks of runs and of summaries; of blocks, medians are those of medians."""
    await fed.feed_day(hours=4)
    await fed.feed(START + 700.0, Verdict.FAIL, metrics={"tflops": [1000.0]})
    before = [await steps(fed, step_s) for step_s in (300, 3_600, None)]
    assert [len(each) for each in before] == [48, 4, 1]
    assert before[2][0].verdicts == {Verdict.PASS: 48, Verdict.FAIL: 1}
    assert before[2][0].metrics["tflops"]["0"].most == 1000.0
    await fed.compact(START + 5 * HOUR)
    assert [await steps(fed, step_s) for step_s in (300, 3_600)] == before[:2]
    await fed.compact(START + 2 * DAY)
    assert await steps(fed, 300) == before[0]
    for found, expected in zip(await steps(fed, None), before[2], strict=True):
        figures, those = found.metrics["tflops"]["0"], expected.metrics["tflops"]["0"]
        assert (figures.count, figures.least, figures.most) == (those.count, those.least, those.most)
        assert figures.median == pytest.approx(those.median, abs=12 / 4)  # an hour has a quarter of the values


async def test_only_what_is_wanted_counts(fed):  # noqa: F811
    """Of the time, the check, the metric and the node; begin and end may be within blocks."""
    await fed.feed_day(hours=3)
    await fed.feed_day(hours=1, node="b")
    await fed.feed(START + 60.0, check="other", metrics={"tflops": [5.0], "extra": 1.0})
    for _ in range(2):
        (found,) = await steps(fed, None, check="gemm", since=START + 900.0, until=START + 2 * HOUR)
        assert (found.started_at, found.verdicts) == (START + 900.0, {Verdict.PASS: 21})
        figures = found.metrics["tflops"]["0"]
        assert (figures.count, figures.least, figures.most) == (21, 1.0, 6.0)
        assert [each.check for each in await steps(fed, None)] == ["gemm", "other"]
        (other,) = await steps(fed, None, check="other", metric="extra")
        assert other.metrics["extra"] == {"": MetricFigures(count=1, least=1.0, median=1.0, most=1.0)}
        await fed.compact(START + 4 * HOUR)


async def test_blocks_are_read_in_parts(fed, monkeypatch):  # noqa: F811
    """However many there are."""
    await fed.feed_day(hours=5)
    await fed.compact(START + 6 * HOUR)
    whole = await steps(fed, 300)
    monkeypatch.setattr(steps_module, "BLOCKS_AT_ONCE", 2)
    assert await steps(fed, 300) == whole


async def test_summaries_of_all_summaries_are_as_those_of_each(fed):  # noqa: F811
    """Read by columns or one by one, also where a device measured nothing for some time."""
    for number in range(200):
        values = [number / 4, None if number % 50 < 20 else number / 8]
        await fed.feed(START + number * 100.0, metrics={"tflops": values})
    await fed.compact(START + 2 * DAY, StoreSettings(keep_full_days=1, keep_days=10))
    five_minutes = await steps(fed, 300)
    assert len(five_minutes) > 60
    assert await steps(fed, None) == [merged(five_minutes)]


async def test_a_damaged_block_is_left_out(fed):  # noqa: F811
    """And counted; the others are there."""
    await fed.feed_day(hours=2)
    await fed.compact(START + 3 * HOUR)
    async with fed.store.database.writing() as connection:
        await connection.execute(update(SERIES).where(SERIES.c.since < START + HOUR).values(body=b"x"))
    found = [each.started_at for each in await steps(fed, 300)]
    assert found == [START, *(START + HOUR + 300.0 * number for number in range(12))]  # the first is a whole run
    assert fed.store.database.unread.count == 1


async def test_too_many_whole_runs_are_refused(fed, monkeypatch):  # noqa: F811
    """Reading them would take seconds."""
    monkeypatch.setattr(steps_module, "MOST_WHOLE_RUNS", 2)
    for number in range(3):
        await fed.feed(START + number, Verdict.FAIL)
    with pytest.raises(Refused, match="choose a shorter time"):
        await steps(fed, 300)


async def test_pages_of_steps_follow_each_other(fed):  # noqa: F811
    """The latest first, each step once; the values are medians between the extremes."""
    await fed.feed_day(hours=4)
    wanted = HistoryFilter(node="a", metric="tflops", since=START, until=START + DAY)
    found: list[HistoryPoint] = []
    cursor = None
    for _ in range(4):
        page = await stepped_history(fed.store.database, wanted, 1_200, 3, cursor)
        found, cursor = [*found, *page.items], page.next_cursor
    assert cursor is None
    assert [point.at for point in found] == [START + 1_200 * number for number in reversed(range(12))]
    last = found[0]
    assert (last.values, last.least, last.most) == ({"0": 11.625}, {"0": 11.25}, {"0": 12.0})
    assert last.verdicts == {Verdict.PASS: 4}
