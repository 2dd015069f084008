"""The groups of a sweep as records."""

from muster.model import Verdict
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import (
    Ending,
    GroupRecord,
    GroupState,
    MemberRecord,
    RoundRecord,
    SweepRecord,
    SweepState,
)
from muster_coordinator.sweeps.formation import GroupTask
from muster_coordinator.sweeps.group import Group
from muster_coordinator.sweeps.rounds import RoundLog

TASK = GroupTask(check="c", params={}, timeout_s=20.0, objective=None, cause="s")


def group(name: str) -> Group:
    return Group(name, TASK, ("a", "b"), ("by lot",), Orders(1), 0.0)


def ended(name: str, *, slow: str | None = None, ahead_s: float | None = None) -> GroupRecord:
    places = tuple(MemberRecord(node=node, verdict=Verdict.PASS, clock_ahead_s=ahead_s) for node in ("a", "b"))
    return GroupRecord(
        id=name,
        members=("a", "b"),
        state=GroupState.ENDED,
        ending=Ending.FINISHED,
        verdict=Verdict.FAIL if slow else Verdict.PASS,
        slow=slow,
        places=places,
        started_at=0.0,
        ended_at=1.0,
    )


def shown(log: RoundLog) -> SweepRecord:
    outline = SweepRecord(
        id="s",
        state=SweepState.RUNNING,
        strategy="pairs",
        check="c",
        nodes=("a", "b"),
        rounds=log.outline(waiting=0),
        created_at=0.0,
    )
    return log.complete(outline)


def test_it_tells_what_has_changed_once() -> None:
    """With the number of the round, in the order in which it changed, and each group once."""
    log = RoundLog()
    log.open_round()
    first, second = group("s-1.1"), group("s-1.2")
    log.begin(first)
    log.begin(second)
    log.touch(first)
    assert [(number, record.id) for number, record in log.changed()] == [(1, "s-1.1"), (1, "s-1.2")]
    assert not log.has_changed
    assert list(log.changed()) == []
    log.open_round()
    log.begin(group("s-1.3"))
    log.end(ended("s-1.2"))
    assert [(number, record.id) for number, record in log.changed()] == [(2, "s-1.3"), (1, "s-1.2")]


def test_a_group_that_is_slow_beside_the_others_has_failed() -> None:
    """Until it is not slow any more; both are changes of that group only."""
    log = RoundLog()
    log.open_round()
    for name in ("s-1.1", "s-1.2"):
        log.begin(group(name))
        log.end(ended(name))
    list(log.changed())
    for why, verdict in (("slow", Verdict.FAIL), (None, Verdict.PASS)):
        log.mark_slow({"s-1.2": why} if why else {})
        ((_, record),) = log.changed()
        assert (record.id, record.slow, record.verdict) == ("s-1.2", why, verdict)


def test_what_is_taken_over_is_as_it_ended_by_itself() -> None:
    """What it was compared with is said again; what its round had taught stays."""
    log = RoundLog()
    log.resume(RoundRecord(number=1, groups=(ended("s-1.1", slow="slow"),), waiting=3, learned=("suspected: a",)))
    (stage,) = shown(log).rounds
    assert stage == RoundRecord(number=1, groups=(ended("s-1.1"),), learned=("suspected: a",))


def test_only_in_the_last_round_groups_wait() -> None:
    """Every earlier one is over."""
    log = RoundLog()
    assert log.outline(waiting=0) == ()
    log.open_round()
    log.close_round(("cleared: a",))
    log.open_round()
    assert log.outline(waiting=2) == (
        RoundRecord(number=1, learned=("cleared: a",)),
        RoundRecord(number=2, waiting=2),
    )


def test_clocks_are_told_by_the_last_group() -> None:
    """That said anything about them."""
    log = RoundLog()
    log.open_round()
    for name, ahead_s in (("s-1.1", 60.0), ("s-1.2", -9.0), ("s-1.3", None)):
        log.begin(group(name))
        log.end(ended(name, ahead_s=ahead_s))
    assert log.wrong_clocks() == {"a": -9.0, "b": -9.0}
