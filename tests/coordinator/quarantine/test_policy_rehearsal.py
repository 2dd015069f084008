"""What a policy would have done with one node."""

import pytest

from muster.model import Action, Finding, Run, Severity, Verdict
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.quarantine.rehearsal import Rehearsal
from muster_coordinator.views.policy_text import MOST_LISTED, policy_lines, rehearsal_lines

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
        started_at=float(at),
        duration_s=1.0,
        **said,
    )


def rehearsed(*runs, until=10_000.0):
    rehearsal = Rehearsal(Policy(ROWS))
    for each in runs:
        rehearsal.take_run(each)
    rehearsal.pass_time(until)
    return rehearsal


def taken(rehearsal):
    """When, by which row and how often."""
    first = rehearsal.first
    return None if first is None else (first.at, first.demand.row, rehearsal.times)


@pytest.mark.parametrize(
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
    assert taken(rehearsed(*runs)) == expected


def test_convictions_count_until_they_are_cleared():
    """A sweep convicts, another one clears; both when they ended."""
    finding = NodeFinding(
        code="collective.slow",
        summary="slow with everyone",
        severity=Severity.ERROR,
        check="collective",
        run="s1",
        since=100.0,
        seen=100.0,
    )
    rehearsal = Rehearsal(Policy(ROWS))
    rehearsal.convict(finding)
    rehearsal.clear("collective", 200.0)
    rehearsal.convict(finding.model_copy(update={"run": "s3", "since": 300.0, "seen": 300.0}))
    assert taken(rehearsal) == (100.0, "convicted", 2)


def test_what_was_found_and_would_not_have_counted_is_told_with_the_reason():
    """Errors alone; what has taken the node out is not among them."""
    rehearsal = rehearsed(
        run(0, "host.disk_full"),
        run(1, "gemm.slow"),
        run(2, "dcgm.failed"),
        run(3, "fabric.port_down", severity=Severity.WARNING),
    )
    assert rehearsal.spared == {
        "host.disk_full": "row disk keeps nodes in service",
        "gemm.slow": "row slow had it not often, long or well founded enough",
        "dcgm.failed": "no row is about it",
    }
    assert rehearsed(run(0, "nvml.device_lost")).spared == {}


def test_what_is_found_while_the_node_is_out_would_have_taken_it_out_too():
    """It is not said to have been spared; what did not count then either still is."""
    rehearsal = rehearsed(
        run(0, "nvml.device_lost"), run(5, "gemm.slow"), run(65, "gemm.slow"), run(66, "host.disk_full")
    )
    assert taken(rehearsal) == (1.0, "lost", 1)
    assert rehearsal.spared == {"host.disk_full": "row disk keeps nodes in service"}


def test_a_rehearsal_in_words():
    """Who would have gone, and who not and why; with what it leaves out."""
    out, spared = rehearsed(run(0, "nvml.device_lost")), rehearsed(run(0, "host.disk_full"))
    assert list(rehearsal_lines({"n2": out, "n1": spared}.items(), 40, 30)) == [
        "In the last 30 days this policy would have taken 1 of 40 nodes out of service,",
        "without budget, holds and mass events, and by runs and sweeps alone, not by comparisons and silence.",
        "NODE  FIRST AT                  TIMES  FINDINGS          ROW\n"
        "n2    1970-01-01T00:00:01.000Z  1      nvml.device_lost  lost",
        "It would not have, although something was found:",
        "NODE  FINDING         WHY NOT\nn1    host.disk_full  row disk keeps nodes in service",
    ]


def test_a_long_rehearsal_is_cut():
    """The nodes beyond the most that are listed are counted."""
    out = {f"n{number:03}": rehearsed(run(0, "nvml.device_lost")) for number in range(MOST_LISTED + 7)}
    lines = list(rehearsal_lines(out.items(), 1000, 30))
    assert f"taken {MOST_LISTED + 7} of 1000 nodes" in lines[0]
    assert lines[-1] == "and 7 more"


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
