"""Sweeps of a fleet: whom they take, which goes first, and what a restart does to them."""

import itertools
from collections.abc import Sequence
from typing import Any

from tests.coordinator.fleets import CHECKS, fleet, inventory, kinds, presence, report, run, sweep, views

from muster.model import Health, ServiceState, Topology, Verdict
from muster.wire.messages import Join
from muster_coordinator.evidence.sweep_results import SweepResults
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    FleetCommand,
    SaveGroup,
    SaveNode,
    SaveSweep,
    SendCommand,
    SweepAbortRequested,
    Ticked,
)
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import (
    Ending,
    GroupRecord,
    GroupState,
    MemberRecord,
    RoundRecord,
    SweepRecord,
    SweepState,
)
from muster_coordinator.sweeps.group import ABORT_GRACE_S
from muster_coordinator.sweeps.recovery import AfterRestart
from muster_coordinator.topology.learned import MeasuredPair


def saved_sweep(commands: Sequence[FleetCommand]) -> SweepRecord:
    """The sweep as it was saved last."""
    return [command.record for command in commands if isinstance(command, SaveSweep)][-1]


def test_a_sweep_takes_whoever_is_there_in_topology_order() -> None:
    """Neighbours stand next to each other; who is lost is left out, with the reason."""
    made = Fleet(name="test", epoch=7)
    for node, rack in (("a", "r2"), ("b", "r1"), ("c", "r2"), ("d", "r1"), ("lost", "r1")):
        made.handle(inventory(node, rack), 0.0)
    made.handle(presence("lost", online=False), 1.0)
    commands = made.handle(sweep("s", strategy="whole"), 1.0)
    assert [word for word in kinds(commands) if word.startswith("join")] == ["join b", "join d", "join a", "join c"]
    record = saved_sweep(commands)
    assert (record.nodes, record.state) == (("b", "d", "a", "c"), SweepState.RUNNING)
    assert record.absent == {"lost": "is lost: last heard at 1970-01-01T00:00:00.000Z"}


def test_the_topology_file_goes_before_what_agents_say() -> None:
    """In the order of ranks, in selections and in views; nodes that only it knows are absent."""
    declared = {"a": Topology(rack="r1"), "b": Topology(rack="r0"), "ghost": Topology(rack="r1")}
    made = Fleet(name="test", epoch=7, declared=declared)
    for node in ("a", "b", "c"):
        made.handle(inventory(node, "r1"), 0.0)
    made.handle(sweep("s", strategy="whole", select="rack=r0,r1"), 1.0)
    made.handle(sweep("t", strategy="whole", select="rack=r1"), 1.0)
    first, second = made.sweeps()
    assert (first.nodes, second.nodes) == (("b", "a", "c"), ("a", "c"))
    assert second.absent == {"ghost": "no agent has reported from there yet"}
    assert [view.topology.rack for view in views(made, 1.0)] == ["r1", "r0", "r1"]


def test_a_sweep_shows_at_which_leaves_nodes_stand() -> None:
    """Once the pairs have met: whoever said nothing of its leaf gets the one that shows, and it outlives a restart."""
    made = fleet(*(f"n{number}" for number in range(8)))
    near, far = [10.0, 5.0]
    pairs = [
        MeasuredPair(f"n{one}", f"n{other}", near if one // 4 == other // 4 else far)
        for one, other in itertools.combinations(range(8), 2)
    ]
    commands = SweepResults(made._registry).learn_leaves(pairs, "s", 1.0)
    assert kinds(commands) == ["tell place", "SaveNode", "announce node"] * 8
    leaves = {view.name: view.topology.leaf for view in views(made, 1.0)}
    assert leaves["n0"] == leaves["n3"] != leaves["n4"] == leaves["n7"]
    assert SweepResults(made._registry).learn_leaves(pairs, "t", 2.0) == []
    again = Fleet(name="test", epoch=8)
    again.restore(StoredFleet(nodes=tuple(c.record for c in commands if isinstance(c, SaveNode))), 3.0)
    assert {view.name: view.topology.leaf for view in views(again, 3.0)} == leaves


def test_an_aborted_sweep_frees_its_nodes() -> None:
    """Its members are told to leave, its record stays to be asked for, and aborting again does nothing."""
    made = fleet("a", "b")
    made.handle(sweep("s", strategy="pairs"), 1.0)
    commands = made.handle(SweepAbortRequested("s", "enough"), 2.0)
    assert kinds(commands)[:4] == ["abort a", "abort b", "SaveSweep", "announce sweep"]
    assert kinds(commands)[-2:] == ["tell inconclusive"] * 2
    record = saved_sweep(commands)
    assert (record.state, record.verdict, record.reason) == (SweepState.ABORTED, Verdict.UNKNOWN, "enough")
    assert made.handle(SweepAbortRequested("s", "enough"), 3.0) == []
    assert "join a" in kinds([*made.handle(sweep("s2", strategy="pairs"), 3.0), *made.handle(Ticked(), 5.0)])


def test_sweeps_share_the_fleet_and_the_more_urgent_one_goes_first() -> None:
    """No node is in two groups; who waits gets its nodes in the order of priorities, not of requests."""
    made = fleet("a", "b", "c", "d")
    assert len([word for word in kinds(made.handle(sweep("first", strategy="whole"), 1.0)) if "join" in word]) == 4
    for name, priority in (("low", -1), ("high", 5), ("usual", 0)):
        made.handle(sweep(name, strategy="whole", priority=priority), 2.0)
    assert [it.state for it in made.sweeps()] == [SweepState.RUNNING] + [SweepState.PLANNED] * 3
    order: list[str] = []
    for name in ("first", "high", "usual", "low"):
        now = 4.0 * (len(order) + 1)
        made.handle(SweepAbortRequested(name, "next"), now)
        made.handle(Ticked(), now + ABORT_GRACE_S)
        order += [it.id for it in made.sweeps() if it.state is SweepState.RUNNING]
    assert order == ["high", "usual", "low"]


def pair(first: str, second: str, verdict: Verdict) -> GroupRecord:
    """A group of an earlier round."""
    places = tuple(MemberRecord(node=node, verdict=verdict) for node in (first, second))
    ended: dict[str, Any] = {
        "state": GroupState.ENDED,
        "ending": Ending.FINISHED,
        "started_at": 1.0,
        "ended_at": 2.0,
    }
    return GroupRecord(id=f"s-{first}{second}", members=(first, second), verdict=verdict, places=places, **ended)


def restarted(
    after_restart: AfterRestart, *earlier: GroupRecord, lost: tuple[str, ...] = ()
) -> tuple[Fleet, list[FleetCommand]]:
    """A fleet that another coordinator has left in the middle of a sweep, and what it does first."""
    old = fleet("a", "b", "c")
    old.handle(sweep("s", strategy="whole", nodes=("a", "b", "c")), 1.0)
    (record,) = old.sweeps()
    rounds = (*([RoundRecord(number=1, groups=earlier)] if earlier else []), *record.rounds)
    numbered = tuple(stage.model_copy(update={"number": number}) for number, stage in enumerate(rounds, 1))
    saved = StoredFleet(
        nodes=tuple(_stored(name, online=name not in lost) for name in ("a", "b", "c")),
        runs=(run(1, Verdict.FAIL), run(2, Verdict.FAIL)),
        streams={("a", "s"): 2},
        sweeps=(record.model_copy(update={"rounds": numbered}),),
    )
    new = Fleet(name="test", epoch=8, after_restart=after_restart)
    return new, new.restore(saved, 100.0)


def test_a_restart_can_end_what_was_under_way_and_keeps_what_it_found() -> None:
    """Members are released, convictions stand, streams go on where they were, lost nodes stay lost."""
    with_c = [pair(node, "c", Verdict.FAIL) for node in ("a", "b")]
    new, commands = restarted(AfterRestart.ABORT, pair("a", "b", Verdict.PASS), *with_c, lost=("b",))
    assert [word for word in kinds(commands) if word.startswith("abort")] == ["abort a", "abort b", "abort c"]
    ended = saved_sweep(commands)
    assert (ended.state, ended.verdict, ended.cleared_nodes) == (SweepState.ABORTED, Verdict.FAIL, ("a", "b"))
    groups = [command.record for command in commands if isinstance(command, SaveGroup)]
    assert [group.ending for group in groups] == [*[Ending.FINISHED] * 3, Ending.INTERRUPTED]
    assert {view.name: (view.health, view.lost) for view in views(new, 100.0)} == {
        "a": (Health.FAILED, False),
        "b": (Health.UNKNOWN, True),
        "c": (Health.FAILED, False),
    }
    assert kinds(new.handle(report(run(3), after=2), 101.0))[0] == "StoreRuns"
    (stored,) = (c.record for c in commands if isinstance(c, SaveNode) and c.record.name == "c")
    again = Fleet(name="test", epoch=9)
    again.restore(StoredFleet(nodes=(stored,)), 200.0)
    (view,) = views(again, 200.0)
    assert (view.health, view.findings[0].code) == (Health.FAILED, "collective.failed")


def test_after_a_restart_a_sweep_goes_on_when_its_nodes_are_heard_of() -> None:
    """Its members were released; the next round waits for each of them, and does without those that are lost."""
    new, commands = restarted(AfterRestart.RESUME, lost=("b",))
    assert [word for word in kinds(commands) if word.startswith("abort")] == ["abort a", "abort b", "abort c"]
    (record,) = new.sweeps()
    assert (record.ended_at, len(record.rounds), set(record.absent)) == (None, 2, {"b"})
    assert new.handle(Ticked(), 101.0) == []
    assert "join a" not in kinds(new.handle(presence("a"), 102.0))
    sent = [command for command in new.handle(presence("c"), 103.0) if isinstance(command, SendCommand)]
    joins = {it.node: it.command.group for it in sent if isinstance(it.command, Join)}
    assert joins == {"a": "s-8.2", "c": "s-8.2"}


def test_a_sweep_whose_check_is_gone_ends_after_a_restart() -> None:
    """With the reason."""
    old = fleet("a", "b")
    old.handle(sweep("s", strategy="pairs"), 1.0)
    (node, other) = (_stored(name, online=True).model_copy(update={"checks": CHECKS[:1]}) for name in ("a", "b"))
    new = Fleet(name="test", epoch=8)
    ended = saved_sweep(new.restore(StoredFleet(nodes=(node, other), sweeps=tuple(old.sweeps())), 100.0))
    assert ended.state is SweepState.ABORTED
    assert ended.reason == "the coordinator was restarted: none of its nodes has check 'collective' any more"


def _stored(name: str, *, online: bool) -> NodeRecord:
    return NodeRecord(
        name=name, online=online, first_seen=0.0, last_seen=1.0, service=ServiceState.IN_SERVICE, checks=CHECKS
    )
