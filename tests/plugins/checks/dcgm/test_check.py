"""The check `dcgm`, with a stand-in for dcgmi that says what several versions of DCGM say.

The first line of each output says whether it is recorded, and where, or synthetic.
"""

from pathlib import Path

import pytest

from muster import Config, Measurement, Skip
from muster.config import Settings
from muster_plugins.checks.dcgm import check as dcgm
from muster_plugins.checks.dcgm.diagnosis import measure
from muster_plugins.checks.dcgm.report import MOST_RESULTS, UnreadableReport, read_report

RECORDED = Path(__file__).parent / "recorded"


@pytest.fixture
def diagnose(live, bare_context, tmp_path):
    """What the check makes of a dcgmi with this shell script as its body: the measurement and its findings."""

    def run(body: str, timeout_s: float = 60.0, **params) -> tuple[Measurement, list]:
        dcgmi = tmp_path / "dcgmi"
        dcgmi.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        dcgmi.chmod(0o755)
        config = Config(Settings.model_validate({"plugins": {"dcgm": {"dcgmi": str(dcgmi)}}}))
        (check,) = dcgm.muster_checks(config)
        measurement = check.measure(check.params(**params), bare_context(timeout_s))
        return measurement, check.judge(measurement, {})

    return run


def recorded(name: str, exit_code: int = 0) -> str:
    return f'cat "{RECORDED / name}.txt"; exit {exit_code}'


def table(*results: str) -> str:
    test = f'{{"name": "SM Stress", "results": [{", ".join(results)}]}}'
    return f'{{"DCGM GPU Diagnostic": {{"test_categories": [{{"category": "Stress", "tests": [{test}]}}]}}}}'


def told(findings) -> list[tuple]:
    return [(each.code, each.severity, each.device, each.action) for each in findings]


@pytest.mark.parametrize(
    ("version", "expected", "counts"),
    [
        (
            "1.7_stress",
            [
                ("dcgm.failed", "ERROR", 0, "INSPECT_HARDWARE"),
                ("dcgm.failed", "ERROR", 2, "INSPECT_HARDWARE"),
                ("dcgm.failed", "ERROR", 3, "INSPECT_HARDWARE"),
                ("dcgm.skipped", "SKIPPED", None, "NONE"),
            ],
            {"passed": 4, "failed": 3, "warned": 0, "skipped": 1},
        ),
        ("3.1.0_eight_gpus", [], {"passed": 17, "failed": 0, "warned": 0, "skipped": 0}),
        (
            "4.2.3_gb10",
            [("dcgm.failed", "WARNING", 0, "NONE"), ("dcgm.skipped", "SKIPPED", None, "NONE")],
            {"passed": 0, "failed": 1, "warned": 0, "skipped": 2},
        ),
        (
            "4.5.2_gb10",
            [("dcgm.failed", "WARNING", 0, "NONE")],
            {"passed": 2, "failed": 1, "warned": 0, "skipped": 0},
        ),
        ("2.4", [("dcgm.failed", "WARNING", 1, "NONE")], {"passed": 8, "failed": 1, "warned": 0, "skipped": 0}),
        (
            "3.3",
            [
                ("dcgm.failed", "ERROR", 1, "INSPECT_HARDWARE"),
                ("dcgm.warned", "WARNING", 1, "NONE"),
                ("dcgm.skipped", "SKIPPED", None, "NONE"),
            ],
            {"passed": 10, "failed": 1, "warned": 1, "skipped": 2},
        ),
        (
            "4.2",
            [
                ("dcgm.failed", "WARNING", 1, "NONE"),
                ("dcgm.failed", "ERROR", 0, "RESET_GPU"),
                ("dcgm.warned", "WARNING", 1, "NONE"),
                ("dcgm.skipped", "SKIPPED", None, "NONE"),
                ("dcgm.not_run", "UNKNOWN", None, "NONE"),
            ],
            {"passed": 4, "failed": 2, "warned": 0, "skipped": 1},
        ),
    ],
)
def test_every_version_is_understood(diagnose, version, expected, counts):
    """Failures name their device and DCGM's advice; skipped and unfinished tests are named and never ignored."""
    measurement, findings = diagnose(recorded(version, exit_code=226))
    assert told(findings) == expected
    assert measurement.metrics == counts
    assert str(measurement.facts["dcgm"]).startswith(version.partition("_")[0])


def test_what_dcgm_says_is_in_the_finding(diagnose):
    """The first warning in the summary, all of them in the evidence."""
    _, (failed, *_) = diagnose(recorded("3.3"))
    assert failed.summary == (
        "GPU Memory failed on GPU 1: Found 3 faulty memory elements on GPU 1. Run a field diagnostic on the GPU."
    )
    assert [problem["error_id"] for problem in failed.evidence["problems"]] == [51, 98]


def test_a_summary_that_says_more_than_the_results_is_told(diagnose):
    """The finding has the summary only if the results lack it: DCGM 4.5 repeats every warning."""
    summary = '{"status": "Fail", "warnings": ["No GPU is fit"]}'
    test = f'{{"name": "software", "results": [{{"gpu_id": "1", "status": "Pass"}}], "test_summary": {summary}}}'
    _, findings = diagnose(f'echo \'{{"DCGM Diagnostic": {{"test_categories": [{{"tests": [{test}]}}]}}}}\'')
    assert told(findings) == [("dcgm.failed", "ERROR", None, "INSPECT_HARDWARE")]


def test_a_repeat_is_one_finding(diagnose):
    """A test that is skipped on every device is named once, with the devices."""
    _, findings = diagnose(recorded("3.3"))
    assert findings[-1].summary == "skipped: Memory Bandwidth"
    assert findings[-1].evidence == {"tests": {"Memory Bandwidth": ["GPU 0", "GPU 1"]}}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (recorded("no_hostengine", 1), "dcgm.no_hostengine"),
        (recorded("3.3_broken_off", 216), "dcgm.runtime_error"),
        ('echo \'{"DCGM Diagnostic": {"test_categories": []}}\'', "dcgm.nothing_tested"),
        ("echo garbage; exit 3", "dcgm.garbage"),
        ("exit 0", "dcgm.garbage"),
        ('echo \'{"something": "else"}\'', "dcgm.garbage"),
        (f'head -c 1000 "{RECORDED}/4.2.txt"', "dcgm.garbage"),
        ("head -c 100000 /dev/zero", "dcgm.garbage"),
    ],
)
def test_what_says_nothing_about_the_hardware_is_unknown(diagnose, body, code):
    """A missing host engine, an early end, truncated output and nonsense each have their own finding."""
    _, findings = diagnose(body)
    assert told(findings) == [(code, "UNKNOWN", None, "NONE")]


def test_a_dcgmi_that_hangs_is_ended(diagnose):
    """The finding keeps the output until then."""
    _, (finding,) = diagnose("echo started; sleep 600", timeout_s=0.5)
    assert (finding.code, finding.severity, finding.evidence) == ("dcgm.timed_out", "UNKNOWN", {"output": "started"})


def test_the_level_is_handed_on(diagnose):
    """The arguments are those that dcgmi documents."""
    _, (finding,) = diagnose('echo "$@"', level=3)
    assert finding.evidence == {"output": "diag -r 3 -j"}


def test_without_dcgm_there_is_nothing_to_run(bare_context):
    """A node on which DCGM is not installed skips the check."""
    settings = dcgm.DcgmSettings(dcgmi="/nonexistent/dcgmi")
    with pytest.raises(Skip, match="not installed"):
        measure(settings, dcgm.DcgmParams(), bare_context())


def test_more_results_than_a_node_can_have_are_refused():
    """A program that prints without end does not cause findings without end."""
    with pytest.raises(UnreadableReport, match="more than any node has"):
        read_report(table(*['{"status": "Fail"}'] * (MOST_RESULTS + 1)))


@pytest.mark.parametrize("word", ["", "ERROR 5"])
def test_a_failure_that_the_catalogue_does_not_know_is_an_error(diagnose, word):
    """A failure without any text is an error, too."""
    result = f'{{"gpu_id": "3", "status": "Fail", "warnings": "{word}"}}'
    _, findings = diagnose(f"echo '{table(result)}'")
    assert told(findings) == [("dcgm.failed", "ERROR", 3, "INSPECT_HARDWARE")]
