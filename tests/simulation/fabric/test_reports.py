"""What simulated members report, against groups of a coordinator that get the same messages."""

import pytest
from tests.cases import cases
from tests.coordinator.sweeps.group_steps import declined, finished, group

from muster.model import Verdict
from muster_coordinator.model.events import Ticked
from muster_coordinator.model.probes import GroupRun, Probe, RunOutcome
from muster_coordinator.model.sweep_records import Ending, GroupState
from muster_coordinator.sweeps.group import ABORT_GRACE_S
from muster_coordinator.sweeps.group_events import MemberLost
from muster_coordinator.sweeps.group_run import group_run_of

pytest.importorskip("numpy")

from benchmarks.fabric.reports import BUSY, FAILED, KILLED, LATE, VANISHED, ended, measured

TEXTS = {"run.killed": KILLED, "run.raised": FAILED, "run.timeout": LATE}

PAIR = Probe(("1", "2"), "")


def coordinators(*events, state: GroupState = GroupState.RUNNING) -> GroupRun:
    """The result of a real group of two with these messages, and then silence."""
    made = group(state, PAIR.members)
    for event in events:
        made.handle(event, 1.0)
    made.handle(Ticked(), 1.0 + ABORT_GRACE_S)
    assert made.state is GroupState.ENDED
    return group_run_of(made.record())


def shown(run: GroupRun) -> tuple:
    """What localisation reads, and how many members have a text; the texts differ."""
    objective = run.objective if run.outcome is RunOutcome.GOOD else None  # the messages of these tests always have one
    return run.outcome, run.crashed, run.hard, objective, run.detail.count(":")


@cases("codes, outcome", [
    (("run.killed", "run.killed"), RunOutcome.BAD),
    (("run.killed", "run.raised"), RunOutcome.BAD),
    (("run.timeout", "run.timeout"), RunOutcome.BAD),
])  # fmt: skip
def test_ranks_that_end_without_a_result(codes, outcome) -> None:
    """All killed, one killed and one that saw it, all ended at the deadline."""
    real = coordinators(*(finished(n, Verdict.UNKNOWN, code) for n, code in zip(PAIR.members, codes, strict=True)))
    faults = {node: TEXTS[code] for node, code in zip(PAIR.members, codes, strict=True)}
    simulated = ended("g", PAIR, faults, Ending.FINISHED)
    assert simulated.outcome is outcome
    assert shown(simulated) == shown(real)


def test_an_agent_that_vanishes() -> None:
    """Its partner is told to leave and has nothing to report."""
    assert shown(ended("g", PAIR, {"1": VANISHED}, Ending.ABORTED)) == shown(coordinators(MemberLost("1")))


def test_a_member_that_declines() -> None:
    """The group is not formed."""
    real = coordinators(declined("2"), state=GroupState.FORMING)
    assert shown(ended("g", PAIR, {"2": BUSY}, Ending.NOT_FORMED)) == shown(real)


def test_a_pair_that_measures() -> None:
    """Its objective is what the slower member says."""
    real = coordinators(finished("1", gbps=400.0), finished("2", gbps=400.0))
    assert shown(measured("g", PAIR, 400.0, ())) == shown(real)
