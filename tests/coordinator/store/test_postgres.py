"""The store on a PostgreSQL server of its own: what it writes, packs, deletes and starts from, as with SQLite."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text
from tests.coordinator.restart import test_evidence_after_restart as restart
from tests.coordinator.store import test_acceptance_reports as accepted
from tests.coordinator.store import test_quiet_storage as quiet
from tests.coordinator.store import test_recent as recent
from tests.coordinator.store.revisions import downgrade
from tests.coordinator.store.stored_records import START, make_node, make_run, stored

from muster.config import Settings, StoreSettings
from muster.model import Verdict
from muster_coordinator.model.baseline_commands import EraseBaseline, SaveLevels, SaveResults
from muster_coordinator.model.baselines import LevelsRecord, ResultsRecord
from muster_coordinator.model.events import SaveEvidence, SaveNode
from muster_coordinator.model.evidence_record import EvidenceRecord
from muster_coordinator.model.quarantine_events import EraseNode
from muster_coordinator.store.disk_budget import GB, used_bytes
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store
from muster_coordinator.store.tables import METADATA, QUIET_RUNS, SERIES

EVIDENCE = EvidenceRecord(node="n1", others=("gemm",))
LEVELS = LevelsRecord(baseline="b1", node="n1", levels={"0": ("GPU-1", 700.0, 2.5, ())})
RESULTS = ResultsRecord(fingerprint="b1", node="n1", results={"0": "ab12"})
KEEP = StoreSettings(keep_full_days=30, keep_days=300)


@pytest.fixture
async def settings(postgres, tmp_path):
    """Settings with an empty database on the server."""
    found = Settings(data_dir=tmp_path, store=StoreSettings(url=postgres.url))
    store = await Store.open(found)
    async with store.database.engine.begin() as connection:
        await connection.execute(text("DROP SCHEMA public CASCADE"))
        await connection.execute(text("CREATE SCHEMA public"))
    await store.close()
    return found


@pytest.fixture
async def store(settings):
    """An open store."""
    opened = await Store.open(settings)
    yield opened
    await opened.close()


async def test_the_migrations_make_the_tables_that_the_store_uses(store):
    """A database made by the migrations does not differ from the tables in the code."""
    async with store.database.engine.connect() as connection:
        differences = await connection.run_sync(
            lambda sync: compare_metadata(MigrationContext.configure(sync), METADATA)
        )
    assert differences == []


async def test_a_database_of_the_last_release_is_brought_up(settings):
    """What nodes announce moves, levels lose what was not stored, and the evidence follows from the last runs."""
    store = await Store.open(settings)
    node = make_node("n1", START)
    await store.write([SaveNode(node), stored(make_run(1)), SaveLevels(LEVELS)])
    async with store.database.engine.begin() as connection:
        await connection.run_sync(downgrade, "0006")
    await store.close()
    again = await Store.open(settings)
    saved = await again.saved()
    await again.close()
    assert (saved.nodes, saved.evidence, saved.runs) == ((node,), (), (make_run(1),))
    assert [*saved.levels["b1"]] == [LEVELS]


async def test_evidence_and_comparisons_are_stored_and_deleted(store):
    """Also together in one batch; with stored evidence, no run is read."""
    runs = stored(make_run(1))
    await store.write([SaveNode(make_node("n1", START)), runs, SaveEvidence(EVIDENCE), SaveLevels(LEVELS)])
    await store.write([SaveResults(RESULTS), runs])
    saved = await store.saved()
    assert (saved.evidence, saved.runs, [*saved.results["b1"]]) == ((EVIDENCE,), (), [RESULTS])
    await store.write([EraseBaseline("b1"), EraseNode(node="n1")])
    saved = await store.saved()
    assert (saved.nodes, saved.evidence, dict(saved.levels), dict(saved.results)) == ((), (), {}, {})


async def test_a_restart_at_any_moment_changes_nothing(settings, tmp_path, monkeypatch):
    """As with SQLite: neither what is known about nodes, nor what follows from their next runs."""
    monkeypatch.setattr(restart, "Settings", lambda data_dir: settings)
    monkeypatch.setattr(restart, "EVENTS", 300)
    await restart.test_a_restart_at_any_moment_changes_nothing(tmp_path, 0, monkeypatch)


@pytest.fixture
async def fed(store):
    """The store, and a fleet of two nodes that writes to it."""
    await store.write([SaveNode(make_node(name, START)) for name in "ab"])
    return quiet.Fed(store)


async def test_quiet_runs_are_packed_listed_and_summarised(fed):
    """Every run is there once, in every way and order, before and after packing; then in summaries."""
    for number in range(90):
        verdict = Verdict.FAIL if number == 50 else Verdict.PASS
        await fed.feed(quiet.START + number * 120, verdict, "ab"[number % 2])
    assert await fed.count(QUIET_RUNS) > 80
    await quiet.all_is_there(fed)
    await fed.compact(quiet.START + 4 * quiet.HOUR)
    assert (await fed.count(QUIET_RUNS), await fed.count(SERIES)) == (0, 7)
    await quiet.all_is_there(fed)
    exact = await fed.points()
    for days in (3, 15):
        await fed.compact(quiet.START + days * quiet.DAY)
        assert sum(sum(point.verdicts.values()) for point in await fed.points()) == len(exact) == 45
    assert await fed.count(SERIES) == 2


async def test_pages_are_the_same_before_and_after_packing(fed, monkeypatch):
    """Also where runs began at the same moment, whose order is that of their ids in bytes."""
    await quiet.test_pages_and_filters_are_the_same_before_and_after_packing(fed, 1, monkeypatch)


async def test_two_coordinators_do_not_pack_the_same_runs(fed, monkeypatch):
    """The second one finds that they are gone, and stores nothing."""
    await quiet.test_two_coordinators_do_not_pack_the_same_runs(fed, monkeypatch)


async def test_the_oldest_detail_goes_first_when_the_database_is_nearly_full(fed):
    """By the size that PostgreSQL tells, without the space of what was deleted."""
    await fed.feed_day(hours=14, step_s=120.0)
    now = quiet.START + 30 * quiet.HOUR
    await fed.compact(now, KEEP)
    async with fed.store.database.reading() as connection:
        used = await used_bytes(connection)
    keep = KEEP.model_copy(update={"max_gb": (used - 1_000) / GB})
    budget = Retention(fed.store.database, keep, lambda: now, lambda _: None).budget
    await budget.keep()
    assert await fed.count(SERIES, SERIES.c.resolution_s == 0, SERIES.c.since < quiet.START + 6 * quiet.HOUR) == 0
    assert budget.use.used_bytes < used
    assert sum(sum(point.verdicts.values()) for point in await fed.points()) == 420


async def test_what_happened_lately_is_found(store):
    """By kind, the latest first, and cut where there is more."""
    await recent.test_entries_of_a_kind_are_found_among_many_others(store)
    await recent.test_a_list_that_is_cut_says_so(store, 2, is_cut=True)


async def test_acceptance_reports(store):
    """They are found again."""
    await accepted.test_a_report_is_read_as_it_was_stored(store)


async def test_old_acceptance_reports(store):
    """They end."""
    await accepted.test_reports_go_when_findings_go(store)
