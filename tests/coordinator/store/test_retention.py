"""Old runs become summaries, and history knows both."""

import itertools

import pytest
from sqlalchemy.engine.default import DefaultDialect

from muster.config import Settings, StoreSettings
from muster.model import Run, ServiceState, Verdict
from muster_coordinator.model.events import SaveNode, StoreRuns
from muster_coordinator.model.history import HistoryPoint
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.store import retention as retention_module
from muster_coordinator.store.history import HistoryFilter, history
from muster_coordinator.store.last_runs import RUNS_TO_RESTORE
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.runs_view import RunFilter
from muster_coordinator.store.store import Store

HOUR, DAY = 3_600.0, 86_400.0
NOW = 500_000 * HOUR  # the beginning of an hour
KEEP = StoreSettings(keep_days=10, keep_findings_days=100, keep_summaries_days=1000)


@pytest.fixture
async def store(data_dir):
    store = await Store.open(Settings(data_dir=data_dir))
    node = NodeRecord(name="n", online=True, first_seen=0.0, last_seen=0.0, service=ServiceState.IN_SERVICE)
    await store.write([SaveNode(node)])
    yield store
    await store.close()


@pytest.fixture
def retention(store):
    return Retention(store.database, KEEP, lambda: NOW, lambda _: None)


numbers = itertools.count(1)


async def add(store, *ages_s, check="gemm", verdict=Verdict.PASS, value=1.0, **values) -> list[str]:
    """Stores runs of these ages; their ids."""
    runs = []
    for age_s in ages_s:
        seq = next(numbers)
        runs.append(
            Run(
                id=f"r{seq}",
                node="n",
                check=check,
                verdict=verdict,
                metrics={"each": [value, value + age_s / DAY], "one": value},
                facts={"devices": [4, 5]},
                started_at=NOW - age_s,
                duration_s=1.0,
                seq=seq,
                **values,
            )
        )
    await store.write([StoreRuns("n", "s", runs[-1].seq, tuple(runs))])
    return [run.id for run in runs]


async def kept(store) -> list[str]:
    return [run.id for run in reversed((await store.runs(RunFilter(), 10_000, None)).items)]


async def points(store, limit=1000, cursor=None, **wanted) -> list[HistoryPoint]:
    page = await history(store.database, HistoryFilter(**{"node": "n", "metric": "each", **wanted}), limit, cursor)
    assert len(page.items) <= limit
    return [*page.items, *(await points(store, limit, page.next_cursor, **wanted) if page.next_cursor else [])]


async def test_old_runs_become_a_summary_for_each_hour(store, retention):
    """Count, least, median and most of each metric and device, and the verdicts; what is younger stays."""
    await add(store, *(20 * DAY - minute * 60 for minute in (0, 1, 59)))
    await add(store, 20 * DAY - 30 * 60, verdict=Verdict.SKIPPED, value=7.0)
    await add(store, 20 * DAY - HOUR)
    young = await add(store, *(number * HOUR for number in range(10)))
    await retention.thin()
    assert await kept(store) == sorted(young, key=lambda name: -int(name[1:]))
    assert retention.counts.runs == 5
    later, earlier = [point for point in await points(store) if point.run is None]
    assert later.verdicts == {Verdict.PASS: 1}
    assert earlier.verdicts == {Verdict.PASS: 3, Verdict.SKIPPED: 1}
    assert earlier.at == NOW - 20 * DAY
    assert earlier.values.keys() == {"4", "5"}
    assert earlier.least is not None
    assert earlier.most is not None
    assert earlier.values["4"] == earlier.least["4"] == 1.0
    assert earlier.most["4"] == 7.0
    assert earlier.least["5"] == pytest.approx(21.0 - 59 / 1440)


async def test_a_summary_is_of_the_hour_by_our_clock(store, retention):
    """A node whose clock is a year ahead has its runs summarised with those of the others, and when they are old."""
    run = Run(
        id="ahead",
        node="n",
        check="gemm",
        verdict=Verdict.PASS,
        metrics={"each": [1.0]},
        started_at=NOW + 345 * DAY,
        duration_s=1.0,
        seq=1,
    )
    await store.write([StoreRuns("n", "s", 1, (run,), behind_s=-365 * DAY)])
    await add(store, *range(10))
    await retention.thin()
    assert [point.at for point in await points(store) if point.run is None] == [NOW - 20 * DAY]


async def test_thinning_again_changes_nothing(store, retention):
    """Also after a restart: nothing is summarised twice."""
    await add(store, *(20 * DAY + number for number in range(30)))
    await add(store, *range(10))
    await retention.thin()
    once = await points(store)
    await retention.thin()
    await Retention(store.database, KEEP, lambda: NOW, lambda _: None).thin()
    assert await points(store) == once
    assert sum(sum(point.verdicts.values()) for point in once) == 40


async def test_runs_that_are_old_when_they_come_are_thinned(store):
    """Within a day: a node may say that all its runs began in 1970, and fill the database with them."""
    now = NOW
    retention = Retention(store.database, KEEP, lambda: now, lambda _: None)
    await add(store, *(20 * DAY + number for number in range(30)))
    await retention.thin()
    late = await add(store, *(400 * DAY + number for number in range(30)))
    now = NOW + DAY
    await retention.thin()
    left = await store.runs(RunFilter(node="n"), 500, None)
    assert not {run.id for run in left.items} & {*late}


async def test_a_node_without_old_runs_costs_no_transaction(store, retention, monkeypatch):
    """However many nodes there are: each transaction would take a turn from who stores what nodes report."""

    async def transactions() -> int:
        begun = []
        with monkeypatch.context() as patch:
            patch.setattr(DefaultDialect, "do_begin", lambda *_: begun.append(1))
            await retention.thin()
        return len(begun)

    await retention.thin()  # which removes the log's beginnings
    of_none = await transactions()
    for number in range(20):
        node = NodeRecord(
            name=f"m{number}", online=True, first_seen=0.0, last_seen=0.0, service=ServiceState.IN_SERVICE
        )
        run = Run(
            id=f"{number}", node=node.name, check="gemm", verdict=Verdict.PASS, started_at=NOW, duration_s=1, seq=1
        )
        await store.write([SaveNode(node), StoreRuns(node.name, "s", 1, (run,))])
    assert await transactions() == of_none


async def test_an_id_may_come_again(store):
    """A run with the id of one that was summarised long ago is a run like any other."""
    for stream in ("a", "b"):
        run = Run(
            id="again",
            node="n",
            check="gemm",
            verdict=Verdict.PASS,
            metrics={"each": [1.0]},
            started_at=NOW - 20 * DAY,
            duration_s=1.0,
            seq=1,
        )
        await store.write([StoreRuns("n", stream, 1, (run,))])
        await add(store, *range(10))
        await Retention(store.database, KEEP, lambda: NOW, lambda _: None).thin()
    assert [point.verdicts for point in await points(store) if point.run is None] == [{Verdict.PASS: 1}] * 2


async def test_the_last_runs_of_each_check_stay(store, retention):
    """However old: health is folded from them after a restart."""
    rare = await add(store, *(50 * DAY - number for number in range(12)), check="memory")
    grouped = await add(store, *(50 * DAY - number for number in range(20, 32)), check="memory", group="g")
    before = (await store.saved()).runs
    await retention.thin()
    assert await kept(store) == rare[-RUNS_TO_RESTORE:] + grouped[-RUNS_TO_RESTORE:]
    assert (await store.saved()).runs == before


async def test_runs_that_found_something_are_kept_longer(store, retention):
    """Until their own time has come; then they are in a summary as well."""
    await add(store, 200 * DAY, verdict=Verdict.FAIL)
    await add(store, 50 * DAY, verdict=Verdict.FAIL)
    await add(store, *range(10))
    await retention.thin()
    found = [(point.run is None, point.verdicts) for point in await points(store)][-2:]
    assert found == [(False, {Verdict.FAIL: 1}), (True, {Verdict.FAIL: 1})]


async def test_very_old_summaries_go(store, retention):
    """They are counted."""
    await add(store, 2000 * DAY, 20 * DAY, *range(10))
    await retention.thin()
    assert retention.counts.summaries == 1
    assert len(await points(store)) == 11


async def test_batches_are_bounded_and_lose_nothing(store, retention, monkeypatch):
    """Whole hours while they fit, else what fits."""
    monkeypatch.setattr(retention_module, "BATCH", 10)
    await add(store, *(20 * DAY - 10 * number for number in range(65)))
    await add(store, *(20 * DAY - HOUR - 600 * number for number in range(60)))
    await add(store, *[15 * DAY] * 25)
    await add(store, *range(10))
    await retention.thin()
    assert len(await kept(store)) == 10
    found = await points(store)
    assert sum(sum(point.verdicts.values()) for point in found) == 65 + 60 + 25 + 10


async def test_history_is_in_pages_over_runs_and_summaries(store, retention):
    """The latest first, whatever the page size."""
    await add(store, *(20 * DAY + number * HOUR for number in range(7)))
    await add(store, *(number * HOUR for number in range(9)))
    await retention.thin()
    every = await points(store)
    assert [point.at for point in every] == sorted((point.at for point in every), reverse=True)
    assert len(every) == 16
    for limit in (1, 3, 16):
        assert await points(store, limit) == every


async def test_history_can_be_narrowed(store):
    """By check, device and time; what another check measures by the same name is there without."""
    await add(store, 10.0, 20.0, 30.0)
    await add(store, 10.0, check="memory")
    assert [point.values for point in await points(store, metric="one", check="memory")] == [{"": 1.0}]
    assert len(await points(store)) == 4
    assert len(await points(store, check="gemm", since=NOW - 20, until=NOW - 10)) == 1
    assert {tuple(point.values) for point in await points(store, device=5)} == {("5",)}
    assert await points(store, device=6) == []
    assert await points(store, metric="on_") == []
    assert await points(store, metric="facts") == []
    assert await points(store, node="another") == []
