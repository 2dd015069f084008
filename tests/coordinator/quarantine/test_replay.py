"""What a policy would have decided: the reconciler, run over what happened."""

import gc
import tracemalloc

import pytest
from tests.cases import cases

from muster.model import Action, Finding, Run, ServiceState, Severity, Verdict
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.evidence.past_evidence import PastEvidence
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.policy_row import Row
from muster_coordinator.model.quarantine import NodeDecision, QuarantineRecord
from muster_coordinator.model.quarantine_events import FreezeLifted, HoldRequested, ReleaseRequested
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.replay import NodeReplay, Replay
from muster_coordinator.quarantine.replay_comparison import DrainThen, compared
from muster_coordinator.views.policy_text import policy_lines
from muster_coordinator.views.replay_text import MOST_LISTED, replay_lines, required_lines

START = 86_400.0
"""What times in these tests count from: what was found at the epoch itself would count as released before."""

ROWS = (
    Row(name="convicted", codes=("*.slow",), proof=Proof.LOCALISED, reason="convicted"),
    Row(name="lost", codes=("nvml.device_lost",), proof=Proof.ONCE, urgency=90, reason="it is gone"),
    Row(name="hot", codes=("nvml.too_hot",), after_s=300, reason="too hot for long"),
    Row(name="slow", codes=("gemm.slow",), reason="it is slow"),
    Row(name="disk", codes=("host.*",), service="IN_SERVICE", reason="not ours"),
)


def run(at, code=None, *, severity=Severity.ERROR, check=None, **said):
    """A run that began then and found `code`, or passed."""
    finding = code and Finding(code=code, summary="found", severity=severity, action=Action.RESET_GPU)
    return Run(
        id=f"r{at}",
        node="n1",
        check=check or code.split(".")[0],
        verdict=Verdict.FAIL if code else Verdict.PASS,
        findings=(finding,) if finding else (),
        started_at=START + at,
        duration_s=1.0,
        **said,
    )


class Past:
    """A replay of nodes in service, and the evidence from which it is told."""

    def __init__(self, *nodes, **settings):
        decision = NodeDecision(state=ServiceState.IN_SERVICE, since=START)
        records = [QuarantineRecord(node=node, decision=decision) for node in nodes or ("n1", "n2")]
        self.evidence = PastEvidence()
        self.replay = Replay(QuarantineSettings(**settings), Policy(ROWS), records, START)

    def run(self, *runs, node="n1"):
        for each in (run.model_copy(update={"node": node}) for run in runs):
            if (event := self.evidence.take_run(each)) is not None:
                self.replay.take(event, each.started_at + each.duration_s)
        return self

    def ask(self, request, at):
        self.replay.take(request, START + at)
        return self

    def decided(self, until=10_000.0):
        """When, about whom and what was decided."""
        self.replay.pass_time(START + until)
        return [(it.at - START, it.node, it.kind.value) for it in self.replay.decisions]


def required(*runs, until=10_000.0):
    """What the policy required of the node of these runs."""
    past = Past().run(*runs)
    past.decided(until)
    return past.replay.by_node.get("n1", NodeReplay())


def taken(replayed):
    """When, by which row and how often."""
    first = replayed.first
    return None if first is None else (first.at - START, first.requirement.row, replayed.times)


@cases(
    ("runs", "expected"),
    [
        pytest.param([run(0, "nvml.device_lost")], (1.0, "lost", 1), id="fatal by nature: when the run ends"),
        pytest.param([run(0, "gemm.slow")], None, id="once is not enough"),
        pytest.param([run(0, "gemm.slow"), run(60, "gemm.slow")], (61.0, "slow", 1), id="found again"),
        pytest.param(
            [run(0, "gemm.slow"), run(60, check="gemm"), run(61, check="gemm"), run(99, "gemm.slow")],
            None,
            id="passed twice between",
        ),
        pytest.param([run(0, "gemm.slow", group="g1"), run(60, "gemm.slow", group="g1")], None, id="in groups"),
        pytest.param(
            [run(0, "nvml.device_lost"), run(15, "nvml.device_lost"), run(6000, "nvml.device_lost")],
            (1.0, "lost", 1),
            id="out once, however often it is found",
        ),
        pytest.param(
            [run(0, "nvml.device_lost"), run(15, check="nvml"), run(30, check="nvml"), run(45, "nvml.device_lost")],
            (1.0, "lost", 2),
            id="out again after it was good",
        ),
        pytest.param(
            [run(0, "nvml.too_hot"), run(15, "nvml.too_hot")],
            (300.0, "hot", 1),
            id="when time has passed, without a run",
        ),
    ],
)
def test_when_the_node_would_have_gone(runs, expected):
    """At the end of the run, or at the moment, from which on the policy asks for it."""
    assert taken(required(*runs)) == expected


def test_convictions_count_until_they_are_cleared():
    """A sweep convicts, another one clears; both when they ended."""
    finding = NodeFinding(
        code="collective.slow",
        summary="slow with everyone",
        severity=Severity.ERROR,
        check="collective",
        run="s1",
        since=START + 100,
        seen=START + 100,
    )
    past = Past()
    past.replay.take(past.evidence.convict("n1", finding), START + 100)
    cleared = past.evidence.clear("n1", "collective", 1)
    assert cleared is not None
    past.replay.take(cleared, START + 200)
    again = finding.model_copy(update={"run": "s3", "since": START + 300, "seen": START + 300})
    past.replay.take(past.evidence.convict("n1", again), START + 300)
    assert past.evidence.clear("n2", "collective", 1) is None
    assert taken(past.replay.by_node["n1"]) == (100.0, "convicted", 2)


def test_what_was_found_and_would_not_have_counted_is_told_with_the_reason():
    """Errors alone; what has taken the node out is not among them."""
    replayed = required(
        run(0, "host.disk_full"),
        run(1, "gemm.slow"),
        run(2, "dcgm.failed"),
        run(3, "fabric.port_down", severity=Severity.WARNING),
    )
    assert replayed.spared == {
        "host.disk_full": "policy row disk does not drain",
        "gemm.slow": "policy row slow wants more repeats, time or proof",
        "dcgm.failed": "no policy row",
    }
    assert required(run(0, "nvml.device_lost")).spared == {}


def test_what_is_found_while_the_node_is_out_would_have_taken_it_out_too():
    """It is not said to have been spared; what did not count then either still is."""
    replayed = required(
        run(0, "nvml.device_lost"), run(5, "gemm.slow"), run(65, "gemm.slow"), run(66, "host.disk_full")
    )
    assert taken(replayed) == (1.0, "lost", 1)
    assert replayed.spared == {"host.disk_full": "policy row disk does not drain"}


def test_the_lines_of_config_check():
    """Who would have gone, and who not and why; with what is left out, and how many the budget lets go."""
    past = Past("n1", "n2", "n3").run(run(0, "nvml.device_lost"), node="n2").run(run(0, "host.disk_full"))
    past.run(run(0, "nvml.device_lost"), node="n3")
    assert list(required_lines(past.replay, 40, 30)) == [
        "In the last 30 days this policy would have required draining for 2 of 40 nodes,",
        "by runs and sweeps alone; comparisons with the fleet and silent nodes are not stored.",
        "With budget, rate, holds and mass events it would have drained 1 of them.",
        "NODE  FIRST AT              TIMES  FINDINGS          ROW\n"
        "n2    1970-01-02T00:00:01Z  1      nvml.device_lost  lost\n"
        "n3    1970-01-02T00:00:01Z  1      nvml.device_lost  lost",
        "It would not have drained these nodes, although something was found:",
        "NODE  FINDING         WHY NOT\nn1    host.disk_full  policy row disk does not drain",
    ]


def test_long_lines_are_cut():
    """The nodes beyond the most that are listed are counted."""
    nodes = [f"n{number:03}" for number in range(MOST_LISTED + 7)]
    past = Past(*nodes)
    for node in nodes:
        past.run(run(0, "nvml.device_lost"), node=node)
    lines = list(required_lines(past.replay, 1000, 30))
    assert f"draining for {MOST_LISTED + 7} of 1000 nodes" in lines[0]
    assert lines[-1] == "and 7 more"


def test_a_node_goes_and_comes_back():
    """It is tested when its wait is over and nothing stands against it; each test takes a minute of the replay."""
    past = Past(returning={"passes": 2, "pause_s": 60, "wait_s": 600})
    past.run(run(0, "nvml.device_lost"), run(100, check="nvml"), run(115, check="nvml"))
    assert past.decided() == [(1.0, "n1", "DRAINED"), (781.0, "n1", "RETURNED")]
    assert past.replay.most_out == 1


def test_a_test_fails_while_its_check_reports_an_error():
    """A person had the node tested too early: it stays out until the check passes."""
    past = Past(returning={"passes": 1, "pause_s": 60, "wait_s": 0})
    past.run(run(0, "nvml.device_lost")).ask(ReleaseRequested(node="n1", by="ada", reason="repaired"), 50)
    assert past.decided(until=5_000.0) == [(1.0, "n1", "DRAINED")]
    past.run(run(5_000, check="nvml"), run(5_015, check="nvml"))
    assert past.decided() == [(1.0, "n1", "DRAINED"), (5_076.0, "n1", "RETURNED")]


def test_the_budget_drains_the_next_node_when_there_is_room():
    """One of three may be away: the second waits until the first is back."""
    past = Past("n1", "n2", "n3", returning={"passes": 1, "pause_s": 0, "wait_s": 0})
    past.run(run(0, "nvml.device_lost"), node="n1").run(run(10, "nvml.device_lost"), node="n2")
    past.run(run(100, check="nvml"), run(115, check="nvml"), node="n1")
    assert past.decided() == [
        (1.0, "n1", "DRAINED"),
        (11.0, "n2", "WAITS"),
        (176.0, "n1", "RETURNED"),
        (176.0, "n2", "DRAINED"),
    ]
    assert past.replay.decisions[1].because == "Not drained: budget of 1 of 3 reached"
    assert past.replay.most_out == 1


def test_the_rate_holds_a_node_until_a_minute_is_over():
    """Time alone admits it, with no event between."""
    past = Past("n1", "n2", "n3", budget={"share": "100%", "per_minute": 1})
    past.run(run(0, "nvml.device_lost"), node="n1").run(run(10, "nvml.device_lost"), node="n2")
    assert past.decided() == [(1.0, "n1", "DRAINED"), (11.0, "n2", "WAITS"), (61.0, "n2", "DRAINED")]


def test_a_mass_event_pauses_draining_until_a_person_lifts_it():
    """As then: the freeze is lifted by the same request."""
    settings = {"budget": {"share": "100%"}, "mass_event": {"nodes": 2}}
    past = Past("n1", "n2", "n3", **settings)
    past.run(run(0, "nvml.device_lost"), node="n1").run(run(10, "nvml.device_lost"), node="n2")
    past.ask(FreezeLifted(by="ada", reason="they are bad"), 500)
    assert past.decided() == [
        (1.0, "n1", "DRAINED"),
        (11.0, "n2", "WAITS"),
        (11.0, None, "FROZEN"),
        (500.0, None, "UNFROZEN"),
        (500.0, "n2", "DRAINED"),
    ]


def test_a_hold_keeps_a_node_in_service():
    """Until it is released; then what stands against it drains it."""
    past = Past().ask(HoldRequested(node="n1", by="ada", reason="I look at it"), 0)
    past.run(run(0, "nvml.device_lost")).ask(ReleaseRequested(node="n1", by="ada", reason="done"), 700)
    assert past.decided() == [(1.0, "n1", "ON_HOLD"), (700.0, "n1", "DRAINED")]
    assert past.replay.decisions[0].because == "Hold by ada: I look at it"


def test_a_request_that_makes_no_sense_in_the_replay_is_passed_over():
    """Nothing was frozen here, nor was the node out; and nobody knows the third."""
    past = Past().ask(FreezeLifted(by="ada", reason="go"), 1)
    past.ask(ReleaseRequested(node="n1", by="ada", reason="done"), 2)
    past.ask(HoldRequested(node="gone", by="ada", reason="mine"), 3)
    assert past.decided() == []


def then(at, node="n1", **said):
    return DrainThen(at=START + at, node=node, reason="it is gone", **said)


def test_what_was_decided_then_stands_beside_it():
    """Drains of about the same time are the same; what only one of both drained differs."""
    past = Past("n1", "n2", "n3")
    past.run(run(0, "nvml.device_lost"), node="n1").run(run(10, "nvml.device_lost"), node="n2")
    past.decided()
    rows = compared(past.replay.decisions, [then(5), then(9_000), then(11, "n2", dry_run=True)])
    assert [
        (row.at - START, row.node, row.then is not None, row.replayed is not None, row.differs) for row in rows
    ] == [
        (1.0, "n1", True, True, False),
        (11.0, "n2", True, True, True),
        (9000.0, "n1", True, False, True),
    ]
    lines = list(replay_lines(past.replay, rows, nodes=3, days=1.5, policy="new.toml", drains_then=3))
    assert lines[0] == (
        "Replayed 1.5 days of 3 nodes under new.toml, as in mode enforce: 1 drain, at most 1 out at once. "
        "Decided then: 3 drains."
    )
    assert lines[1] == "What a replay cannot know:"
    assert [line.rstrip() for line in lines[-2].splitlines()] == [
        "TIME                     NODE  DECIDED THEN       REPLAYED  BECAUSE",
        "1970-01-02T00:00:01Z     n1    drained            drained   nvml.device_lost (policy row lost): it is gone",
        "1970-01-02T00:00:11Z  ≠  n2    drained (dry run)  waits     nvml.device_lost (policy row lost): Not drained: "
        "budget of 1 of 3 reached",
        "1970-01-02T02:30:00Z  ≠  n1    drained            -         it is gone",
    ]


def test_a_policy_in_words():
    """Each row with what it is about, what comes of it, its reason and its source."""
    often = Row(
        name="often",
        codes=("nvml.xid",),
        checks=("nvml", "kernel_log"),
        when={"xid": [79, 95]},
        severity="WARNING",
        proof=Proof.ONCE,
        repeats=3,
        within_s=600,
        action=Action.REPLACE,
        reason="it comes often",
        source="us",
    )
    lines = list(policy_lines(Policy((often, ROWS[0], ROWS[2], ROWS[4]))))
    assert lines[1:] == [
        "  1. often: out of service (urgency 50, REPLACE), found once, by 3 runs within 600 s, not over 3600 s ago: "
        "WARNING and ERROR nvml.xid of nvml or kernel_log, xid 79 or 95",
        "     it comes often [us]",
        "  2. convicted: out of service (urgency 50), when a sweep convicts, not over 3600 s ago: "
        "ERROR *.slow (convictions by sweeps)",
        "     convicted [the operator]",
        "  3. hot: out of service (urgency 50), found twice, or by a sweep, for 300 s, not over 3600 s ago: "
        "ERROR nvml.too_hot",
        "     too hot for long [the operator]",
        "  4. disk: stays in service: ERROR host.*",
        "     not ours [the operator]",
    ]


def test_a_long_history_takes_no_more_memory():
    """What is kept is what was decided: a check that fails all day leaves as much as one that fails for an hour."""
    past = Past()
    tracemalloc.start()
    try:
        past.run(*(run(at, "nvml.device_lost") for at in range(0, 300 * 15, 15)))
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for at in range(300 * 15, 1500 * 15, 15):
            past.run(run(at, "nvml.device_lost"))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [kind for *_, kind in past.decided()] == ["DRAINED"]
    assert after - before < 50_000
