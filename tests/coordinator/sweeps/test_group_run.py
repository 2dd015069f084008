"""What a group that has ended showed, as evidence."""

from typing import Any

import pytest
from tests.cases import cases

from muster.model import Finding, Severity, Verdict
from muster_coordinator.model.probes import RunOutcome
from muster_coordinator.model.sweep_records import Blame, GroupRecord, GroupState, MemberRecord
from muster_coordinator.sweeps.group_run import group_run_of

PASS, WARN, FAIL, UNKNOWN = Verdict.PASS, Verdict.WARN, Verdict.FAIL, Verdict.UNKNOWN


def group(said: list[Verdict | None], **blamed: str) -> GroupRecord:
    places = tuple(MemberRecord(node=f"n{number}", verdict=verdict) for number, verdict in enumerate(said))
    return GroupRecord(
        id="s-1.1",
        members=tuple(place.node for place in places),
        state=GroupState.ENDED,
        places=places,
        blamed=tuple(Blame(node=node, reason=reason) for node, reason in blamed.items()),
        started_at=0.0,
    )


@cases(
    ("ended", "outcome"),
    [
        pytest.param(group([PASS, WARN]), RunOutcome.GOOD, id="everybody says so"),
        pytest.param(group([PASS, FAIL]), RunOutcome.BAD, id="one says so"),
        pytest.param(group([None, FAIL], n0="lost"), RunOutcome.BAD, id="one says so and another vanished"),
        pytest.param(group([PASS, None]), RunOutcome.VOID, id="called off"),
        pytest.param(group([PASS, None], n1="lost"), RunOutcome.VOID, id="vanished"),
        pytest.param(group([PASS, None], n1="silent"), RunOutcome.VOID, id="silent"),
        pytest.param(group([None, None], n1="busy"), RunOutcome.VOID, id="declined"),
        pytest.param(group([UNKNOWN, UNKNOWN], n1="run.killed"), RunOutcome.BAD, id="crashed"),
        pytest.param(
            group([None, UNKNOWN], n1="run.killed"), RunOutcome.BAD, id="crashed before the others said anything"
        ),
        pytest.param(group([UNKNOWN, UNKNOWN], n0="run.raised", n1="run.raised"), RunOutcome.BAD, id="all failed"),
        pytest.param(group([None, UNKNOWN], n1="run.raised"), RunOutcome.VOID, id="may be an echo of the silent one"),
        pytest.param(group([UNKNOWN, UNKNOWN], n0="run.preempted"), RunOutcome.VOID, id="work came"),
        pytest.param(group([None, None], n0="unreachable"), RunOutcome.BAD, id="no connection"),
        pytest.param(group([UNKNOWN], n0="run.raised"), RunOutcome.VOID, id="alone without a verdict"),
        pytest.param(group([UNKNOWN], n0="run.killed"), RunOutcome.BAD, id="alone and crashed"),
        pytest.param(group([Verdict.SKIPPED, PASS], n0="wrong_results"), RunOutcome.VOID, id="results of others"),
        pytest.param(group([None, None], n0="too_many_ranks"), RunOutcome.VOID, id="too many ranks"),
        pytest.param(group([FAIL]), RunOutcome.BAD, id="alone with one"),
    ],
)
def test_only_what_nobody_else_can_have_brought_about_counts(ended: GroupRecord, outcome: RunOutcome) -> None:
    """Absence, silence and being called off say nothing."""
    assert group_run_of(ended).outcome is outcome


def test_crashes_and_failed_verdicts_are_hard_evidence() -> None:
    """Who crashed is named, and the detail says what happened for people."""
    crashed = group_run_of(group([UNKNOWN, UNKNOWN], n1="run.killed"))
    assert (crashed.crashed, crashed.hard, crashed.detail) == (frozenset({"n1"}), True, "n1: run.killed")
    finding = Finding(code="c.wrong", summary="elements are wrong", severity=Severity.ERROR)
    wrong = GroupRecord(
        id="s-1.1",
        members=("n0",),
        state=GroupState.ENDED,
        places=(MemberRecord(node="n0", verdict=FAIL, findings=(finding,)),),
        started_at=0.0,
    )
    assert (group_run_of(wrong).hard, group_run_of(wrong).detail) == (True, "n0: elements are wrong")
    assert not group_run_of(group([PASS, PASS])).hard


@cases("size", [1, 2, 3])
def test_if_all_ranks_end_alike_nobody_is_named(size: int) -> None:
    """A library ends all ranks of a group that hangs; only alone is it the node's own crash."""
    names = [f"n{number}" for number in range(size)]
    ended = group_run_of(group([UNKNOWN] * size, **dict.fromkeys(names, "run.killed")))
    assert (ended.outcome, ended.hard) == (RunOutcome.BAD, True)
    assert ended.crashed == (frozenset(names) if size == 1 else frozenset())


@pytest.mark.parametrize(
    ("addresses", "on_one_host"),
    [
        (("10.0.0.1", "10.0.0.2"), False),
        (("127.0.0.1", "127.0.0.1"), True),
        (("10.0.0.1", "10.0.0.2", "10.0.0.1"), True),
        ((None, None), False),
    ],
)
def test_members_that_listen_at_one_address_share_a_host(addresses: tuple[str | None, ...], on_one_host: bool) -> None:
    """Of those that said nothing, nothing is known."""
    places = tuple(MemberRecord(node=f"n{place}", address=address) for place, address in enumerate(addresses))
    assert group_run_of(group([PASS]).model_copy(update={"places": places})).on_one_host is on_one_host


@pytest.mark.parametrize(("by_rail", "rails"), [(True, (1.0, 2.0)), (False, ())])
def test_the_worst_rank_of_a_node_speaks_for_it(by_rail: bool, rails: tuple[float, ...]) -> None:
    """Only ranks that report all rails count for the rails, and only if the rails were tested one by one."""
    measured: Any = (
        {"sent_gbps": 3.0, "arrived_last": 0.1, "compute_s": 0.2, "rails_gbps": [1.0, None]},
        {"sent_gbps": 2.0, "arrived_last": 0.7, "rails_gbps": [1.0, 2.0]},
    )
    ended = group([PASS, PASS]).model_copy(
        update={"by_rail": by_rail, "places": (MemberRecord(node="n0", verdict=PASS, measured=measured),)}
    )
    trial = group_run_of(ended, "rails_gbps")
    assert (trial.sent, trial.latest, trial.work_s) == ({"n0": 2.0}, {"n0": 0.7}, {"n0": 0.2})
    assert trial.rails == rails


@pytest.mark.parametrize(
    ("told", "rails"),
    [
        (([1.0, 9.0], [1.0, 2.0]), (1.0, 2.0)),
        (([1.0, 2.0], [1.0] * 1000), ()),
        (([], [1.0, 2.0]), (1.0, 2.0)),
        (([None, None], [None]), ()),
    ],
)
def test_one_rank_cannot_invent_rails(told: tuple[list[float | None], ...], rails: tuple[float, ...]) -> None:
    """The lowest measurement of each rail counts. If ranks report different numbers of rails, none counts."""
    places = tuple(MemberRecord(node=f"n{number}", measured=({"rails": values},)) for number, values in enumerate(told))
    ended = group([PASS, PASS]).model_copy(update={"by_rail": True, "places": places})
    assert group_run_of(ended, "rails").rails == rails


@cases(
    ("judged_metric", "without", "is_judged"),
    [
        ("busbw_gbps", [], True),
        ("busbw_gbps", ["algbw_gbps"], True),
        ("busbw_gbps", ["busbw_gbps"], False),
        (None, [], False),
    ],
    ids=["all metrics have references", "another has none", "it has none", "the check does not judge it"],
)
def test_a_reference_judges_the_objective(judged_metric: str | None, without: list[str], is_judged: bool) -> None:
    """If each member has one. Its agent names the metrics that have none."""
    found = Finding(code="run.not_judged", summary="", severity=Severity.INFO, evidence={"metrics": [*without]})
    ended = group([PASS, PASS])
    places = (ended.places[0], ended.places[1].model_copy(update={"findings": (found,)}))
    run = group_run_of(ended.model_copy(update={"places": places}), judged_metric=judged_metric)
    assert run.is_judged is is_judged
