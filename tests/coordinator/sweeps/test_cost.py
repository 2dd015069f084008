"""What a sweep costs in node-seconds."""

import pytest
from tests.cases import cases

from muster_coordinator.model.sweep_records import Ending, GroupRecord, GroupState
from muster_coordinator.sweeps.cost import SweepCost
from muster_coordinator.sweeps.formation import Formation, GroupTask
from muster_coordinator.sweeps.group import FORMING_S, PREPARING_S, RUN_GRACE_S

TASK = GroupTask(check="c", params={}, timeout_s=20.0, objective=None, cause="s", expected_s=35.0)
LONGEST_S = FORMING_S + PREPARING_S + TASK.timeout_s + RUN_GRACE_S


def group(began: float, ended: float, ending: Ending = Ending.FINISHED) -> GroupRecord:
    return GroupRecord(
        id="s-1.1", members=("a", "b"), state=GroupState.ENDED, ending=ending, started_at=began, ended_at=ended
    )


@pytest.mark.parametrize(
    ("ended", "spent"),
    [
        pytest.param(group(100, 110), 20.0, id="each member for as long as the group lived"),
        pytest.param(group(100, 90), 0.0, id="the clock was set back"),
        pytest.param(group(100, 1e6), 2 * LONGEST_S, id="the clock was set forward"),
        pytest.param(group(100, 1e5, Ending.INTERRUPTED), 2 * LONGEST_S, id="the coordinator was down for a day"),
    ],
)
def test_what_is_spent(ended: GroupRecord, spent: float) -> None:
    """Never more than its deadlines let a group live."""
    expense = SweepCost(TASK)
    expense.add(ended)
    assert expense.spent_node_s == spent


def test_groups_are_expected_to_take_as_long_as_those_that_finished() -> None:
    """Before any has, as long as the check says; those that did not finish tell nothing."""
    expense = SweepCost(TASK)
    expense.add(group(0, 90, Ending.TIMED_OUT))
    assert expense.expected_s == 35.0
    for duration_s in (4, 50, 6):
        expense.add(group(0, duration_s))
    assert expense.expected_s == 6.0


@cases(("limit", "count"), [(None, 3), (209.9, 2), (210.0, 3), (69.0, 0), (0.0, 0)])
def test_only_what_fits_into_the_limit_is_affordable(limit: float | None, count: int) -> None:
    """The first groups first."""
    wanted = [Formation((f"a{number}", f"b{number}"), "by lot") for number in range(3)]
    assert SweepCost(TASK).affordable(wanted, limit) == wanted[:count]
