"""Sweeps that begin by themselves, in the fleet."""

from datetime import UTC, datetime

from muster.check import CheckInfo, Needs, Scope
from muster.config import Settings
from muster.model import Inventory
from muster.wire.messages import InventoryReport, Join
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    FleetCommand,
    InventorySeen,
    LogNotBegun,
    SaveNode,
    SaveSweep,
    SendCommand,
    Ticked,
)
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.runtime.settings.timetable import timetable_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
NOTHING = StoredFleet()
OFTEN = {"check": "collective", "cron": "5 12 * * *", "jitter_s": 0}
CHECK = CheckInfo(
    name="collective",
    summary="",
    scope=Scope.GROUP,
    needs=Needs.NOTHING,
    cadence_s=None,
    timeout_s=20.0,
    objective=None,
    params={},
)


def fleet(saved: StoredFleet = NOTHING, **sweeps) -> Fleet:
    settings = Settings.model_validate({"sweeps": sweeps})
    made = Fleet(name="lab", epoch=1, heartbeat_s=1e9, timetable=timetable_of(settings))
    made.restore(saved, NOON)
    return made


def join(made: Fleet, *names: str) -> list[FleetCommand]:
    reports = [
        InventoryReport(id="m", sent_at=1.0, node=name, inventory=Inventory(), checks=(CHECK,)) for name in names
    ]
    return [command for report in reports for command in made.handle(InventorySeen(report), NOON)]


def invited(commands: list[FleetCommand]) -> list[str]:
    return sorted(it.node for it in commands if isinstance(it, SendCommand) and isinstance(it.command, Join))


def test_a_scheduled_sweep_says_who_asked_for_it():
    """It begins at its time, and only once."""
    made = fleet(schedules={"often": {**OFTEN, "max_parallel": "100%"}})
    join(made, "a", "b")
    assert not made.handle(Ticked(), NOON + 299.0)
    saved = [it.record for it in made.handle(Ticked(), NOON + 300.0) if isinstance(it, SaveSweep)]
    assert {(record.origin, record.nodes) for record in saved} == {("schedule often", ("a", "b"))}
    assert len(made.sweeps()) == 1
    made.handle(Ticked(), NOON + 300.25)
    assert len(made.sweeps()) == 1


def test_a_scheduled_sweep_that_is_refused_is_logged_and_counted():
    """It takes nothing else down."""
    made = fleet(schedules={"often": OFTEN})
    join(made, "a")
    (said,) = made.handle(Ticked(), NOON + 300.0)
    assert isinstance(said, LogNotBegun)
    assert (said.origin, "needs at least 2 nodes" in said.reason) == ("schedule often", True)
    assert (made.counts.sweeps, made.counts.sweeps_not_begun) == (0, 1)


def test_a_sweep_that_was_missed_waits_for_its_nodes():
    """It begins after the restart, and its first group is formed when the last of its nodes has been heard of."""
    left = fleet(schedules={"often": {**OFTEN, "max_parallel": "100%"}})
    stored = {c.record.name: c.record for c in join(left, "a", "b") if isinstance(c, SaveNode)}
    made = fleet(StoredFleet(nodes=tuple(stored.values())), schedules={"often": {**OFTEN, "max_parallel": "100%"}})
    made.handle(Ticked(), NOON + 301.0)
    assert [sweep.nodes for sweep in made.sweeps()] == [("a", "b")]
    assert invited(join(made, "a")) == []
    assert invited(join(made, "b")) == ["a", "b"]


def test_new_nodes_are_swept():
    """Those that were heard of for the first time."""
    made = fleet(new_nodes={"check": "collective"})
    join(made, "a", "b")
    made.handle(Ticked(), NOON + 1.0)
    made.handle(Ticked(), NOON + 122.0)
    (sweep,) = made.sweeps()
    assert (sweep.origin, sweep.nodes) == ("new nodes", ("a", "b"))
