"""What is old of decisions, stories and sweeps goes, and what is needed of it stays."""

from sqlalchemy import select

from muster.config import StoreSettings
from muster.model import Run, ServiceState, Verdict
from muster.transition import Transition
from muster_coordinator.model.events import AppendStory, SaveGroup, SaveNode, SaveSweep, StoreRuns
from muster_coordinator.model.nodes import NodeRecord, StoryEntry
from muster_coordinator.model.quarantine import ActorStatus, NodeDecision, QuarantineRecord
from muster_coordinator.model.quarantine_events import SaveRecord, SaveTransition
from muster_coordinator.model.sweep_records import GroupRecord, GroupState, SweepRecord, SweepState
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.store import retention as retention_module
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.tables import GROUPS

DAY = 86_400.0
NOW = 20_000 * DAY
KEEP = StoreSettings(keep_days=10, keep_findings_days=100, keep_summaries_days=1000)


async def thin(store):
    await Retention(store.database, KEEP, lambda: NOW, lambda _: None).thin()


def action(name, age_days):
    before, after = ServiceState.IN_SERVICE, ServiceState.CORDONED
    transition = Transition(id=name, node="n1", before=before, after=after, reason="bad", at=NOW - age_days * DAY)
    return SaveTransition(record=TransitionRecord(transition=transition))


async def test_the_latest_transition_of_a_node_stays(store):
    """However old it is: of that one actors may still have to be told. Of the others only the young ones."""
    await store.write([action("t1", 400), action("t2", 300), action("t3", 200), action("t4", 20)])
    decision = NodeDecision(since=NOW)
    named = QuarantineRecord(node="n1", decision=decision, actors=ActorStatus(transition="t2"))
    other = QuarantineRecord(node="n2", decision=decision)
    await store.write([SaveRecord(record=named), SaveRecord(record=other)])
    await thin(store)
    assert [it.transition.id for it in (await store.decisions(None, 10, None)).items] == ["t4", "t2"]


async def test_stories_go_back_as_far_as_findings(store, monkeypatch):
    """Of all nodes, whatever the order in which it was written down, and however much there is."""
    monkeypatch.setattr(retention_module, "BATCH", 3)
    ages = (20, *range(101, 115), 99, 1)
    await store.write(
        [AppendStory(StoryEntry(id="e", at=NOW - age * DAY, node="n1", kind="k", text="")) for age in ages]
    )
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
