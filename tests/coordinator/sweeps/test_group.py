"""One group's life: every event in every state, and who is to blame."""

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import cases

from muster.check import Scope
from muster.model import Finding, RankResult, Severity, Verdict
from muster.wire.messages import Accepted, Declined, Finished, Prepare, Progress, Ready
from muster_coordinator.model.events import Command, SendCommand, Ticked
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import Ending, GroupState
from muster_coordinator.sweeps.formation import GroupTask
from muster_coordinator.sweeps.group import (
    ABORT_GRACE_S,
    FORMING_S,
    LISTENERS,
    PREPARING_S,
    RUN_GRACE_S,
    TRANSITIONS,
    CalledOff,
    Group,
    GroupEvent,
    GroupStep,
    MemberLost,
)

TASK = GroupTask(check="collective", params={}, timeout_s=20.0, objective="busbw_gbps", cause="sweep")


def head(node: str) -> dict[str, Any]:
    return {"id": "m", "sent_at": 1.0, "node": node, "group": "g"}


def accepted(node: str) -> Accepted:
    return Accepted(**head(node), address=f"10.0.0.{node}", port=4000, ranks=8)


def ready(node: str) -> Ready:
    return Ready(**head(node))


def progress(node: str) -> Progress:
    return Progress(**head(node))


def declined(node: str, reason: str = "busy") -> Declined:
    return Declined(**head(node), reason=reason, detail="because")


def finished(node: str, verdict: Verdict = Verdict.PASS, code: str | None = None, gbps: float = 1.5) -> Finished:
    findings = (Finding(code=code, summary="it ended", severity=Severity.UNKNOWN),) if code else ()
    first = 8 * (int(node) - 1)
    results = (
        RankResult(
            rank=rank, verdict=verdict, findings=findings, metrics={"busbw_gbps": [gbps, gbps * 2]}, duration_s=1.0
        )
        for rank in range(first, first + 8)
    )
    return Finished(**head(node), ranks=tuple(results))


def group(state: GroupState = GroupState.FORMING, members: tuple[str, ...] = ("1", "2", "3")) -> Group:
    """A group of three that has come to `state` by the shortest way, everything at time 0."""
    made = Group("g", TASK, members, ("paired by lot",), Orders(7), 0.0, most_ranks=dict.fromkeys(members, 8))
    steps: dict[GroupState, list[GroupEvent]] = {
        GroupState.FORMING: [],
        GroupState.ELECTED: [accepted(node) for node in members],
        GroupState.READY: [ready(node) for node in members],
        GroupState.RUNNING: [progress(members[0])],
        GroupState.ENDED: [CalledOff("enough")],
    }
    for reached, events in steps.items():
        for event in events:
            made.handle(event, 0.0)
        assert made.state is reached
        if reached is state:
            break
    return made


def sent(commands: list[Command]) -> list[tuple[str, str]]:
    """Node and kind of every order."""
    return [(command.node, command.command.kind) for command in commands if isinstance(command, SendCommand)]


EVENTS: dict[str, GroupEvent] = {
    "accepted": accepted("2"),
    "ready": ready("2"),
    "progress": progress("2"),
    "finished": finished("2"),
    "failed": finished("2", Verdict.UNKNOWN, "run.killed"),
    "declined": declined("2"),
    "unreachable": declined("2", "unreachable"),
    "lost": MemberLost("2"),
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
    GroupState.ELECTED: {**END_EARLY, "failed": (GroupState.ENDED, FREE_TWO)},
    GroupState.READY: {
        **END_EARLY,
        **TOLD_AT_THE_WRONG_TIME,
        "progress": (GroupState.RUNNING, []),
        "finished": (GroupState.RUNNING, []),
        "failed": (GroupState.RUNNING, []),
    },
    GroupState.RUNNING: {**END_EARLY, **TOLD_AT_THE_WRONG_TIME},
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


def run_to_end(*events: tuple[float, GroupEvent], state: GroupState = GroupState.RUNNING) -> Group:
    made = group(state)
    for at, event in events:
        made.handle(event, at)
    return made


@cases(
    ("events", "blamed"),
    [
        ([finished("1", Verdict.UNKNOWN, "run.raised"), finished("2", Verdict.UNKNOWN, "run.killed")], {"2"}),
        ([finished("1", Verdict.UNKNOWN, "run.killed"), MemberLost("2")], {"2"}),
        (
            [finished("1", Verdict.UNKNOWN, "run.raised"), finished("2", Verdict.UNKNOWN, "run.timeout")],
            {"1", "2", "3"},
        ),
        ([finished("1", Verdict.UNKNOWN, "run.raised"), declined("2", "preempted")], {"2"}),
        ([finished("1", Verdict.UNKNOWN)], {"1", "2", "3"}),
    ],
)
def test_only_the_gravest_fault_is_blamed(events: list[GroupEvent], blamed: set[str]) -> None:
    """Vanished before crashed before declined before what may be an echo, whatever came first."""
    made = run_to_end(*((0.0, event) for event in events), (ABORT_GRACE_S, Ticked()))
    assert made.ending is Ending.ABORTED
    assert {blame.node for blame in made.blamed} == blamed
    assert made.verdict is Verdict.UNKNOWN


def test_the_first_failure_gives_the_others_a_short_grace() -> None:
    """They may report what they saw; then they are told to leave, and whoever reported is not."""
    made = group(GroupState.RUNNING)
    made.handle(finished("1", Verdict.UNKNOWN, "run.killed"), 1.0)
    made.handle(finished("2", Verdict.UNKNOWN, "run.raised"), 1.5)
    assert made.handle(Ticked(), 2.9) == []
    assert sent(made.handle(Ticked(), 3.0)) == [("3", "abort")]
    assert [(blame.node, blame.reason, blame.detail) for blame in made.blamed] == [("1", "run.killed", "it ended")]


def test_if_nobody_reaches_rank_0_it_is_to_blame() -> None:
    """The others decline one by one; only when all have is it rank 0's fault."""
    made = run_to_end((0.0, declined("2", "unreachable")), state=GroupState.ELECTED)
    assert made.state is GroupState.ELECTED
    made.handle(declined("3", "unreachable"), 1.0)
    assert made.ending is Ending.NOT_FORMED
    assert [(blame.node, blame.reason) for blame in made.blamed] == [("1", "unreachable")]


def test_a_member_that_alone_cannot_reach_rank_0_is_to_blame() -> None:
    """When the grace is over and another member was silent or ready, whoever declined is blamed."""
    made = run_to_end(
        (0.0, declined("2", "unreachable")), (0.5, ready("3")), (ABORT_GRACE_S, Ticked()), state=GroupState.ELECTED
    )
    assert [(blame.node, blame.reason) for blame in made.blamed] == [("2", "unreachable")]


@pytest.mark.parametrize("state", [GroupState.FORMING, GroupState.READY, GroupState.RUNNING])
def test_a_member_cannot_report_rank_0_unreachable_at_the_wrong_time(state: GroupState) -> None:
    """Then the member itself is blamed; otherwise it would be the node of rank 0, in a pair."""
    pair = group(state, ("1", "2"))
    pair.handle(declined("2", "unreachable"), 0.0)
    assert [(blame.node, blame.reason) for blame in pair.blamed] == [("2", "declined")]


def test_a_member_that_wants_more_ranks_than_devices_is_to_blame() -> None:
    """No member gets a world of two billion ranks; all members are released at once."""
    made = group(GroupState.FORMING)
    made.handle(accepted("1"), 0.0)
    commands = made.handle(accepted("2").model_copy(update={"ranks": 9}), 0.0)
    assert sent(commands) == FREE_ALL
    (blame,) = made.blamed
    assert (blame.node, blame.reason) == ("2", "too_many_ranks")
    assert blame.detail == "it accepted with 9 ranks; its announced devices allow 8"
    unknown = Group("g", TASK, ("1",), ("alone",), Orders(7), 0.0)
    unknown.handle(accepted("1").model_copy(update={"ranks": 2}), 0.0)
    assert [blame.reason for blame in unknown.blamed] == ["too_many_ranks"]


def numbered(node: str, ranks: list[int]) -> Finished:
    """Results under these numbers."""
    (result, *_) = finished(node).ranks
    return Finished(**head(node), ranks=tuple(result.model_copy(update={"rank": rank}) for rank in ranks))


@cases("ranks", [[], [8], [*range(8)], [*range(8, 17)], [*range(15, 7, -1)], [8] * 8])
def test_results_of_other_ranks_do_not_count(ranks: list[int]) -> None:
    """The member that reports them is blamed, and no other member."""
    made = run_to_end(
        (0.0, numbered("2", ranks)),
        (0.0, finished("1", Verdict.UNKNOWN, "run.raised")),
        (0.0, finished("3", Verdict.UNKNOWN, "run.killed")),
    )
    assert [(blame.node, blame.reason) for blame in made.blamed] == [("2", "wrong_results")]
    assert made.facts["2"].place().measured == ()


def test_more_numbers_than_any_check_measures_count_for_nothing() -> None:
    """Every group is kept as long as its sweep."""
    many = dict.fromkeys((f"m{number}" for number in range(20)), [1.0] * 100)
    said = finished("2")
    more = tuple(rank.model_copy(update={"metrics": many}) for rank in said.ranks)
    made = run_to_end((0.0, said.model_copy(update={"ranks": more})), (0.0, finished("1")), (0.0, finished("3")))
    assert [(blame.node, blame.reason) for blame in made.blamed] == [("2", "wrong_results")]
    assert made.facts["2"].place().measured == ()


def test_of_very_many_findings_only_the_first_are_kept() -> None:
    """As above; the verdict is that of all."""
    many = (Finding(code="collective.odd", summary="s" * 1000, severity=Severity.WARNING),) * 500
    said = finished("2", Verdict.WARN)
    more = tuple(rank.model_copy(update={"findings": many}) for rank in said.ranks)
    made = run_to_end((0.0, said.model_copy(update={"ranks": more})), (0.0, finished("1")), (0.0, finished("3")))
    place = made.facts["2"].place()
    assert (place.verdict, made.blamed) == (Verdict.WARN, ())
    assert 10 < len(place.findings) < 60


def test_a_check_of_one_node_has_one_result() -> None:
    """With any number of devices."""
    task = replace(TASK, scope=Scope.NODE)
    for ranks, blamed in (([0], []), ([*range(8)], ["wrong_results"])):
        made = Group("g", task, ("1",), ("alone",), Orders(7), 0.0, most_ranks={"1": 8})
        for event in (accepted("1"), ready("1"), numbered("1", ranks)):
            made.handle(event, 0.0)
        assert (made.ending, [blame.reason for blame in made.blamed]) == (Ending.FINISHED, blamed)


@cases("address", ["127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "localhost", "LOCALHOST", ""])
def test_rank_0_cannot_have_a_loopback_address(address: str) -> None:
    """Unless all members have one: other members would connect to their own host. The member is blamed."""
    made = group(GroupState.FORMING)
    for node in ("1", "2", "3"):
        at = address if node == "1" else f"10.0.0.{node}"
        commands = made.handle(accepted(node).model_copy(update={"address": at}), 0.0)
    assert sent(commands) == FREE_ALL
    assert [(blame.node, blame.reason) for blame in made.blamed] == [("1", "unreachable")]


@pytest.mark.parametrize("addresses", [("127.0.0.1", "127.0.0.1"), ("10.0.0.1", "127.0.0.1"), ("host-1", "10.0.0.2")])
def test_loopback_addresses_that_harm_nobody_are_allowed(addresses: tuple[str, str]) -> None:
    """If all members are on one host, or if the member does not get rank 0."""
    made = group(GroupState.FORMING, ("1", "2"))
    for node, address in zip(("1", "2"), addresses, strict=True):
        made.handle(accepted(node).model_copy(update={"address": address}), 0.0)
    assert made.state is GroupState.ELECTED


@cases(("figure", "expected"), [(-1.0, 1.5), (1e308, 1.5), (1e29, 1.5), (0.5, 0.5), (0.0, 0.0)])
def test_impossible_measurements_do_not_count(figure: float, expected: float) -> None:
    """Negative ones, and those so large that a mean would be infinite."""
    made = run_to_end((0.0, finished("1", gbps=figure)), (0.0, finished("2")), (0.0, finished("3")))
    assert made.objective == expected


def test_repeated_messages_count_once() -> None:
    """A second acceptance or result does not replace the first."""
    made = group(GroupState.RUNNING)
    made.handle(finished("1", gbps=1.5), 0.0)
    made.handle(finished("1", Verdict.FAIL, gbps=0.1), 0.0)
    made.handle(declined("1"), 0.0)
    made.handle(MemberLost("1"), 0.0)
    assert made.state is GroupState.RUNNING
    assert made.facts["1"].verdict is Verdict.PASS


def test_ranks_that_end_before_the_start_can_finish_a_group() -> None:
    """When every member has nothing to measure, the group has finished."""
    made = run_to_end((0.0, finished("1", Verdict.SKIPPED)), state=GroupState.ELECTED)
    assert made.ending is Ending.NOT_FORMED
    alone = group(GroupState.ELECTED, ("1",))
    alone.handle(finished("1", Verdict.SKIPPED), 0.0)
    assert (alone.ending, alone.verdict) == (Ending.FINISHED, Verdict.SKIPPED)
