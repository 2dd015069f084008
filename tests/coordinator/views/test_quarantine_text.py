"""What people read about the quarantine: each reason in words, and no more than is true."""

import re
import time
from typing import Any

import pytest
from tests.cases import cases

from muster.alarm import Alarm, AlarmKind
from muster.instants import instant_text
from muster.model import Action as Advice
from muster.model import Health, ServiceState, Verdict
from muster.transition import Cause, Effect, Mark, SchedulerNode, Transition
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.model.quarantine import (
    Hold,
    MassEvent,
    Probation,
    ProbationTest,
    Requirement,
    UpcomingRequirement,
)
from muster_coordinator.model.quarantine_events import (
    Asked,
    FreezeLifted,
    HoldRequested,
    NodeForgotten,
    ReleaseRequested,
)
from muster_coordinator.model.quarantine_views import (
    ActorView,
    BudgetView,
    CaseView,
    DomainView,
    KeptOffView,
    QuarantineView,
)
from muster_coordinator.model.transitions import ActorOutcome, TransitionRecord
from muster_coordinator.views.node_list import node_list
from muster_coordinator.views.quarantine_text import budget_text, case_table, decision_table, why

AT = 1_800_000_000.0
TIME = instant_text(AT)
REQUIRED = Requirement(
    row="slow",
    codes=("gemm.slow", "gemm.spread"),
    cause="gemm.slow",
    action=Advice.INSPECT_HARDWARE,
    urgency=45,
    reason="It waits",
)
XID = Cause(code="nvml.xid", check="nvml", device=3, uuid="GPU-5c1d", xid=79, summary="it has fallen off the bus")
SLOW = Cause(code="gemm.slow", check="gemm", device=1, summary="too slow")
FOUND = "gemm.slow, gemm.spread (policy row slow)"
UNFROZEN = FreezeLifted(by="ann", reason="a fan")
ROUND = (ProbationTest(check="gemm", strict=True), ProbationTest(check="nvml"))


def case(state=ServiceState.CORDONED, **known):
    return CaseView(**{"node": "n1", "state": state, "since": AT, "rounds": 2, **known})


def scheduled(mark=Mark.NONE, **known):
    return {"observed": {"slurm": SchedulerNode(node="n1", mark=mark, **known)}}


@cases(
    ("known", "said"),
    [
        ({"requirement": REQUIRED}, [FOUND]),
        (
            {"requirement": REQUIRED, "causes": (SLOW,)},
            ["slow GPU1: gemm.slow; inspect the hardware; too slow (policy row slow)"],
        ),
        ({"causes": (XID,)}, ["Drained for XID 79 GPU3: it has fallen off the bus; GPU-5c1d"]),
        (
            {"requirement": REQUIRED, "causes": (XID, XID.model_copy(update={"device": 2}))},
            ["Drained for XID 79 GPU3: it has fallen off the bus; GPU-5c1d; +1 more: XID 79 GPU2", FOUND],
        ),
        (
            {"upcoming": UpcomingRequirement(row="heat", code="nvml.too_hot", at=AT), "state": ServiceState.IN_SERVICE},
            [f"nvml.too_hot requires draining from {TIME} on, unless it clears before (policy row heat)"],
        ),
        (
            {"requirement": REQUIRED.model_copy(update={"unproven": ("gemm",)}), "state": ServiceState.IN_SERVICE},
            [f"{FOUND}; not drained before gemm finds it again"],
        ),
        (
            {
                "requirement": REQUIRED,
                "state": ServiceState.HELD,
                "held_because": "Not drained: budget of 2 of 6 reached",
            },
            [FOUND, "Not drained: budget of 2 of 6 reached"],
        ),
        (
            {"requirement": REQUIRED, "state": ServiceState.ACCEPTING, "held_because": "Rate limit: next drain in 7 s"},
            [FOUND, "Rate limit: next drain in 7 s"],
        ),
        ({"requirement": REQUIRED, "hold": Hold(by="ann", reason="a fan", at=AT)}, ["Hold by ann: a fan", FOUND]),
        (
            {"hold": Hold(by="somebody at slurm", reason="Resumed by hand in slurm; so", at=AT), "state": "IN_SERVICE"},
            ["Resumed by hand in slurm; so"],
        ),
        (
            {"requirement": REQUIRED, **scheduled(Mark.FOREIGN, detail="bob: rma")},
            ["Drained by others in slurm: bob: rma", FOUND],
        ),
        ({"requirement": REQUIRED, **scheduled(opted_out=True)}, ["Opted out in slurm", FOUND]),
        ({"requirement": REQUIRED, **scheduled(leaving="scale-down")}, [FOUND, "Leaving: scale-down"]),
        (
            {"state": ServiceState.IN_SERVICE, **scheduled(keeps_off="taint x:NoSchedule")},
            ["Others keep work off it (slurm: taint x:NoSchedule)"],
        ),
        ({"requirement": REQUIRED, "lost_at": AT}, [FOUND, f"Silent since {TIME}"]),
        (
            {"state": ServiceState.IN_SERVICE, "lost_at": AT, "left": True},
            [f"Silent since {TIME}", "Left the fleet"],
        ),
        ({"state": ServiceState.IN_SERVICE, "spared": ("Agent silent; so",)}, ["Agent silent; so"]),
        (
            {"state": ServiceState.IN_SERVICE, "will_drain_again": ("slow still stands",)},
            ["slow still stands", "To prevent that, hold the node or add a policy row"],
        ),
        ({"state": ServiceState.ACCEPTING}, ["New, not accepted yet"]),
        (
            {"state": ServiceState.ACCEPTING, "unfit_because": "not measured yet: gemm"},
            ["Not accepted: not measured yet: gemm"],
        ),
        (
            {
                "state": ServiceState.ACCEPTING,
                "unfit_because": "not measured yet: gemm",
                "probation": Probation(begun=AT),
            },
            ["Not accepted: not measured yet: gemm", "Tests: 0 of 2 rounds passed"],
        ),
        ({"state": ServiceState.IN_SERVICE, "unfit_because": "not measured yet: gemm"}, []),
        ({"retest_at": AT}, [f"Retest after {TIME}: all faults have cleared"]),
        (
            {"retest_at": AT, "requirement": REQUIRED, "retest_because": "it was away and is back"},
            [FOUND, f"Retest after {TIME}: it was away and is back"],
        ),
        (
            {"retest_at": AT, "requirement": REQUIRED},
            [FOUND, f"Retest after {TIME} once all faults have cleared"],
        ),
        ({"retest_at": AT, "hold": Hold(by="ann", reason="a fan", at=AT)}, ["Hold by ann: a fan"]),
        (
            {"retest_at": AT, "needs_person": "drained 4 times"},
            ["Stays out until `muster quarantine release n1`: drained 4 times"],
        ),
        ({"state": ServiceState.IN_SERVICE}, []),
        (
            {"state": ServiceState.IN_SERVICE, "shut_out_as": ServiceState.CORDONED},
            ["Waiting for all actors to resume the node"],
        ),
        (
            {
                "state": ServiceState.IN_SERVICE,
                "shut_out_as": ServiceState.CORDONED,
                "outcomes": {"slurm": ActorOutcome(effect=Effect.FAILED, detail="down", at=AT, tries=1)},
            },
            ["Waiting for slurm to resume the node"],
        ),
        (
            {"state": ServiceState.IN_SERVICE, "shut_out_as": ServiceState.CORDONED, **scheduled(Mark.OURS)},
            ["Waiting for slurm to resume the node"],
        ),
        (
            {
                "state": ServiceState.IN_SERVICE,
                "shut_out_as": ServiceState.CORDONED,
                "outcomes": {
                    "slurm": ActorOutcome(effect=Effect.DONE, detail="resumed", at=AT, tries=1),
                    "k8s": ActorOutcome(effect=Effect.FAILED, detail="down", at=AT, tries=1),
                    "chat": ActorOutcome(effect=Effect.FAILED, detail="down", at=AT, tries=1, only_tells=True),
                },
                **scheduled(Mark.OURS),
            },
            ["Waiting for k8s to resume the node"],
        ),
    ],
)
def test_why(known, said):
    """A person's request comes first, then what the node is drained for, then what happens next."""
    assert [*why(case(**known))] == said


@cases(
    ("probation", "said"),
    [
        (Probation(begun=AT), "Tests: 0 of 2 rounds passed"),
        (Probation(begun=AT, waiting=ROUND, test="p1"), "Tests: 0 of 2 rounds passed, gemm runs now, then nvml"),
        (Probation(begun=AT, passed=1, waiting=ROUND[1:], test="p2"), "Tests: 1 of 2 rounds passed, nvml runs now"),
        (Probation(begun=AT, passed=1, next_at=AT), f"Tests: 1 of 2 rounds passed, next one at {TIME}"),
        (Probation(begun=AT, passed=3), "Tests: 2 of 2 rounds passed"),
        (
            Probation(begun=AT, trouble=f"gemm reported {Verdict.SKIPPED}", next_at=AT),
            f"Tests: 0 of 2 rounds passed, the last one did not count: gemm reported SKIPPED, next one at {TIME}",
        ),
    ],
)
def test_progress_of_the_tests(probation, said):
    """Which test is under way, which come then, and what the last round came to."""
    assert [*why(case(ServiceState.PROBATION, probation=probation))] == [said]


def test_times_have_local_time_beside_them(monkeypatch):
    """As the other tables of the command line."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        shown = [case_table([case(retest_at=AT)]), decision_table([Asked(id="r1", at=AT, request=UNFROZEN)])]
    time.tzset()
    assert [text.count("2027-01-15T08:00:00Z (17:00 JST)") for text in shown] == [2, 1]


def test_a_dry_run_says_so_wherever_a_state_stands():
    """In cases and in transitions, with what the actors would have done."""
    would = ActorOutcome(effect=Effect.WOULD, detail="would drain n1", at=AT, tries=1)
    shown = case_table([case(dry_run=True, requirement=REQUIRED, outcomes={"slurm": would})]).splitlines()
    assert "CORDONED (dry run)" in shown[1]
    node = NodeView(
        name="n1",
        health=Health.FAILED,
        service=ServiceState.CORDONED,
        dry_run=True,
        lost=False,
        last_seen=AT,
        devices=(),
        findings=(),
    )
    assert "CORDONED*" in node_list([node.model_dump(mode="json")], AT, width=80)
    transition = Transition(
        id="t1",
        node="n1",
        before=ServiceState.IN_SERVICE,
        after=ServiceState.CORDONED,
        reason="bad\nin two lines",
        at=AT,
        dry_run=True,
    )
    (_, line, outcome) = decision_table(
        [TransitionRecord(transition=transition, outcomes={"slurm": would})]
    ).splitlines()
    assert "IN_SERVICE to CORDONED (dry run)" in line
    assert outcome == "    slurm: WOULD: would drain n1"


def test_the_history_says_for_what_a_node_was_drained():
    """The error, the GPU and its UUID, and then what the policy says."""
    transition = Transition(
        id="t1",
        node="n1",
        before=ServiceState.IN_SERVICE,
        after=ServiceState.CORDONED,
        reason="policy row xid",
        at=AT,
        causes=(XID,),
    )
    (_, line) = decision_table([TransitionRecord(transition=transition)]).splitlines()
    assert line.endswith("XID 79 GPU3: it has fallen off the bus; GPU-5c1d: policy row xid")


def test_what_changes_no_state_is_no_move():
    """A node that is HELD for another reason than before stays HELD."""
    transition = Transition(
        id="t1", node="n1", before=ServiceState.HELD, after=ServiceState.HELD, reason="no room", at=AT
    )
    (_, line) = decision_table([TransitionRecord(transition=transition)]).splitlines()
    assert re.split("  +", line) == [TIME, "n1", "stays HELD", "-", "no room"]


@cases(
    ("request_", "node", "what"),
    [
        (HoldRequested(node="n1", by="ann", reason="a fan"), "n1", "hold"),
        (ReleaseRequested(node="n1", by="ann", reason="a fan"), "n1", "release"),
        (ReleaseRequested(node="n1", by="ann", reason="a fan", untested=True), "n1", "release, untested"),
        (UNFROZEN, "-", "unfreeze"),
        (NodeForgotten(node="n1", by="ann", reason="a fan"), "n1", "forget"),
    ],
)
def test_what_people_have_asked_for_stands_in_the_history(request_, node, what):
    """By the name of the command, with who and why; what is about all nodes names none."""
    (_, line) = decision_table([Asked(id="r1", at=AT, request=request_)]).splitlines()
    assert re.split("  +", line) == [TIME, node, what, "ann", "a fan"]


def test_failures_are_seen_with_what_comes_next():
    """How often it was tried, and when it is tried again."""
    failed = ActorOutcome(effect=Effect.FAILED, detail="no\nsuch node", at=AT, tries=3, next_try=AT)
    (_, _, line) = case_table([case(outcomes={"slurm": failed})]).splitlines()
    assert line == f"    slurm: FAILED (tried 3 times): no such node; next try at {TIME}"


LEFT = ActorOutcome(effect=Effect.LEFT, detail="Slurm has no node n1", at=AT, tries=1)
TOLD = ActorOutcome(effect=Effect.DONE, detail="chat: notified", at=AT, tries=1, only_tells=True)
DONE = ActorOutcome(effect=Effect.DONE, detail="cordoned", at=AT, tries=1)


@cases(
    ("known", "is_shown"),
    [
        ({"outcomes": {"slurm": LEFT}}, True),
        ({"outcomes": {"slurm": LEFT, "webhook": TOLD}}, True),
        ({"outcomes": {"slurm": LEFT, "kubernetes": DONE}}, False),
        ({"outcomes": {"slurm": LEFT}, "state": ServiceState.IN_SERVICE}, False),
        ({"outcomes": {"slurm": LEFT}, "hold": Hold(by="ada", reason="mine", at=AT)}, False),
    ],
)
def test_a_node_that_is_out_in_name_only_is_seen(known, is_shown):
    """No scheduler has taken it out, for example because none knows it by that name."""
    below = case_table([case(**known)]).splitlines()[2:]
    assert below == (["    slurm: LEFT: Slurm has no node n1"] if is_shown else [])


def view(mode="enforce", **known):
    usual: dict[str, Any] = {
        "nodes": 20,
        "away": 2,
        "limit": 4,
        "per_minute": 6.0,
        "held": (),
        "frozen": (),
        "domains": (),
    }
    return QuarantineView(mode=mode, **usual | known)


@pytest.mark.parametrize(
    ("mode", "said"),
    [("observe", "no node is drained"), ("dry-run", "actors change nothing"), ("enforce", "are drained")],
)
def test_the_mode_is_told_as_it_is(mode, said):
    """Nobody shall believe that nodes are taken out when none is."""
    (line, *_) = budget_text(BudgetView(quarantine=view(mode), actors=())).splitlines()
    assert line.startswith(f"mode: {mode}: ")
    assert said in line


def test_budget_tells_of_nodes_that_nobody_uncordons():
    """By name; without any, nothing is said."""
    told, untold = (budget_text(BudgetView(quarantine=view(), actors=(), unheard=it)) for it in (("n7", "n8"), ()))
    assert told.splitlines()[-1].startswith("drained, and no agent reports from there: n7, n8; ")
    assert "no agent" not in untold


def test_budget_names_what_others_keep_work_off():
    """By how they do, as it uses the budget up."""
    others = (KeptOffView(how="k8s: taint x:NoSchedule", nodes=("n1", "n2")),)
    text = budget_text(BudgetView(quarantine=view(kept_off=others), actors=()))
    assert "kept off work by others (k8s: taint x:NoSchedule): n1, n2" in text.splitlines()


def test_budget_tells_how_many_nodes_still_deliver():
    """None of them is drained meanwhile; otherwise nothing is said."""
    told, untold = (budget_text(BudgetView(quarantine=view(catching_up=count), actors=())) for count in (3, 0))
    assert "catching up: nodes whose older reports have not all arrived: 3 (not drained for now)" in told.splitlines()
    assert "catching up" not in untold


def test_budget_tells_of_alarms():
    """A line for each, whatever its text holds; without any, nothing is said."""
    alarm = Alarm(kind=AlarmKind.ACTION, subject="slurm", text="slurm does not drain n1:\n\x1b[2Jno answer", since=AT)
    text = budget_text(BudgetView(quarantine=view(alarms=(alarm,)), actors=()))
    *_, head, line = text.splitlines()
    assert head.split() == ["ALARM", "SINCE", "WHAT"]
    assert re.split("  +", line)[:2] == ["ACTION", TIME]
    assert "slurm does not drain n1:" in line
    assert "\x1b" not in text
    assert "ALARM" not in budget_text(BudgetView(quarantine=view(), actors=()))


def test_budget_tells_what_keeps_nodes_in_service():
    """Who waits, what is frozen, where a failure domain is nearly full, and which actor does not work."""
    domains = tuple(
        DomainView(name=name, nodes=8, away=away, limit=4) for name, away in (("r1", 4), ("r2", 3), ("r3", 2))
    )
    frozen = (MassEvent(cause="nvml.driver", nodes=12, since=AT),)
    actors = (
        ActorView(name="k8s", problem="no kubeconfig"),
        ActorView(name="slurm", summary="cluster c", can_cordon=True),
    )
    text = budget_text(BudgetView(quarantine=view(held=("n7", "n8"), frozen=frozen, domains=domains), actors=actors))
    assert "waiting to be drained (HELD): n7, n8" in text
    assert f"frozen: draining paused fleet-wide: 12 nodes report nvml.driver since {TIME}" in text
    assert [line.split()[0] for line in text.splitlines() if line.startswith("r")] == ["rate:", "r1", "r2"]
    assert text.splitlines()[-2].split("  ")[-1].strip() == "no kubeconfig"
    assert text.endswith("works: cluster c")
