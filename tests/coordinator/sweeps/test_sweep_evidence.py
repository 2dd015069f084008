"""What ran beside each group of a sweep, as far as its evidence knows."""

from tests.cases import cases
from tests.coordinator.sweeps.play import plan

from muster.model import Verdict
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import (
    Ending,
    GroupRecord,
    GroupState,
    MemberRecord,
    RoundRecord,
    SweepRecord,
    SweepState,
)
from muster_coordinator.sweeps.sweep_evidence import SweepEvidence


def group(number: int, began: float, ended: float, *, nodes: int = 2) -> GroupRecord:
    members = (f"n{2 * number}", f"n{2 * number + 1}")[:nodes]
    return GroupRecord(
        id=f"s-7.{number}",
        members=members,
        state=GroupState.ENDED,
        ending=Ending.FINISHED,
        places=tuple(MemberRecord(node=node, verdict=Verdict.PASS) for node in members),
        started_at=began,
        ended_at=ended,
    )


TIMES = {
    "all at once": ([(0.0, 9.0), (0.0, 10.0), (0.0, 11.0)], [2, 2, 2]),
    "one after another": ([(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)], [0, 0, 0]),
    "one beside two": ([(0.0, 1.0), (0.0, 3.0), (2.0, 4.0)], [1, 2, 1]),
    "in no time": ([(0.0, 0.0), (0.0, 0.0)], [0, 0]),
}


def interrupted(*rounds: RoundRecord) -> SweepRecord:
    """A sweep that a restart has interrupted after these rounds."""
    return SweepRecord(
        id="s",
        state=SweepState.RUNNING,
        strategy="pairs",
        check="collective",
        nodes=("n0",),
        rounds=rounds,
        created_at=0.0,
    )


@cases("name", TIMES)
def test_groups_that_overlap_ran_beside_each_other(name: str) -> None:
    """The coordinator counts the same as they end, and when it reads them after a restart."""
    times, beside = TIMES[name]
    groups = [group(number, *each) for number, each in enumerate(times)]
    as_they_end, read_again = (SweepEvidence(plan(Strategy.PAIRS, 6)) for _ in range(2))
    for ended in sorted(groups, key=lambda each: each.ended_at or 0.0):
        live = sum(other.started_at < (ended.ended_at or 0.0) < (other.ended_at or 0.0) for other in groups)
        as_they_end.add(ended, None, live_together=live)
    read_again.resume(interrupted(RoundRecord(number=1, groups=tuple(groups))))
    for evidence in (as_they_end, read_again):
        assert {run.group: run.beside for run in evidence.runs} == {
            each.id: count for each, count in zip(groups, beside, strict=True)
        }


def test_each_run_knows_its_round() -> None:
    """Those of the rounds before a restart, and of the one after it."""
    evidence = SweepEvidence(plan(Strategy.PAIRS, 6))
    evidence.next_groups(0)
    evidence.add(group(0, 0.0, 9.0), None, live_together=0)
    read_again = SweepEvidence(plan(Strategy.PAIRS, 6))
    rounds = [RoundRecord(number=number, groups=(group(number, 0.0, 9.0),)) for number in (1, 2)]
    read_again.resume(interrupted(*rounds))
    read_again.next_groups(2)
    read_again.add(group(0, 10.0, 19.0), None, live_together=0)
    assert [[run.round for run in each.runs] for each in (evidence, read_again)] == [[1], [1, 2, 3]]


def test_a_node_that_ran_alone_ran_beside_nobody() -> None:
    """It shares no link with a group, but groups ran beside it."""
    groups = [group(0, 0.0, 9.0), group(1, 0.0, 10.0, nodes=1), group(2, 0.0, 11.0)]
    evidence = SweepEvidence(plan(Strategy.PAIRS, 6))
    for ended, live_together in zip(groups, (1, 1, 0), strict=True):
        evidence.add(ended, None, live_together=live_together)
    assert [run.beside for run in evidence.runs] == [1, 2, 1]
