"""What a coordinator does about the sweeps of the one before it."""

from muster.model import Verdict
from muster.wire.messages import Abort
from muster_coordinator.model.events import Announce, SaveGroup, SaveSweep
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import (
    Ending,
    FailedNode,
    GroupRecord,
    GroupState,
    MemberRecord,
    RoundRecord,
    SweepRecord,
    SweepState,
)
from muster_coordinator.sweeps.recovery import aborted, interrupted, release_members, save_commands

ENDED = GroupRecord(
    id="s-1.1",
    members=("a", "b"),
    state=GroupState.ENDED,
    ending=Ending.FINISHED,
    verdict=Verdict.FAIL,
    slow="slow beside the others",
    places=(MemberRecord(node="a", verdict=Verdict.PASS), MemberRecord(node="b", verdict=Verdict.PASS)),
    started_at=1.0,
    ended_at=2.0,
)
LIVE = GroupRecord(id="s-1.2", members=("c", "d"), state=GroupState.READY, started_at=3.0)
RECORD = SweepRecord(
    id="s",
    state=SweepState.RUNNING,
    strategy="pairs",
    check="collective",
    nodes=("a", "b", "c", "d"),
    rounds=(RoundRecord(number=1, groups=(ENDED,)), RoundRecord(number=2, groups=(LIVE,), waiting=1)),
    failed_nodes=(FailedNode(node="b", confidence=0.75, reasons=("slow with everyone",)),),
    cleared_nodes=("a",),
    created_at=0.0,
)


def test_groups_that_were_under_way_are_interrupted() -> None:
    """Those that had ended stay as they are."""
    first, second = interrupted(RECORD, 50.0).rounds
    assert first == RECORD.rounds[0]
    (group,) = second.groups
    assert (group.state, group.ending, group.ended_at) == (GroupState.ENDED, Ending.INTERRUPTED, 50.0)
    assert group.verdict is Verdict.UNKNOWN


def test_members_of_groups_that_were_under_way_are_told_to_leave() -> None:
    """Nobody else is."""
    orders = release_members(RECORD, Orders(2), 50.0)
    assert [(it.node, type(it.command), it.command.group) for it in orders if isinstance(it.command, Abort)] == [
        ("c", Abort, "s-1.2"),
        ("d", Abort, "s-1.2"),
    ]


def test_an_aborted_sweep_keeps_what_it_had_found() -> None:
    """Whoever it had not settled is inconclusive, and nothing waits any more."""
    record = aborted(interrupted(RECORD, 50.0), 50.0, "gone")
    assert (record.state, record.verdict, record.reason) == (SweepState.ABORTED, Verdict.FAIL, "gone")
    assert (record.ended_at, record.inconclusive) == (50.0, ("c", "d"))
    assert [stage.waiting for stage in record.rounds] == [0, 0]
    assert record.rounds[0] == RECORD.rounds[0]
    unjudged = RECORD.model_copy(update={"failed_nodes": ()})
    assert aborted(unjudged, 50.0, "gone").verdict is Verdict.UNKNOWN


def test_a_sweep_is_saved_apart_from_its_groups() -> None:
    """Every group under the number of its round."""
    summary, *groups, told = save_commands(RECORD)
    assert isinstance(summary, SaveSweep)
    assert [stage.groups for stage in summary.record.rounds] == [(), ()]
    assert groups == [SaveGroup("s", 1, ENDED), SaveGroup("s", 2, LIVE)]
    assert told == Announce("sweep", summary.record)
