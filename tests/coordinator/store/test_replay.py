"""Replaying a policy on a real database, beside a coordinator that holds it."""

import pytest
from tests.coordinator.fleets import check
from tests.coordinator.store.test_cases_of_0005 import write

from muster.check import Scope
from muster.config import Settings, StoreSettings
from muster.errors import Unavailable
from muster.model import Action, Finding, Inventory, Run, ServiceState, Severity, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster.wire.messages import InventoryReport, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import InventorySeen, ReportSeen, SaveNode, SaveSweep, StoreRuns
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.quarantine import NodeDecision, NodeEvidence, QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    Asked,
    HoldRequested,
    NodeForgotten,
    ReleaseRequested,
    SaveRecord,
    SaveRequest,
)
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord, SweepState
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_coordinator.store.opening import open_to_read
from muster_coordinator.store.replay import replay_stored
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store

START = 1_800_000_000.0
POLICY = Policy(shipped_rows())


@pytest.fixture
def settings(tmp_path):
    return Settings(data_dir=tmp_path / "a data dir?")


@pytest.fixture
async def store(settings):
    store = await Store.open(settings)
    yield store
    await store.close()


def run(node, seq, code=None, **said):
    finding = code and Finding(code=code, summary="found", severity=Severity.ERROR, action=Action.REBOOT_NODE)
    usual = {
        "check": "nvml",
        "verdict": Verdict.FAIL if code else Verdict.PASS,
        "findings": (finding,) if finding else (),
        "started_at": START + seq,
        "duration_s": 1.0,
    }
    return Run(id=f"{node}-{seq}", node=node, seq=seq, **{**usual, **said})


def stored(*runs):
    return StoreRuns(runs[0].node, "s", runs[-1].seq, runs)


def sweep(id, at, **found):
    return SaveSweep(
        SweepRecord(
            id=id,
            state=SweepState.FINISHED,
            strategy="adaptive",
            check="collective",
            nodes=("n1", "n2"),
            created_at=START,
            ended_at=START + at,
            **found,
        )
    )


def convicted(name):
    return FailedNode(node=name, code="collective.slow", confidence=0.9, reasons=("slow with everyone",))


async def replayed(settings, since=START, now=START + 5_000, **quarantine):
    engine = open_to_read(settings)
    assert engine is not None
    try:
        return await replay_stored(engine, QuarantineSettings(**quarantine), POLICY, since, now)
    finally:
        await engine.dispose()


async def taken_out(settings, since=START):
    """When, by which row and how often the policy required each node to go."""
    return {
        name: node.first and (node.first.at - START, node.first.requirement.row, node.times)
        for name, node in (await replayed(settings, since)).replay.by_node.items()
    }


async def test_runs_and_sweeps_are_replayed_in_order(settings, store):
    """By node; nodes about which nothing was found are not even looked at."""
    await store.write(
        [
            stored(run("good", 1), run("good", 2)),
            stored(run("lost", 1), run("lost", 2, "nvml.device_lost"), run("lost", 3)),
            stored(
                run("slow", 1, "gemm.slow", check="gemm"),
                run("slow", 2, verdict=Verdict.SKIPPED, check="gemm"),
                run("slow", 3, "gemm.slow", check="gemm", group="g1"),
                run("slow", 900, "gemm.slow", check="gemm"),
            ),
            sweep("s1", 500, failed_nodes=(convicted("n1"),), cleared_nodes=("n2",)),
            sweep("s2", 600, cleared_nodes=("n1",)),
            sweep("s3", 4_000, failed_nodes=(convicted("n1"),)),
        ]
    )
    assert await taken_out(settings) == {
        "lost": (3.0, "gpu-lost", 1),
        "slow": (901.0, "slow", 1),
        "n1": (500.0, "convicted", 2),
    }


async def test_a_fault_that_comes_and_goes_is_not_cleared_by_one_sweep(settings, store):
    """So the second conviction of the node takes it out no second time."""
    comes_and_goes = convicted("n1").model_copy(update={"intermittent": True})
    await store.write(
        [
            sweep("s1", 500, failed_nodes=(comes_and_goes,)),
            sweep("s2", 600, cleared_nodes=("n1",)),
            sweep("s3", 4_000, failed_nodes=(comes_and_goes,)),
        ]
    )
    assert await taken_out(settings) == {"n1": (500.0, "convicted", 1)}


async def test_more_runs_than_are_read_at_a_time(settings, store):
    """What stands between passes that come in other portions is found all the same."""
    runs = [run("n1", seq, "nvml.device_lost" if seq == 777 else None) for seq in range(1, 1001)]
    await store.write([stored(*runs)])
    assert await taken_out(settings) == {"n1": (778.0, "gpu-lost", 1)}


async def test_what_is_too_long_ago_does_not_count(settings, store):
    """Runs and sweeps before the period are left out."""
    await store.write([stored(run("n1", 1, "nvml.device_lost")), sweep("s1", 2, failed_nodes=(convicted("n2"),))])
    assert await taken_out(settings, since=START + 10) == {}


async def test_a_replay_begins_where_all_runs_are_stored(settings, store):
    """Findings are kept for longer than the passes that ended them: the node would go, and never come back."""
    day = 86_400
    early = [run("n1", seq, "nvml.device_lost" if seq == 3 else None) for seq in range(1, 10)]
    late = [run("n1", 10 * day + seq) for seq in range(1, 10)]
    service = ServiceState.IN_SERVICE
    nodes = (NodeRecord(name=f"n{n}", online=True, first_seen=0, last_seen=0, service=service) for n in (1, 2, 3))
    known = [SaveNode(node) for node in nodes]
    await store.write([*known, stored(*early), stored(*late)])
    now = START + 10 * day + 100
    assert (await replayed(settings, now=now)).replay.drained == {"n1"}
    keep = StoreSettings(keep_days=5, keep_findings_days=90)
    await Retention(store.database, keep, lambda: now, lambda _: None).thin()
    thinned = await replayed(settings, now=now)
    assert (thinned.replay.drained, thinned.begins) == (frozenset(), START + 10 * day + 1)
    assert START < thinned.complete_from <= START + 3_600


async def test_a_replay_begins_with_the_first_run_however_it_is_stored(settings, store):
    """Quiet runs change nothing about what is decided; but the replay covers their time."""
    fleet = Fleet(name="test", epoch=1)
    checks = (check("nvml", Scope.NODE),)
    fleet.handle(InventorySeen(InventoryReport(sent_at=START, node="n1", inventory=Inventory(), checks=checks)), START)
    for seq in range(1, 40):
        due = run("n1", seq, "nvml.device_lost" if seq == 30 else None, cause="schedule")
        message = Report(sent_at=START + seq, node="n1", stream="s", after=seq - 1, runs=(due,))
        await store.write(fleet.handle(ReportSeen(message), START + seq + 1))
    found = await replayed(settings, since=START + 10.5)
    assert (found.begins, found.complete_from) == (START + 11, 0.0)
    assert [(it.at - START, it.kind.value) for it in found.replay.decisions][:1] == [(31.0, "WAITS")]
    await Retention(store.database, StoreSettings(), lambda: START + 7_200, lambda _: None).compactor.compact()
    packed = await replayed(settings, since=START + 10.5)
    assert (packed.begins, packed.replay.decisions) == (START + 10.5, found.replay.decisions)


async def test_reading_changes_nothing(settings, store):
    """The database is read while the coordinator holds it, and whoever reads it cannot write."""
    await store.write([stored(run("n1", 1, "nvml.device_lost"))])
    engine = open_to_read(settings)
    assert engine is not None
    async with engine.connect() as connection:
        with pytest.raises(Exception, match="readonly database"):
            await connection.exec_driver_sql("DELETE FROM runs")
    await engine.dispose()
    await store.write([stored(run("n1", 2, "nvml.device_lost"))])
    assert list(await taken_out(settings)) == ["n1"]


async def test_a_database_that_nobody_has_open_is_read_as_well(settings):
    """As when the coordinator is stopped; it can start again afterwards."""
    for seq in (1, 2):
        store = await Store.open(settings)
        await store.write([stored(run("n1", seq, "nvml.device_lost"))])
        await store.close()
        assert await taken_out(settings) == {"n1": (2.0, "gpu-lost", 1)}


async def test_what_is_no_database_is_unavailable(settings):
    """With the reason that the database gives."""
    settings.data_dir.mkdir()
    (settings.data_dir / "muster.db").write_text("not a database, but long enough to be looked at as one" * 100)
    with pytest.raises(Unavailable, match="the database cannot be read: file is not a database"):
        await taken_out(settings)


def test_there_need_be_no_database(settings):
    """And none is made by asking."""
    assert open_to_read(settings) is None
    assert not settings.data_dir.exists()


def asked(id, at, request):
    return SaveRequest(asked=Asked(id=id, at=START + at, request=request))


async def decided(settings, since=START):
    """When, about whom and what was decided in a replay."""
    decisions = (await replayed(settings, since=since)).replay.decisions
    return [(it.at - START, it.node, it.kind.value) for it in decisions]


async def test_holds_count_from_before_the_period_until_they_are_released(settings, store):
    """What people asked for before it is not replayed; what still stands then holds."""
    await store.write(
        [
            stored(run("n1", 200, "nvml.device_lost"), run("n1", 400, "nvml.device_lost")),
            stored(run("n2", 200, "nvml.device_lost")),
            asked("r1", 1, HoldRequested(node="n1", by="ada", reason="mine")),
            asked("r2", 2, HoldRequested(node="n2", by="ada", reason="mine")),
            asked("r3", 3, ReleaseRequested(node="n2", by="ada", reason="done")),
            asked("r4", 300, ReleaseRequested(node="n1", by="ada", reason="done")),
            asked("r5", 350, NodeForgotten(node="n1", by="ada", reason="silence is not replayed")),
        ]
    )
    assert await decided(settings, since=START + 100) == [
        (201.0, "n1", "ON_HOLD"),
        (201.0, "n2", "DRAINED"),
        (300.0, "n1", "WAITS"),
    ]


async def test_a_run_counts_when_it_ends(settings, store):
    """A long run that began first becomes known after the short one, also beyond what is read at a time."""
    passed = [run("n2", seq) for seq in range(2, 600)]
    await store.write(
        [
            stored(run("n1", 1, "nvml.device_lost", duration_s=500.0)),
            stored(run("n2", 1, "nvml.device_lost"), *passed),
        ]
    )
    assert [it for it in await decided(settings) if it[2] != "RETURNED"][:2] == [
        (2.0, "n2", "DRAINED"),
        (501.0, "n1", "WAITS"),
    ]


async def test_failure_domains_and_known_checks_are_those_of_today(settings, store):
    """Of two nodes of one rack only one may be away."""
    decision = NodeDecision(state=ServiceState.IN_SERVICE, since=START)
    names = [f"n{number}" for number in range(40)]
    records = [
        QuarantineRecord(node=name, decision=decision, evidence=NodeEvidence(domain="r1" if name < "n2" else "r2"))
        for name in names
    ]
    known = [
        NodeRecord(name=name, online=True, first_seen=1, last_seen=1, service=ServiceState.IN_SERVICE) for name in names
    ]
    await store.write([*(SaveNode(node) for node in known), *(SaveRecord(record=record) for record in records)])
    await store.write([stored(run(name, seq, "nvml.device_lost")) for seq, name in enumerate(("n1", "n10", "n3"), 1)])
    found = await replayed(settings, budget={"domain_share": "5%"})
    assert [(it.node, it.kind.value) for it in found.replay.decisions] == [
        ("n1", "DRAINED"),
        ("n10", "WAITS"),
        ("n3", "DRAINED"),
    ]
    assert "budget of rack r1, " in found.replay.decisions[1].because
    assert found.nodes == 40


async def test_a_database_of_the_last_release_is_read_as_it_is(settings):
    """Drains of then and failure domains; it was never opened by this release, and is of its schema afterwards."""
    settings.data_dir.mkdir()
    database = write(settings.data_dir / "muster.db")
    for seq, node in enumerate(("w0n2", "w0n7"), 1):  # both stand in r2
        said = run(node, seq, "nvml.device_lost", started_at=OLD + seq)
        values = (said.id, node, said.check, said.verdict, said.started_at, 1.0, "s", seq, said.model_dump_json())
        columns = 'id, node, "check", verdict, started_at, duration_s, stream, seq, body'
        database.execute(f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    database.commit()
    schema = database.execute("SELECT version_num FROM alembic_version").fetchall()
    found = await replayed(settings, budget={"domain_share": "1%"}, since=OLD - 10_000, now=OLD + 100)
    assert sorted(drain.node for drain in found.drains_then) == ["w0n22", "w2n5", "w4n5"]
    assert [drain.node for drain in found.drains_then if drain.dry_run] == ["w2n5"]
    assert [(it.at - OLD, it.node, it.kind.value) for it in found.replay.decisions] == [
        (2.0, "w0n2", "DRAINED"),
        (3.0, "w0n7", "WAITS"),
    ]
    assert "budget of rack r2, " in found.replay.decisions[1].because
    assert (schema, database.execute("SELECT version_num FROM alembic_version").fetchall()) == ([("0005",)], schema)
    database.close()


OLD = 1_002_700.0
"""Just after the last release wrote its database."""
