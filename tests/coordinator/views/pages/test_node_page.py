"""The page of one node: why it is as it is, with measurement and reference, and what must happen next."""

from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, found, view

from muster.model import Action, Device, Health, Run, ServiceState, Verdict
from muster_coordinator.model.quarantine import Requirement
from muster_coordinator.model.quarantine_views import CaseView
from muster_coordinator.views.pages.node_page import metrics_text, node_page

GPU = Device(index=3, uuid="GPU-3", model="H100")


def page(node, case=None, **more):
    return node_page(node.name, at=NOW, view=node, case=case, **{"runs": (), "story": (), **more})


def run(number, check="gemm", **more):
    common = {"node": "n1", "verdict": Verdict.PASS, "started_at": NOW - number, "duration_s": 1.0}
    return Run(id=f"r{number}", check=check, **common, **more)


@cases("value, bound, expected", [(310.0, 556, "at least 556"), (90.5, 83, "at most 83"), ("x", "y", "y")])
def test_a_finding_shows_measurement_and_reference(value, bound, expected):
    """The source of the reference, too, and what to do about it."""
    finding = found(device=3, evidence={"value": value, "bound": bound, "source": "data sheet", "rank": 1})
    (reason,) = page(view("n1", Health.FAILED, findings=(finding,), devices=(GPU,))).findings.items
    assert (reason.label, reason.bound, reason.source) == ("gemm.slow GPU3", expected, "data sheet")
    assert (reason.todo, reason.device, reason.evidence) == ("Replace the hardware", GPU, (("rank", "1"),))


def test_a_device_that_has_been_exchanged_is_not_blamed():
    """Another GPU may have the index of the faulty one."""
    finding = found(device=3, uuid="GPU-old")
    (reason,) = page(view("n1", findings=(finding,), devices=(GPU,))).findings.items
    assert reason.is_other_device


def test_a_finding_of_a_sweep_leads_to_the_sweep():
    """Its id is not repeated as evidence; and what the finding says is not repeated as a reason."""
    finding = found("collective.slow", summary="slow with n2", run="s1", evidence={"sweep": "s1", "confidence": 0.9})
    made = page(view("n1", findings=(finding,), reasons=("slow with n2", "waits for a second run")))
    (reason,) = made.findings.items
    assert (reason.sweep, reason.evidence) == ("s1", (("confidence", "0.9"),))
    assert made.reasons == ("waits for a second run",)
    (other,) = page(view("n1", findings=(found(evidence={"sweep": "s1"}),))).findings.items
    assert other.sweep is None


def test_evidence_is_bounded():
    """An agent may send much of it."""
    finding = found(evidence={f"key{n}": "x" * 5000 for n in range(50)})
    (reason,) = page(view("n1", findings=(finding,))).findings.items
    assert (len(reason.evidence), max(len(value) for _, value in reason.evidence)) == (8, 200)


def test_the_next_steps_begin_with_the_repair():
    """Then what muster does."""
    required = Requirement(
        row="slow", codes=("gemm.slow",), cause="gemm.slow", action=Action.REBOOT_NODE, urgency=1, reason="slow"
    )
    case = CaseView(
        node="n1", state=ServiceState.CORDONED, since=NOW, rounds=2, requirement=required, retest_at=NOW + 600
    )
    steps = page(view("n1", Health.FAILED, ServiceState.CORDONED), case).next_steps
    assert steps[0] == "Reboot the node"
    assert steps[1].startswith("Retest after 2027-01-15T08:10:00Z")


def test_a_node_in_service_needs_nothing():
    """The list of steps is empty."""
    case = CaseView(node="n1", state=ServiceState.IN_SERVICE, since=NOW, rounds=2)
    made = page(view("n1", checks={"gemm": Verdict.PASS}), case)
    assert made.next_steps == ()
    assert made.why_nothing == "Nothing stands against it: every check that has reported passes."


@cases(
    "more, text",
    [
        ({"lost": True}, "It stopped to report"),
        ({}, "No check has reported"),
    ],
)
def test_a_page_without_a_fault_says_why(more, text):
    """Absence of faults is not health."""
    assert page(view("n1", Health.UNKNOWN, **more)).why_nothing.startswith(text)


def test_a_forgotten_node_has_its_story_only():
    """Nothing else is known of it."""
    made = node_page("n1", at=NOW, view=None, case=None, runs=(), story=())
    assert made.row is None
    assert "was forgotten" in made.why_nothing


def test_checks_come_the_worst_first_with_their_last_run():
    """If it is among the last runs."""
    node = view("n1", checks={"a": Verdict.PASS, "b": Verdict.FAIL, "c": Verdict.WARN})
    made = page(node, runs=(run(1, "b"), run(2, "b"), run(3, "c")))
    last = [(check.check, check.run and check.run.id) for check in made.checks]
    assert last == [("b", "r1"), ("c", "r3"), ("a", None)]


def test_metrics_are_in_one_line():
    """The first of them, with units."""
    metrics = {"busbw_gbps": 180.25, **{f"m{n}": float(n) for n in range(9)}}
    assert metrics_text(run(1, metrics=metrics)).startswith("busbw_gbps 180.25 GB/s, m0 0, ")
    assert metrics_text(run(1, metrics=metrics)).endswith("4 more")


@cases(
    "code, source",
    [("baseline.outlier", "the baseline of the fleet"), ("baseline.drift", "the first measurements of this device")],
)
def test_a_comparison_shows_what_is_normal(code, source):
    """With units, as a reference does."""
    evidence = {"metric": "tflops", "value": 630.0, "centre": 700.0, "spread": 14.0, "devices": 64}
    finding = found(code, summary="tflops 630 is 10.0% worse", evidence=evidence)
    (reason,) = page(view("n1", findings=(finding,))).findings.items
    assert (reason.value, reason.bound) == ("630 TFLOP/s", "700 TFLOP/s, spread 14")
    assert reason.source.startswith(source)
    assert dict(reason.evidence) == {"metric": "tflops", "devices": "64"}
