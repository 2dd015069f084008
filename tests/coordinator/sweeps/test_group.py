"""One group's life: every event in every state, and who is to blame."""

import pytest
from tests.cases import cases
from tests.coordinator.sweeps.group_steps import (
    TASK,
    accepted,
    declined,
    finished,
    group,
    progress,
    ready,
    run_to_end,
    sent,
)

from muster.model import Verdict
from muster.wire.messages import Prepare
from muster_coordinator.model.events import SendCommand, Ticked
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import Ending, GroupState
from muster_coordinator.sweeps.group import (
    ABORT_GRACE_S,
    FORMING_S,
    LISTENERS,
    MOST_POSTPONED_S,
    PREPARING_S,
    RUN_GRACE_S,
    Group,
)
from muster_coordinator.sweeps.group_events import CalledOff, GroupEvent, MemberDoubted, MemberLost
from muster_coordinator.sweeps.group_table import TRANSITIONS, GroupStep
from muster_coordinator.sweeps.member import LONGEST_DOUBT_S

EVENTS: dict[str, GroupEvent] = {
    "accepted": accepted("2"),
    "ready": ready("2"),
    "progress": progress("2"),
    "finished": finished("2"),
    "failed": finished("2", Verdict.UNKNOWN, "run.killed"),
    "declined": declined("2"),
    "unreachable": declined("2", "unreachable"),
    "lost": MemberLost("2"),
    "doubted": MemberDoubted("2", 5.0),
    "called off": CalledOff("enough"),
    "tick": Ticked(),
    "stranger": ready("9"),
}


FREE_TWO = [("1", "abort"), ("3", "abort")]


FREE_ALL = [("1", "abort"), ("2", "abort"), ("3", "abort")]


END_EARLY: dict[str, tuple[GroupState, list[tuple[str, str]]]] = {
    "declined": (GroupState.ENDED, FREE_TWO),
    "lost": (GroupState.ENDED, FREE_ALL),
    "called off": (GroupState.ENDED, FREE_ALL),
}


TOLD_AT_THE_WRONG_TIME = {"unreachable": (GroupState.ENDED, FREE_TWO)}


EXPECTED: dict[GroupState, dict[str, tuple[GroupState, list[tuple[str, str]]]]] = {
    GroupState.FORMING: {**END_EARLY, **TOLD_AT_THE_WRONG_TIME},
    GroupState.ELECTED: {
        **END_EARLY,
        "failed": (GroupState.ENDED, FREE_TWO),
        "accepted": (GroupState.ELECTED, [("2", "prepare")]),
    },
    GroupState.READY: {
        **END_EARLY,
        **TOLD_AT_THE_WRONG_TIME,
        "ready": (GroupState.READY, [("2", "start")]),
        "progress": (GroupState.RUNNING, []),
        "finished": (GroupState.RUNNING, []),
        "failed": (GroupState.RUNNING, []),
    },
    GroupState.RUNNING: {
        **END_EARLY,
        **TOLD_AT_THE_WRONG_TIME,
        "ready": (GroupState.RUNNING, [("2", "start")]),
    },
    GroupState.ENDED: {},
}
"""What an event of one of three members does at once; whatever is not listed changes neither state nor anybody."""


@cases("name", EVENTS)
@cases("state", GroupState)
def test_every_event_in_every_state(state: GroupState, name: str) -> None:
    """Each event does in each state exactly what the table says, and nothing where it says nothing."""
    made = group(state)
    commands = made.handle(EVENTS[name], 0.0)
    assert (made.state, sent(commands)) == EXPECTED[state].get(name, (state, []))


def test_every_live_state_has_its_way_out() -> None:
    """Faults, deadlines and the sweep's end lead to ENDED from everywhere, and ENDED listens to nothing."""
    for state in GroupState:
        for step in (GroupStep.FAULT, GroupStep.OVERDUE, GroupStep.CALLED_OFF):
            assert ((state, step) in TRANSITIONS) == (state is not GroupState.ENDED)
    assert not any(state is GroupState.ENDED for state, _ in [*TRANSITIONS, *LISTENERS])


def test_the_whole_way_through() -> None:
    """Invited, ranks given out in the order of the members, told to go, finished: the record says it all."""
    made = group(GroupState.FORMING)
    assert sent(made.begin()) == [("1", "join"), ("2", "join"), ("3", "join")]
    for node in ("3", "1"):
        assert made.handle(accepted(node), 1.0) == []
    prepared = [command.command for command in made.handle(accepted("2"), 1.0) if isinstance(command, SendCommand)]
    assert [
        (order.first_rank, order.world_size, order.master_addr) for order in prepared if isinstance(order, Prepare)
    ] == [(0, 24, "10.0.0.1"), (8, 24, "10.0.0.1"), (16, 24, "10.0.0.1")]
    assert all(order.epoch == 7 and order.expires_at == 1.0 + PREPARING_S for order in prepared)
    started = [commands for node in ("1", "2", "3") if (commands := made.handle(ready(node), 2.0))]
    assert [sent(commands) for commands in started] == [[("1", "start"), ("2", "start"), ("3", "start")]]
    for node, gbps in (("1", 1.5), ("2", 1.2), ("3", 1.4)):
        assert made.handle(finished(node, gbps=gbps), 3.0) == []
    record = made.record()
    assert (record.state, record.ending, record.verdict) == (GroupState.ENDED, Ending.FINISHED, Verdict.PASS)
    assert (record.objective, record.blamed, record.ended_at) == (1.2, (), 3.0)
    assert {place.node: place.measured for place in record.places}["2"] == ({"busbw_gbps": [1.2, 2.4]},) * 8
    assert [(place.node, place.first_rank, place.ranks) for place in record.places] == [
        ("1", 0, 8),
        ("2", 8, 8),
        ("3", 16, 8),
    ]


@pytest.mark.parametrize(
    ("state", "within_s", "ending"),
    [
        (GroupState.FORMING, FORMING_S, Ending.NOT_FORMED),
        (GroupState.ELECTED, PREPARING_S, Ending.NOT_FORMED),
        (GroupState.READY, TASK.timeout_s + RUN_GRACE_S, Ending.TIMED_OUT),
        (GroupState.RUNNING, TASK.timeout_s + RUN_GRACE_S, Ending.TIMED_OUT),
    ],
)
def test_silence_ends_every_phase_at_its_deadline(state: GroupState, within_s: float, ending: Ending) -> None:
    """Whoever has not said what the phase waits for is blamed, and everybody is told to leave."""
    made = group(state)
    answers: dict[GroupState, GroupEvent] = {GroupState.FORMING: accepted("1"), GroupState.ELECTED: ready("1")}
    answer = answers.get(state, finished("1"))
    made.handle(answer, 0.0)
    assert made.handle(Ticked(), within_s - 0.01) == []
    commands = made.handle(Ticked(), within_s)
    assert (made.state, made.ending) == (GroupState.ENDED, ending)
    assert [(blame.node, blame.reason) for blame in made.blamed] == [("2", "silent"), ("3", "silent")]
    assert [node for node, _ in sent(commands)] == (["2", "3"] if ending is Ending.TIMED_OUT else ["1", "2", "3"])


def prepared_by(orders: Orders, name: str = "g", older: tuple[str, ...] = ()) -> list[str | None]:
    """The secrets with which the members of a group are prepared, then the one of an order that is sent again."""
    made = Group(name, TASK, ("1", "2"), ("by lot",), orders, 0.0, most_ranks={"1": 8, "2": 8})
    answers = [accepted(node, knows_secrets=node not in older) for node in ("1", "2", "1")]
    commands = [command for answer in answers for command in made.handle(answer, 1.0)]
    told = (command.command for command in commands if isinstance(command, SendCommand))
    return [order.secret for order in told if isinstance(order, Prepare)]


def test_the_members_of_a_group_get_a_secret_of_their_own() -> None:
    """All the same, also in an order that is sent again, and another one in each group and under each leader."""
    mine, other, successor = (
        prepared_by(Orders(7, b"key")),
        prepared_by(Orders(7, b"key"), "h"),
        prepared_by(Orders(7, b"new")),
    )
    assert {len(secrets) for secrets in (mine, other, successor)} == {3}
    assert len({*mine, *other, *successor}) == 3
    assert None not in mine


def test_a_group_with_an_older_agent_has_no_secret() -> None:
    """Its ranks could not prove that they know it."""
    assert prepared_by(Orders(7, b"key"), older=("2",)) == [None, None, None]


def test_members_are_not_blamed_for_a_late_coordinator() -> None:
    """A deadline is postponed by the time that the coordinator lost, a minute at most, and invitations live as long."""
    made = group(GroupState.FORMING)
    invitations = [command.command for command in made.begin() if isinstance(command, SendCommand)]
    assert {order.expires_at for order in invitations} == {FORMING_S + MOST_POSTPONED_S}
    made.postpone_deadline(7.0)
    assert made.handle(Ticked(), FORMING_S + 6.9) == []
    made.postpone_deadline(600.0)
    assert made.handle(Ticked(), FORMING_S + MOST_POSTPONED_S - 0.1) == []
    made.handle(Ticked(), FORMING_S + MOST_POSTPONED_S)
    assert [(blame.node, blame.reason) for blame in made.blamed] == [(node, "silent") for node in made.members]


def test_a_member_whose_will_has_come_explains_why_the_others_failed() -> None:
    """Its group waits until it is known whether the member is lost, and then blames it alone."""
    made = group(GroupState.RUNNING)
    for node in ("1", "3"):
        made.handle(finished(node, Verdict.UNKNOWN, "run.raised"), 1.0)
    made.handle(MemberDoubted("2", 6.1), 1.1)
    assert made.handle(Ticked(), 6.0) == []
    made.handle(MemberLost("2"), 6.1)
    assert (made.state, [(it.node, it.reason) for it in made.blamed]) == (GroupState.ENDED, [("2", "lost")])


def test_a_member_that_is_back_after_its_will_is_waited_for_no_longer() -> None:
    """Nor is one whose wills come again and again: a member can hold up its group for some seconds."""
    for wills in ((1.1,), (1.1, 4.0, 7.0)):
        made = group(GroupState.RUNNING)
        for node in ("1", "3"):
            made.handle(finished(node, Verdict.UNKNOWN, "run.raised"), 1.0)
        for came in wills:
            made.handle(MemberDoubted("2", came + 5.0), came)
        made.handle(Ticked(), 1.0 + ABORT_GRACE_S + LONGEST_DOUBT_S)
        assert made.state is GroupState.ENDED
        assert {it.node: it.reason for it in made.blamed}["1"] == "run.raised"


def test_repeated_messages_count_once() -> None:
    """A second acceptance or result does not replace the first."""
    made = group(GroupState.RUNNING)
    made.handle(finished("1", gbps=1.5), 0.0)
    made.handle(finished("1", Verdict.FAIL, gbps=0.1), 0.0)
    made.handle(declined("1"), 0.0)
    made.handle(MemberLost("1"), 0.0)
    assert made.state is GroupState.RUNNING
    assert made.facts["1"].verdict is Verdict.PASS


def test_a_member_that_repeats_its_answer_gets_the_order_again() -> None:
    """With what it said the first time and until it has answered, but the order is valid from now."""
    made = group(GroupState.FORMING)
    first = [command for node in ("1", "2", "3") for command in made.handle(accepted(node), 0.0)]
    again = made.handle(accepted("3"), 4.0)
    orders = [command.command for command in (*first, *again) if isinstance(command, SendCommand)]
    assert [orders[-1].expires_at - order.expires_at for order in orders] == [4.0, 4.0, 4.0, 0.0]
    assert orders[-1].model_copy(update={"id": "", "sent_at": 0, "expires_at": 0}) == orders[2].model_copy(
        update={"id": "", "sent_at": 0, "expires_at": 0}
    )
    made.handle(ready("3"), 5.0)
    assert made.handle(accepted("3"), 6.0) == []
    for event in (ready("1"), ready("2"), finished("3")):
        made.handle(event, 7.0)
    assert made.handle(ready("3"), 8.0) == []


def test_ranks_that_end_before_the_start_can_finish_a_group() -> None:
    """When every member has nothing to measure, the group has finished."""
    made = run_to_end((0.0, finished("1", Verdict.SKIPPED)), state=GroupState.ELECTED)
    assert made.ending is Ending.NOT_FORMED
    alone = group(GroupState.ELECTED, ("1",))
    alone.handle(finished("1", Verdict.SKIPPED), 0.0)
    assert (alone.ending, alone.verdict) == (Ending.FINISHED, Verdict.SKIPPED)
