"""Devices that are out of line with the others of their job."""

import pytest
from tests.cases import cases

from muster.check import Worse
from muster.model import Finding, Run, Severity, Verdict
from muster_agent.acceptance.comparison import with_outliers

SPEED = {"tflops": Worse.LOWER, "seconds": Worse.HIGHER}
NOTE = Finding(code="run.not_judged", summary="no reference", severity=Severity.INFO)


def run_on(number: int, *, models=("H200", "H200"), verdict=Verdict.PASS, facts=None, **metrics) -> Run:
    """The run of a node with a device of each model."""
    own = {"devices": [*range(len(models))], "models": [*models], "gpu_model": models[0], "software": {"torch": "2"}}
    return Run(
        id=f"run-{number}",
        node=f"gpu{number}",
        check="gemm",
        verdict=verdict,
        findings=(NOTE,),
        started_at=1000.0,
        duration_s=1.0,
        metrics=metrics,
        facts=own | (facts or {}),
    )


def named(runs):
    """Node, code and device of each finding that the comparison has added, after the note that was there."""
    return [
        (run.node, finding.code, finding.device) for run in with_outliers(runs, SPEED) for finding in run.findings[1:]
    ]


@cases(
    ("values", "expected"),
    [
        ([[700, 702], [698, 700], [700, 620]], [("gpu2", "run.outlier", 1)]),
        ([[700, 702], [698, 700], [700, 640]], []),
        ([[700, 702], [698, 700], [700, 900]], []),
        ([[700, 702], [700, 620]], []),
        ([[700, 500], [600, 900], [800, 400]], []),
        ([[700, None], [700, None], [700, 500]], [("gpu2", "run.outlier", 1)]),
        ([[0, 0], [0, 0], [0, -1]], []),
        ([700, 702, 600, 701], [("gpu2", "run.outlier", None)]),
        ([[700, 702], [698, 700], [700]], []),
    ],
)
def test_a_slow_device_is_named(values, expected):
    """If it is more than a tenth and more than five spreads worse, and three nodes say what is usual."""
    assert named([run_on(number, tflops=value) for number, value in enumerate(values)]) == expected


def test_a_long_time_is_worse():
    """Each metric says in which direction it gets worse."""
    assert named([run_on(number, seconds=value) for number, value in enumerate([5.0, 5.0, 5.0, 6.0, 4.0])]) == [
        ("gpu3", "run.outlier", None)
    ]


def test_simulated_devices_are_not_compared_by_speed():
    """They share a CPU, which anybody else may use as well."""
    runs = [
        run_on(number, tflops=value).model_copy(update={"simulated": True}) for number, value in enumerate([7, 7, 1])
    ]
    assert named(runs) == []


def test_devices_of_other_models_are_not_compared():
    """The one slower model of a mixed node is usual for its kind."""
    mixed = [run_on(number, models=("H200", "L4"), tflops=[700, 100]) for number in range(4)]
    assert named(mixed) == []
    assert named([*mixed, run_on(4, models=("H200", "L4"), tflops=[700, 80])]) == [("gpu4", "run.outlier", 1)]


@cases(
    ("results", "expected"),
    [
        (["aa", "aa", "ab"], [("gpu2", "run.result_differs", 1)]),
        (["aa", "aa", "aa"], []),
        (["aa", "ab"], []),
        (["aa", "bb", "cc"], []),
        (["aa", "bb", "bb"], [("gpu0", "run.result_differs", 0), ("gpu0", "run.result_differs", 1)]),
    ],
)
def test_a_device_with_other_bits_is_named(results, expected):
    """If more than half of the devices agree, and three nodes computed."""
    runs = [run_on(number, facts={"fingerprints": {"bf16": [*bits]}}) for number, bits in enumerate(results)]
    assert named(runs) == expected


def test_other_software_may_compute_other_bits():
    """Only devices with the same software are compared."""
    facts = [{"fingerprints": {"bf16": [bits, bits]}, "software": {"torch": bits}} for bits in "aaab"]
    assert named([run_on(number, facts=each) for number, each in enumerate(facts)]) == []


@pytest.mark.parametrize(("verdict", "after"), [(Verdict.PASS, Verdict.WARN), (Verdict.FAIL, Verdict.FAIL)])
def test_the_verdict_follows(verdict, after):
    """An outlier is a warning, and no worse verdict gets better by it."""
    runs = [run_on(number, tflops=[700, 700]) for number in range(3)]
    *others, slow = with_outliers([*runs, run_on(3, verdict=verdict, tflops=[500, 700])], SPEED)
    assert others == runs
    assert slow.verdict is after
    assert slow.findings[-1].summary == "tflops 500 is 28.6% worse than the 700 that is usual in this job"
