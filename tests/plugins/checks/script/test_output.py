"""What scripts say on stdout."""

import json

import pytest
from tests.cases import cases

from muster_plugins.checks.script.output import MOST_METRICS, UnreadableOutput, read_output

FINDING = {
    "code": "loose",
    "summary": "the cable is loose",
    "severity": "ERROR",
    "device": 2,
    "action": "INSPECT_HARDWARE",
}


@cases(
    ("stdout", "summary", "metrics", "units"),
    [
        ("", "", {}, {}),
        ("\n\n  OK all good  \nmore\n", "OK all good", {}, {}),
        ("DISK OK - free | /=2643MB;5948;5958;0;5968", "DISK OK - free", {"/": 2643.0}, {"/": "MB"}),
        ("OK | a=1 b=-2.5s;;; c=3%", "OK", {"a": 1.0, "b": -2.5, "c": 3.0}, {"b": "s", "c": "%"}),
        ("OK | 'a label'=1c 'it''s'=.5", "OK", {"a_label": 1.0, "it's": 0.5}, {"a_label": "c"}),
        ("OK | a=1\nlong text\nmore | b=2\nc=1e3", "OK", {"a": 1.0, "b": 2.0, "c": 1000.0}, {}),
        ("OK | a=U b=x c=1,5 =3 d=", "OK", {}, {}),
        ("LOAD OK\n", "LOAD OK", {}, {}),
    ],
)
def test_the_text_of_a_nagios_plugin(stdout, summary, metrics, units):
    """The first line is the summary, performance data are metrics; what is no number is passed over."""
    output = read_output(stdout, performance_data=True)
    assert (output.summary, output.metrics, output.units, output.findings) == (summary, metrics, units, ())


@cases(
    ("stdout", "summary"),
    [
        ("SUCCESS: 8 GPUs\nSUCCESS: driver\nFAILED: nvlink 3 is down\n", "FAILED: nvlink 3 is down"),
        ("[ OK ] memory\n[FAIL] /dev/nvidia3 is missing\n", "[FAIL] /dev/nvidia3 is missing"),
        ("=== health check ===\nPASS gpu count\nERROR: 7 of 8 GPUs\n", "ERROR: 7 of 8 GPUs"),
        ("ok 1 - count\nnot ok 2 - bandwidth\n", "not ok 2 - bandwidth"),
        ("gpu_count: PASSED\ngpu_temp: 91 C\n", "gpu_temp: 91 C"),
        ("CRITICAL - 3 of 8 links\nOK - driver\n", "CRITICAL - 3 of 8 links"),
        ("OK - 1 | a=1\nWARNING - 2 | b=2\n", "WARNING - 2"),
        ("the disk is slow\nerror log: none\n", "the disk is slow"),
        ("checked 8 GPUs\nfound no error\nwarn: GPU 3 is hot\nGPU 3 cannot be reset\n", "GPU 3 cannot be reset"),
        ("DISK WARNING - 85 % of /var\nlast error: 3 May\n", "DISK WARNING - 85 % of /var"),
        ("OK\n", "OK"),
        ("", ""),
    ],
)
@cases("performance_data", [True, False])
def test_a_failed_script_is_summarised_by_what_fails(stdout, summary, performance_data):
    """Not by passes, headings or progress before it; the first line counts where it names a state, or nothing fails."""
    output = read_output(stdout, performance_data=performance_data, failed=True)
    assert output.summary.partition(" |")[0] == summary


def test_a_script_that_passes_is_summarised_by_its_first_line():
    """Also if a later line has a word of failure."""
    assert read_output("OK: all\n0 errors, FAILED: none\n", performance_data=True).summary == "OK: all"


def test_without_performance_data_a_bar_is_text():
    """node-problem-detector knows no performance data."""
    output = read_output("a | b=1\n", performance_data=False)
    assert (output.summary, output.metrics) == ("a | b=1", {})


@cases("before", ["", "a line\n", "a line\n  "])
@cases("indent", [None, 2])
def test_the_first_object_counts(before, indent):
    """Over several lines or on one, with text before and after it."""
    table = {"metrics": {"x": 1, "y": [1, 2.5, None]}, "findings": [FINDING], "version": "passed over"}
    stdout = f'{before}{json.dumps(table, indent=indent)}\n{{"metrics": {{"x": 2}}}}'
    output = read_output(stdout, performance_data=True)
    assert output.summary == ("a line" if before else "")
    assert output.metrics == {"x": 1.0, "y": [1.0, 2.5, None]}
    (finding,) = output.findings
    assert finding.of("script.x").model_dump() == {**FINDING, "code": "script.x.loose", "evidence": {}}


def test_numbers_that_json_lacks_are_none():
    """NaN is no figure that could be judged."""
    assert read_output('{"metrics": {"x": NaN, "y": Infinity}}', performance_data=True).metrics == {
        "x": None,
        "y": None,
    }


@cases(
    ("stdout", "reason"),
    [
        ("{", "is not JSON"),
        ('{"metrics": {"x": 1}', "is not JSON"),
        ('{"a": ' * 100_000, "is not JSON"),
        ('{"metrics": [1]}', "metrics"),
        ('{"metrics": {"x": "many"}}', r"metrics\.x"),
        ('{"metrics": {"x": "many"}}', r"^key 'metrics\.x': must be a valid number"),
        ('{"metrics": {"": 1}}', "must match pattern"),
        ('{"metrics": {"a label": 1}}', "must match pattern"),
        (json.dumps({"metrics": dict.fromkeys(map(str, range(MOST_METRICS + 1)), 1)}), "at most 256"),
        (json.dumps({"findings": [FINDING] * 65}), "at most 64"),
        (json.dumps({"findings": [{"code": "x", "severity": "ERROR"}]}), r"findings\.0\.summary"),
        (json.dumps({"findings": [FINDING | {"severity": "BAD"}]}), r"findings\.0\.severity"),
        (json.dumps({"findings": [FINDING | {"code": "../x"}]}), r"findings\.0\.code"),
        (json.dumps({"findings": [FINDING | {"device": -1}]}), r"findings\.0\.device"),
        (json.dumps({"findings": [FINDING | {"device": 999}]}), r"findings\.0\.device"),
        (json.dumps({"findings": [FINDING | {"summary": "x" * 501}]}), r"findings\.0\.summary"),
        (json.dumps({"findings": [FINDING | {"evidence": {"x": "y" * 9000}}]}), "at most 8192 bytes"),
        (json.dumps({"findings": [FINDING | {"evidence": {"x": "\ud800"}}]}), "UTF-8"),
    ],
)
def test_an_object_of_another_form_is_refused(stdout, reason):
    """With the key and what would be right."""
    with pytest.raises(UnreadableOutput, match=reason):
        read_output(stdout, performance_data=True)


@pytest.mark.parametrize("data", ["a" * 1_000_000, "a='" * 300_000, " 'a" * 300_000, "=" * 1_000_000])
def test_garbage_in_place_of_performance_data_is_passed_over_at_once(data):
    """Each character is looked at a few times only, or this would take hours."""
    assert read_output(f"OK | {data}", performance_data=True).metrics == {}


def test_endless_performance_data_are_bounded():
    """More metrics than anybody can look at are dropped."""
    data = " ".join(f"m{number}=1" for number in range(10_000))
    assert len(read_output(f"OK | {data}", performance_data=True).metrics) == MOST_METRICS
