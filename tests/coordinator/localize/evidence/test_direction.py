"""Which way a node is slow."""

import pytest

from muster_coordinator.localize.evidence.direction import Direction, one_way, one_way_threshold
from muster_coordinator.model.probes import GroupRun, RunOutcome


def met(other: str, *, sends: float, receives: float) -> GroupRun:
    """A run of node a with another."""
    members = ("a", other)
    return GroupRun(group=other, members=members, outcome=RunOutcome.GOOD, sent={"a": sends, other: receives})


WELL = [
    GroupRun(group=f"{n}", members=("x", "y"), outcome=RunOutcome.GOOD, sent={"x": 10.0, "y": 9.8}) for n in range(4)
]


@pytest.mark.parametrize(
    ("sends", "receives", "slow"),
    [(1.0, 10.0, Direction.SEND), (10.0, 1.0, Direction.RECEIVE), (1.0, 1.0, None), (10.0, 9.9, None)],
)
def test_one_way_or_both(sends: float, receives: float, slow: Direction | None) -> None:
    """By what others can send in one direction."""
    bad = [met("b", sends=sends, receives=receives), met("c", sends=sends, receives=receives)]
    ways = one_way("a", bad, one_way_threshold([*WELL, *bad]))
    assert ways is not None
    assert (ways.sends, ways.receives, ways.slow) == ((sends, sends), (receives, receives), slow)


def test_it_has_to_be_the_same_way_in_every_run() -> None:
    """What was slow once may have been chance."""
    bad = [met("b", sends=1.0, receives=10.0), met("c", sends=9.9, receives=10.0)]
    ways = one_way("a", bad, one_way_threshold([*WELL, *bad]))
    assert ways is not None
    assert ways.slow is None


def test_nothing_is_said_without_numbers() -> None:
    """Neither of runs that did not measure it, nor of groups of several, nor when there is nothing to compare."""
    bare = GroupRun(group="g", members=("a", "b"), outcome=RunOutcome.BAD)
    half = GroupRun(group="g", members=("a", "b"), outcome=RunOutcome.BAD, sent={"a": 1.0})
    three = GroupRun(group="g", members=("a", "b", "c"), outcome=RunOutcome.BAD, sent={"a": 1.0, "b": 1.0, "c": 1.0})
    assert one_way("a", [bare, half, three], one_way_threshold(WELL)) is None
    assert one_way("a", [met("b", sends=1.0, receives=1.0)], one_way_threshold([bare])) is None
