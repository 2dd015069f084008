"""What is old of decisions, stories and sweeps goes, and what is needed of it stays."""

from typing import Any

import pytest
from sqlalchemy import select

from muster.config import Settings, StoreSettings
from muster.model import Run, ServiceState, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster.transition import Transition
from muster_coordinator.model.actions import Action
from muster_coordinator.model.case import Case
from muster_coordinator.model.events import SaveGroup, SaveNode, SaveStep, SaveSweep, StoreRuns, Tell
from muster_coordinator.model.nodes import NodeRecord, StoryEntry
from muster_coordinator.model.quarantine_events import FreezeLifted, Renewed, Restored, SaveAction, SaveCase, Step
from muster_coordinator.model.sweep_records import GroupRecord, GroupState, SweepRecord, SweepState
from muster_coordinator.store import retention as retention_module
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store
from muster_coordinator.store.stored_cases import read_log
from muster_coordinator.store.tables import GROUPS

DAY = 86_400.0
NOW = 20_000 * DAY
KEEP = StoreSettings(keep_days=10, keep_findings_days=100, keep_summaries_days=1000)
KNOWN: dict[str, Any] = {"settings": QuarantineSettings(), "rows": (), "cases": (), "actions": ()}
RESTORED = Restored(**KNOWN)
RENEWED = Renewed(**KNOWN, earlier=(), frozen=(), let_pass=(), ids=0)
DECIDED = FreezeLifted(by="ann", reason="so")


@pytest.fixture
async def store(tmp_path):
    store = await Store.open(Settings(data_dir=tmp_path))
    yield store
    await store.close()


async def thin(store):
    await Retention(store.database, KEEP, lambda: NOW, lambda _: None).thin()


async def log(store, epoch=1):
    """How old the steps of a log are in days, and what each is about."""
    async with store.database.engine.connect() as connection:
        steps = await read_log(connection, epoch)
    return [((NOW - step.at) / DAY, step.event.kind) for step in steps]


def step(age_days, event, epoch=1):
    return SaveStep(epoch, Step(at=NOW - age_days * DAY, event=event, decisions=()))


async def test_a_log_goes_up_to_a_beginning(store):
    """So that what is kept can be gone through again, from the last beginning that is too old."""
    await store.write([step(40, RESTORED), step(35, DECIDED), step(30, RENEWED), step(25, DECIDED)])
    await store.write([step(12, RENEWED), step(11, DECIDED), step(5, RENEWED), step(4, DECIDED)])
    await thin(store)
    assert await log(store) == [(12, "renewed"), (11, "freeze_lifted"), (5, "renewed"), (4, "freeze_lifted")]


async def test_a_log_that_was_never_begun_anew_stays(store):
    """However old it is: nothing of it can go."""
    await store.write([step(400, RESTORED), step(350, DECIDED), step(1, DECIDED)])
    await thin(store)
    assert len(await log(store)) == 3


async def test_the_logs_of_earlier_leaderships_go(store):
    """When a later one has begun long enough ago."""
    await store.write([step(40, RESTORED, 1), step(39, DECIDED, 1), step(30, RESTORED, 2), step(29, DECIDED, 2)])
    await store.write([step(9, RESTORED, 3), step(8, DECIDED, 3)])
    await thin(store)
    assert [len(await log(store, epoch)) for epoch in (1, 2, 3)] == [0, 2, 2]


async def test_beginnings_with_which_nothing_began_go_at_once(store):
    """A coordinator that ends again and again as soon as it has begun does not fill the disk; the last one stays."""
    await store.write([step(3, RESTORED, 1), step(2, DECIDED, 1)])
    await store.write([step(1, RESTORED, epoch) for epoch in range(2, 50)])
    await thin(store)
    assert [len(await log(store, epoch)) for epoch in (1, 2, 48, 49)] == [2, 0, 0, 1]


def action(name, age_days):
    before, after = ServiceState.IN_SERVICE, ServiceState.CORDONED
    transition = Transition(id=name, node="n1", before=before, after=after, reason="bad", at=NOW - age_days * DAY)
    return SaveAction(action=Action(transition=transition))


async def test_the_latest_transition_of_a_node_stays(store):
    """However old it is: of that one actors may still have to be told. Of the others only the young ones."""
    await store.write([action("t1", 400), action("t2", 300), action("t3", 200), action("t4", 20)])
    await store.write([SaveCase(case=Case(node="n1", since=NOW, transition="t2"))])
    await store.write([SaveCase(case=Case(node="n2", since=NOW))])
    await thin(store)
    assert [it.transition.id for it in (await store.decisions(None, 10, None)).items] == ["t4", "t2"]


async def test_stories_go_back_as_far_as_findings(store, monkeypatch):
    """Of all nodes, whatever the order in which it was written down, and however much there is."""
    monkeypatch.setattr(retention_module, "BATCH", 3)
    ages = (20, *range(101, 115), 99, 1)
    await store.write([Tell(StoryEntry(id="e", at=NOW - age * DAY, node="n1", kind="k", text="")) for age in ages])
    await thin(store)
    assert [(NOW - it.at) / DAY for it in (await store.story("n1", 100, None)).items] == [1, 99, 20]


async def test_streams_of_which_no_run_is_kept_go(store):
    """An agent that lost its outbox has begun a new one; each has a stream of its own, and comes again with none."""
    node = NodeRecord(name="n1", online=True, first_seen=0.0, last_seen=NOW, service=ServiceState.IN_SERVICE)
    run = Run(id="r2", node="n1", check="gemm", verdict=Verdict.PASS, started_at=NOW, duration_s=1.0, seq=3)
    await store.write([SaveNode(node), StoreRuns("n1", "old", 7, ()), StoreRuns("n1", "new", 3, (run,))])
    await thin(store)
    assert (await store.saved()).streams == {("n1", "new"): 3}


def sweep(name, age_days, state):
    record = SweepRecord(
        id=name, state=state, strategy="pairs", check="gemm", nodes=("n1", "n2"), created_at=NOW - age_days * DAY
    )
    group = GroupRecord(id=f"{name}-1", members=("n1", "n2"), state=GroupState.ENDED, started_at=record.created_at)
    return [SaveSweep(record), SaveGroup(name, 1, group)]


async def test_sweeps_that_ended_long_ago_go_with_their_groups(store):
    """One that still goes on stays."""
    old, running, young = sweep("a", 101, "aborted"), sweep("b", 101, SweepState.RUNNING), sweep("c", 99, "finished")
    await store.write([*old, *running, *young, *sweep("d", 500, "finished")])
    await thin(store)
    assert [it.id for it in (await store.sweeps(10, None)).items] == ["c", "b"]
    async with store.database.engine.connect() as connection:
        assert sorted(await connection.scalars(select(GROUPS.c.sweep))) == ["b", "c"]
