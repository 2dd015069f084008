"""What the members of a group report counts as far as it can be true, and says who is to blame."""

from dataclasses import replace

import pytest
from tests.cases import cases
from tests.coordinator.sweeps.group_steps import (
    TASK,
    accepted,
    declined,
    finished,
    group,
    head,
    ready,
    run_to_end,
    sent,
)
from tests.coordinator.sweeps.test_group import FREE_ALL

from muster.check import Scope
from muster.model import Finding, Severity, Verdict
from muster.wire.messages import Finished
from muster_coordinator.model.events import Ticked
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.sweep_records import Ending, GroupState
from muster_coordinator.sweeps.group import ABORT_GRACE_S, Group
from muster_coordinator.sweeps.group_events import GroupEvent, MemberLost


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
