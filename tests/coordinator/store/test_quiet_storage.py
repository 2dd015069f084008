"""Quiet runs in the database: they are listed and read like any other, wherever they are stored."""

import asyncio
import random
from typing import Any
from unittest import mock

import pytest
from sqlalchemy import delete, func, select, update
from structlog.testing import capture_logs
from tests.coordinator.fleets import fleet, head
from tests.coordinator.fleets import run as any_run
from tests.coordinator.store.stored_records import every_run
from tests.lots import seeds

from muster.config import StoreSettings
from muster.errors import Refused
from muster.model import Run, ServiceState, Verdict
from muster.wire.messages import Report
from muster_coordinator.model.events import Announce, ReportSeen, SaveNode, StoreRuns
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.store import compactor as compactor_module
from muster_coordinator.store import merging, packing
from muster_coordinator.store.compactor import Compactor
from muster_coordinator.store.history import HistoryFilter, history, require_measured
from muster_coordinator.store.paging import make_cursor
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.rows import Unreadable
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.series import starts_of, times_of
from muster_coordinator.store.tables import NODES, QUIET_RUNS, RUN_BASES, RUNS, SERIES

HOUR, DAY = 3_600.0, 86_400.0
START = 500_016 * HOUR  # the beginning of a day
KEEP = StoreSettings(keep_full_days=1, keep_days=10, keep_findings_days=100, keep_summaries_days=1000)


class Fed:
    """A store that a fleet writes to, and every run as it was announced, by id."""

    def __init__(self, store):
        self.store = store
        self.runs: dict[str, Run] = {}
        self._fleet = fleet("a", "b")
        self._seqs = {"a": 0, "b": 0}

    async def feed(self, at: float, verdict=Verdict.PASS, node="a", *, behind_s=0.0, **values) -> str:
        """Stores a run that began at `at`, and returns its id."""
        self._seqs[node] += 1
        seq = self._seqs[node]
        usual = {"cause": "schedule", "metrics": {"tflops": [seq / 4, None]}, "facts": {"name": "x", "free": seq / 8}}
        changed = {**usual, "started_at": at - behind_s, "id": f"{node}-{seq}", **values}
        run = any_run(seq, verdict, node).model_copy(update=changed)
        head_of = {**head(node), "sent_at": at + 1 - behind_s}
        message = Report(**head_of, stream="s", after=seq - 1, runs=(run,))
        commands = self._fleet.handle(ReportSeen(message), at + 1)
        await self.store.write([command for command in commands if isinstance(command, StoreRuns)])
        (told,) = (command.payload for command in commands if isinstance(command, Announce) and command.kind == "run")
        assert isinstance(told, Run)
        self.runs[told.id] = told
        return told.id

    async def feed_day(self, hours=24, node="a", step_s=300.0) -> None:
        for number in range(int(hours * HOUR / step_s)):
            await self.feed(START + number * step_s, node=node)

    async def listed(self, limit=1000, **wanted) -> list[str]:
        return await every_run(self.store, limit, **wanted)

    async def count(self, table, *conditions) -> int:
        async with self.store.database.reading() as connection:
            return int(await connection.scalar(select(func.count()).select_from(table).where(*conditions)) or 0)

    async def compact(self, now, keep=KEEP):
        await Compactor(self.store.database, keep, lambda: now).compact()

    async def points(self, limit=1000, cursor=None, **wanted):
        page = await history(
            self.store.database, HistoryFilter(**{"node": "a", "metric": "tflops", **wanted}), limit, cursor
        )
        more = await self.points(limit, page.next_cursor, **wanted) if page.next_cursor else []
        return [*page.items, *more]


@pytest.fixture
async def fed(store):
    nodes = (
        NodeRecord(name=name, online=True, first_seen=0.0, last_seen=0.0, service=ServiceState.IN_SERVICE)
        for name in "ab"
    )
    await store.write([SaveNode(node) for node in nodes])
    return Fed(store)


async def all_is_there(fed):
    """Every run is listed once, in every way, and reads as it was announced."""
    by_time = sorted(fed.runs.values(), key=lambda run: (run.started_at, run.id), reverse=True)
    for limit in (1000, 7):
        assert await fed.listed(limit) == [run.id for run in by_time]
    for run in by_time:
        assert await fed.store.run(run.id) == run
    page = await fed.store.runs(RunFilter(), 1000, None)
    assert list(page.items) == by_time


async def test_quiet_runs_are_listed_and_read_as_they_were(fed):
    """Beside whole runs, in the order of time; what is stored of them is small."""
    for seq in range(30):
        await fed.feed(START + seq, Verdict.FAIL if seq == 10 else Verdict.PASS)
    assert await fed.count(QUIET_RUNS) > 20
    await all_is_there(fed)


async def test_packed_runs_are_as_they_were(fed):
    """When an hour has passed they are in blocks; later runs are not. Packing again changes nothing."""
    await fed.feed_day(hours=2.5)
    await fed.feed_day(hours=1, node="b")
    for _ in range(2):
        await fed.compact(START + 2.6 * HOUR)
        assert await fed.count(QUIET_RUNS, QUIET_RUNS.c.started_at < START + 2 * HOUR) == 0
        assert await fed.count(QUIET_RUNS) == 6
        assert await fed.count(SERIES) == 3
        await all_is_there(fed)


@pytest.mark.parametrize("seed", seeds(1))
async def test_pages_and_filters_are_the_same_before_and_after_packing(fed, seed, monkeypatch):
    """Of runs of two nodes and checks that came in any order, with any verdict, at the same moments."""
    monkeypatch.setattr(merging, "BLOCKS_AT_ONCE", 2)
    chance = random.Random(seed)
    for _ in range(120):
        await fed.feed(
            START + chance.randrange(0, 9_000),
            chance.choices([Verdict.PASS, Verdict.SKIPPED, Verdict.FAIL], weights=[20, 2, 1])[0],
            chance.choice("ab"),
            check=chance.choice(("gemm", "collective")),
            facts={"name": chance.choice("xxxy"), "free": chance.randrange(9) / 8},
        )
    wanted: list[dict[str, Any]] = [
        {},
        {"node": "a"},
        {"check": "gemm"},
        {"node": "b", "check": "collective"},
        {"verdict": Verdict.SKIPPED},
        {"verdict": Verdict.FAIL},
        {"verdict": Verdict.PASS, "since": START + 4_000.0},
        {"node": "absent"},
    ]
    # Page by page, run by run without a filter, and all at once.
    lists = [*((limit, each) for each in wanted for limit in (7, 1000)), (1, {})]
    before = [await fed.listed(limit, **each) for limit, each in lists]
    await fed.compact(START + 2 * HOUR)
    await all_is_there(fed)
    assert [await fed.listed(limit, **each) for limit, each in lists] == before
    monkeypatch.setattr(compactor_module, "ROWS", 7)
    await fed.compact(START + 4 * HOUR)
    assert await fed.count(QUIET_RUNS) == 0
    assert [await fed.listed(limit, **each) for limit, each in lists] == before
    await all_is_there(fed)


async def test_a_page_reads_the_starts_of_one_hour_and_the_runs_it_shows(fed, monkeypatch):
    """Of the other blocks of that hour it reads the starts only, of other hours nothing."""
    for number in range(180):
        for node in "ab":
            like = {
                "check": ("gemm", "collective")[number % 2],
                "facts": {"name": "wxyz"[number // 2 % 4], "free": 0.5},
            }
            await fed.feed(START + number * 60, node=node, **like)
    await fed.compact(START + 4 * HOUR)
    starts = mock.Mock(wraps=starts_of)
    whole = mock.Mock(wraps=times_of)
    monkeypatch.setattr(merging, "starts_of", starts)
    monkeypatch.setattr(merging, "times_of", whole)
    by_time = sorted(fed.runs.values(), key=lambda run: (run.started_at, run.id), reverse=True)
    at = by_time[179]  # in the middle of the second of three hours
    page = await fed.store.runs(RunFilter(), 4, make_cursor(at.started_at, at.id))
    assert list(page.items) == by_time[180:184]
    assert (await fed.count(SERIES), starts.call_count) == (48, 16)
    assert 4 <= whole.call_count < starts.call_count


async def test_a_run_that_comes_again_is_stored_once(fed):
    """As after a restart without the number of the stream."""
    await fed.feed(START)
    quiet = await fed.feed(START + 1)
    again = fleet("a", "b")
    for seq in (1, 2):
        usual = {"cause": "schedule", "metrics": {"tflops": [seq / 4, None]}, "facts": {"name": "x", "free": seq / 8}}
        run = any_run(seq).model_copy(update={**usual, "started_at": START + seq - 1, "id": f"a-{seq}"})
        message = Report(**{**head("a"), "sent_at": START + seq}, stream="s", after=seq - 1, runs=(run,))
        commands = again.handle(ReportSeen(message), START + seq)
        await fed.store.write([command for command in commands if isinstance(command, StoreRuns)])
    assert await fed.listed() == [quiet, "a-1"]


async def test_a_run_of_a_wrong_clock_stands_where_it_began(fed):
    """By the coordinator's clock; the run says what its node has reported, also from a block."""
    await fed.feed(START)
    late = await fed.feed(START + 10, behind_s=500.0)
    last = await fed.feed(START + 20)
    for _ in range(2):
        assert await fed.listed() == [last, late, "a-1"]
        assert (await fed.store.run(late)).started_at == START - 490
        await fed.compact(START + 2 * HOUR)


async def test_old_blocks_become_summaries(fed):
    """Of five minutes, then of hours; whole runs stay, and history has all of it."""
    await fed.feed_day(step_s=60.0)
    exact = await fed.points()
    assert len(exact) == 1440
    assert [point.run for point in exact[:-1]] == [run for run in await fed.listed() if run != "a-1"]
    await fed.compact(START + 1.2 * DAY)
    assert await fed.points() == exact
    await fed.compact(START + 2.3 * DAY)
    assert await fed.listed() == ["a-1"]
    five = await fed.points()
    assert len(five) == 288 + 1
    assert sum(sum(point.verdicts.values()) for point in five) == 1440
    assert five[0].values == {"0": 1438 / 4}
    assert (five[0].least, five[0].most) == ({"0": 1436 / 4}, {"0": 1440 / 4})
    assert [point.at for point in five] == sorted((point.at for point in five), reverse=True)
    assert await fed.points(limit=10) == five
    assert len(await fed.points(since=START + 12 * HOUR, until=START + 13 * HOUR, device=0)) == 12
    await fed.compact(START + 12 * DAY)
    hours = await fed.points()
    assert len(hours) == 24 + 1
    assert sum(sum(point.verdicts.values()) for point in hours) == 1440
    assert hours[0].most == five[0].most
    assert await fed.count(SERIES) == 1


async def test_a_metric_is_known_wherever_it_was_measured(fed):
    """In rows, blocks and summaries of quiet runs; another name is not."""
    await fed.feed_day(hours=1)
    wanted = HistoryFilter(node="a", metric="tflops")
    for now in (START + 2 * HOUR, START + 3 * DAY, START + 15 * DAY):
        await require_measured(fed.store.database, wanted, {"gemm"})
        assert await fed.points(metric="free") == []
        with pytest.raises(Refused, match="did you mean 'tflops'"):
            await require_measured(fed.store.database, HistoryFilter(node="a", metric="tflop"), {"gemm"})
        await fed.compact(now)


async def test_the_run_that_others_are_like_stays_as_long_as_they_need_it(fed):
    """However old, and although no new run may be like it."""
    await fed.feed(START)
    quiet = await fed.feed(START + 1)
    for number in range(12):
        await fed.feed(START + 2 + number, Verdict.FAIL)
    assert await fed.count(RUN_BASES) == 0
    keep = KEEP.model_copy(update={"keep_findings_days": 10})
    retention = Retention(fed.store.database, keep, lambda: START + 20 * DAY, lambda _: None)
    await retention.thin()
    assert await fed.store.run(quiet) == fed.runs[quiet]
    await retention.compactor.compact()
    async with fed.store.database.writing() as connection:  # 8 decisive runs stay in any case
        await connection.execute(delete(RUNS).where(RUNS.c.id == "a-1"))
    assert sum(sum(point.verdicts.values()) for point in await fed.points() if point.run is None) >= 1


async def test_a_live_base_is_never_deleted(fed):
    """New runs may be like it at any time."""
    await fed.feed(START)
    for number in range(12):
        await fed.feed(START + 1 + number, cause=None)
    await Retention(fed.store.database, KEEP, lambda: START + 20 * DAY, lambda _: None).thin()
    late = await fed.feed(START + 20 * DAY)
    assert await fed.store.run(late) == fed.runs[late]


async def test_what_a_node_measured_goes_with_it(fed, store):
    """Rows of quiet runs that nobody could read without the whole ones."""
    await fed.feed(START)
    await fed.feed(START + 1)
    async with store.database.writing() as connection:
        await connection.execute(delete(NODES).where(NODES.c.name == "a"))
    await Retention(store.database, KEEP, lambda: START + 2, lambda _: None).thin()
    assert (await fed.count(QUIET_RUNS), await fed.count(RUN_BASES), await fed.listed()) == (0, 0, [])


async def test_damaged_rows_are_left_out_named_and_kept(fed):
    """A list works without them; a request for one is an error; packing leaves them where they are."""
    ids = [await fed.feed(START + number) for number in range(5)]
    async with fed.store.database.writing() as connection:
        await connection.execute(update(QUIET_RUNS).where(QUIET_RUNS.c.seq == 3).values(body=b"x"))
    assert await fed.listed() == [ids[4], ids[3], ids[1], ids[0]]
    with pytest.raises(Unreadable, match=r"row '.*\.3' of table quiet_runs"):
        await fed.store.run(ids[2])
    await fed.compact(START + 2 * HOUR)
    assert await fed.listed() == [ids[4], ids[3], ids[1], ids[0]]
    assert await fed.count(QUIET_RUNS) == 1
    async with fed.store.database.writing() as connection:
        await connection.execute(update(SERIES).values(body=b"x"))
    assert await fed.listed() == [ids[0]]
    with pytest.raises(Unreadable, match="of table series"):
        await fed.store.run(ids[1])
    await fed.compact(START + 3 * DAY)
    assert await fed.count(SERIES) == 1


@pytest.mark.parametrize("damage", [delete(RUNS), update(RUNS).values(body="x")])
async def test_quiet_runs_whose_whole_run_is_lost_are_counted_once_and_go_in_the_end(fed, damage):
    """What another run is like is packed; the others stay as long as runs without findings."""
    for number in range(5):
        await fed.feed(START + number, facts={"name": "x", "free": number / 8})
        await fed.feed(START + 10 + number, check="collective")
    async with fed.store.database.writing() as connection:
        await connection.execute(damage.where(RUNS.c.check == "gemm"))
    moments = iter((START + 2 * HOUR, START + 2 * HOUR, START + 9 * DAY, START + 11 * DAY))
    compactor = Compactor(fed.store.database, KEEP, lambda: next(moments))
    counted = []
    for _ in range(3):
        await compactor.compact()
        counted.append((await fed.count(QUIET_RUNS), fed.store.database.unread.count))
    is_damaged = 1 if damage.is_update else 0
    assert counted == [(4, 4 + is_damaged)] * 3
    with capture_logs() as logs:
        await compactor.compact()
    assert [line for line in logs if line["event"] == "unreadable_runs_removed"] == [
        {"event": "unreadable_runs_removed", "log_level": "warning", "node": "a", "runs": 4}
    ]
    assert await fed.count(QUIET_RUNS) == 0
    late = await fed.feed(START + 11 * DAY, check="collective")
    assert await fed.store.run(late) == fed.runs[late]


async def test_two_coordinators_do_not_pack_the_same_runs(fed, monkeypatch):
    """The second one finds that they are gone, and stores nothing."""
    await fed.feed_day(hours=1)
    other = Compactor(fed.store.database, KEEP, lambda: START + 2 * HOUR)
    packed = packing.packed_rows

    def after_the_other(*given):
        monkeypatch.setattr(packing, "packed_rows", packed)
        asyncio.run_coroutine_threadsafe(other.compact(), loop).result()
        return packed(*given)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(packing, "packed_rows", after_the_other)
    await fed.compact(START + 2 * HOUR)
    assert await fed.count(SERIES) == 1
    await all_is_there(fed)


async def test_packed_runs_take_little_room(fed):
    """A block takes less than a thirtieth of the whole runs in it."""
    await fed.feed_day(hours=1, step_s=10.0)
    whole = sum(len(run.model_dump_json()) for run in fed.runs.values())
    await fed.compact(START + 2 * HOUR)
    async with fed.store.database.reading() as connection:
        taken = await connection.scalar(select(func.sum(func.length(SERIES.c.body) + func.length(SERIES.c.times))))
    assert taken < whole / 30
