"""What an acceptance came to, and the forms in which it is written."""

import json
import re
from xml.etree.ElementTree import Element, fromstring

import pytest

from muster.acceptance import AcceptanceReport, GangDecision, NodeConclusion, report, step_report
from muster.errors import Refused, Unavailable
from muster.model import Action, Device, Finding, Inventory, Run, Severity, Verdict
from muster.run_plots import bars, curves
from muster_agent.acceptance import files, terminal
from muster_agent.acceptance.junit import junit
from muster_agent.acceptance.page import page

HOT = Finding(code="nvml.too_hot", summary="91 <degrees>", severity=Severity.ERROR, device=1, action=Action.RESET_GPU)
NOTE = Finding(code="run.not_judged", summary="no reference", severity=Severity.INFO)
BROKEN = Finding(code="run.raised", summary="RuntimeError: \x00\x1b[31mno", severity=Severity.UNKNOWN)
SWEEP = {"title": "bus bandwidth", "x_label": "bytes", "y_label": "GB/s", "x": [8, 1024, 1 << 20], "y": [0.1, 3, 12.5]}


def run_of(check: str, verdict: Verdict, *findings: Finding, node: str = "gpu01", **fields) -> Run:
    return Run(
        id=f"{check}-{node}",
        node=node,
        check=check,
        verdict=verdict,
        findings=findings,
        started_at=1000.0,
        duration_s=fields.pop("duration_s", 1.5),
        **fields,
    )


@pytest.fixture
def told() -> AcceptanceReport:
    """Two nodes, three sections, every verdict."""
    nodes = {
        "gpu01": Inventory(devices=(Device(index=0, uuid="u", model="H <100>", simulated=True),)),
        "gpu02": Inventory(),
    }
    steps = [
        step_report("ENV", "nvml", "what the driver says", [run_of("nvml", Verdict.FAIL, HOT, NOTE)]),
        step_report(
            "ENV", "host", "the host", [run_of("host", Verdict.SKIPPED), run_of("host", Verdict.WARN, node="gpu02")]
        ),
        step_report(
            "COMPUTE",
            "gemm",
            "products",
            [run_of("gemm", Verdict.PASS, NOTE, simulated=True, metrics={"tflops": [1.0, 2.0], "spread": 0.5})],
        ),
        step_report(
            "COLLECTIVE",
            "collective",
            "sums",
            [
                run_of("collective", Verdict.PASS, facts={"curves": [SWEEP, {"title": 3}], "table": "# size <B>"}),
                run_of("collective", Verdict.UNKNOWN, BROKEN, node="gpu02", duration_s=4.0),
            ],
        ),
    ]
    return report("quick", steps, nodes, 1000.0, 12.25)


def test_a_report_is_as_bad_as_its_worst_run_and_a_step_as_long_as_its_longest(told):
    """Steps keep their order within their sections."""
    assert (told.verdict, told.simulated) == (Verdict.FAIL, True)
    assert [(step.check, step.verdict, step.duration_s) for step in told.steps] == [
        ("nvml", Verdict.FAIL, 1.5),
        ("host", Verdict.WARN, 1.5),
        ("gemm", Verdict.PASS, 1.5),
        ("collective", Verdict.UNKNOWN, 4.0),
    ]
    assert {name: len(steps) for name, steps in told.sections.items()} == {"ENV": 2, "COMPUTE": 1, "COLLECTIVE": 1}


def test_the_json_is_the_report(told):
    """Reading it gives the same again."""
    assert AcceptanceReport.model_validate_json(told.model_dump_json()) == told


def case_of(root: Element, node: str, check: str) -> Element:
    return next(
        case
        for case in root.iter("testcase")
        if (case.get("classname", "").rpartition(".")[2], case.get("name")) == (node, check)
    )


def test_junit_has_a_suite_per_section_and_a_case_per_run(told):
    """FAIL is a failure, UNKNOWN an error, SKIPPED skipped; what WARN found stands in the output."""
    root = fromstring(junit(told))
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [
        ("ENV", "3"),
        ("COMPUTE", "1"),
        ("COLLECTIVE", "2"),
    ]
    assert [root[0].get(name) for name in ("failures", "errors", "skipped")] == ["1", "0", "1"]
    failure = case_of(root, "gpu01", "nvml")[0]
    assert (failure.tag, failure.get("message")) == ("failure", "91 <degrees>")
    assert "ERROR nvml.too_hot on device 1: 91 <degrees> (RESET_GPU)" in (failure.text or "")
    assert [case_of(root, *where)[0].tag for where in (("gpu02", "collective"), ("gpu01", "host"))] == [
        "error",
        "skipped",
    ]
    assert case_of(root, "gpu01", "gemm")[0].tag == "system-out"


def test_junit_numbers_what_runs_again(told):
    """CI systems keep one case of a name."""
    again = report("quick", [*told.steps, told.steps[0]], {}, 1000.0, 1.0)
    names = [case.get("name") for case in fromstring(junit(again)).iter("testcase")]
    assert names == ["nvml", "host", "host", "nvml #2", "gemm", "collective", "collective"]


def test_junit_holds_what_no_xml_may_hold_as_a_replacement(told):
    """The output of a broken program does not break the report."""
    message = case_of(fromstring(junit(told)), "gpu02", "collective")[0].get("message")
    assert message == "RuntimeError: \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31mno"


def test_a_conclusion_is_the_verdict_of_its_node(told):
    """The partner of a bad node fails in their pair, and has not failed itself; the page shows both."""
    conclusions = (
        NodeConclusion(node="gpu01", decision=GangDecision.REJECTED, verdict=Verdict.FAIL, reason="too <slow>"),
        NodeConclusion(node="gpu02", decision=GangDecision.BLOCKED, verdict=Verdict.PASS, reason="too few"),
    )
    told = told.model_copy(update={"conclusions": conclusions})
    assert told.verdicts == {"gpu01": Verdict.FAIL, "gpu02": Verdict.PASS}
    assert told.cause == "gpu01: too <slow>"
    text = page(told)
    assert all(part in text for part in ("<td>REJECTED</td>", "too &lt;slow&gt;", "<td>BLOCKED</td>"))


def test_the_page_needs_nothing_else_and_runs_nothing(told):
    """No script, no address to fetch from, and what was found is text, not markup."""
    text = page(told)
    assert "<script" not in text
    assert "http" not in text
    assert "91 &lt;degrees&gt;" in text
    assert "H &lt;100&gt; (simulated)" in text
    assert "Measured on simulated devices" in text
    assert text.count("<svg") == 1
    assert "# size &lt;B&gt;" in text
    assert text.count('class="bar"') == 2


def test_a_curve_has_numbers_at_its_axes(told):
    """What it is over what, the ends of x, and lines for 0, the middle and the top of y."""
    text = page(told)
    assert f"{SWEEP['title']}: {SWEEP['y_label']} over {SWEEP['x_label']}" in text
    (picture,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert re.findall(r">([^<>\s][^<>]*)</text>", picture) == ["0", "6.25", "12.5", "8", "1.04858e+06 bytes"]
    assert picture.count("<line") == 3


def test_bars_tell_the_unit(told):
    """Once, in their title."""
    assert "<p>tflops (TFLOP/s)</p>" in page(told)


def test_the_page_opens_what_is_not_good(told):
    """And a run that has no others beside it; of many nodes the rest is one line each."""
    shown = [line for line in page(told).splitlines() if line.startswith("<details") and "Measured" not in line]
    assert shown == ["<details open>", "<details>", "<details open>", "<details open>", "<details>", "<details open>"]


def test_bars_compare_devices_and_nothing_else(told):
    """A single number, or a metric without any number, has no bars; the longest bar is the whole width."""
    run = run_of("x", Verdict.PASS, metrics={"a": [1.0, None, 4.0], "one": [3.0], "none": [None, None], "number": 2.0})
    (drawn,) = bars(run)
    assert (drawn.title, [(bar.text, bar.share) for bar in drawn.bars]) == (
        "a",
        [("1", 25.0), ("-", 0.0), ("4", 100.0)],
    )


def test_curves_are_scaled_and_what_is_none_is_left_out(told):
    """A wide range of x is drawn logarithmically; y begins at 0."""
    run = run_of("x", Verdict.PASS, facts={"curves": [SWEEP, {**SWEEP, "y": [1, 2]}, "no curve", None]})
    (curve,) = curves(run)
    points = [tuple(map(float, point.split(","))) for point in curve.points.split()]
    assert points[0][0] == 0
    assert points[-1] == (640.0, 0.0)
    assert points[1][0] == pytest.approx(640 * 7 / 17, abs=0.1)
    assert curve.x_ends == ("8", "1.04858e+06")
    assert curve.y_ticks == [(200.0, "0"), (100.0, "6.25"), (0.0, "12.5")]
    assert curves(run_of("x", Verdict.PASS, facts={"curves": 3})) == []


def test_the_report_is_written_in_three_forms(told, tmp_path):
    """And nothing half-written is left behind."""
    files.make_ready(tmp_path / "new" / "reports", "monday")
    written = files.write(told, tmp_path / "new" / "reports", "monday")
    assert [path.rpartition("/")[2] for path in written] == ["monday.json", "monday.xml", "monday.html"]
    assert sorted(path.name for path in (tmp_path / "new" / "reports").iterdir()) == [
        "monday.html",
        "monday.json",
        "monday.xml",
    ]
    assert json.loads((tmp_path / "new" / "reports" / "monday.json").read_text())["suite"] == "quick"


def test_what_cannot_be_written_leaves_nothing_behind(told, tmp_path):
    """Here a directory has the place of a file."""
    (tmp_path / "report.json" / "x").mkdir(parents=True)
    with pytest.raises(Unavailable, match=r"cannot write the report to .*report.json"):
        files.write(told, tmp_path, "report")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", "..", ".hidden"])
def test_a_report_name_that_leads_elsewhere_is_refused(tmp_path, name):
    """It is a plain file name."""
    with pytest.raises(Refused, match="--report-name"):
        files.make_ready(tmp_path, name)


def test_a_directory_that_cannot_be_made_is_told_before_the_work(tmp_path):
    """Here a file is in its way."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"cannot write the report to .*file"):
        files.make_ready(tmp_path / "file" / "reports", "report")


def test_a_name_that_no_file_can_have_is_told_before_the_work(tmp_path):
    """What can be written is found out by writing, and leaves nothing behind."""
    with pytest.raises(Unavailable, match="File name too long"):
        files.make_ready(tmp_path, "x" * 300)
    files.make_ready(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []


def test_the_terminal_shows_sections_verdicts_and_findings(told, capsys):
    """With several nodes each line says whose it is; what was measured is shown only when asked for."""
    for verbose in (False, True):
        shown = terminal.TerminalPrinter(verbose=verbose)
        for step in told.steps:
            shown.end(step)
        terminal.print_result(told)
        out = capsys.readouterr().out
        assert "  ERROR nvml.too_hot on device 1: 91 <degrees> (RESET_GPU)\n" in out
        assert "  gpu02: UNKNOWN run.raised" in out
        assert ("tflops = 1, 2" in out) == ("gpu01: # size <B>" in out) == verbose
        *_, verdict, note = out.splitlines()
        assert verdict == "quick: FAIL (simulated devices), 2 nodes, 12.2 s"
        assert note.startswith("No GPU was tested on gpu02: none was found there")
    assert "\nCause: too hot GPU1: nvml.too_hot; reset the GPU; 91 <degrees>\n" in out
    assert note in page(told)


def test_the_cause_names_the_gpu_and_counts_the_others(told):
    """It is what a scheduler's drain says. Where nothing has failed there is none."""
    inventory = {"gpu01": Inventory(devices=(Device(index=1, uuid="GPU-5c1d", model="H100"),))}
    lost = Finding(code="nvml.xid", summary="XID 79, off\nthe bus", severity=Severity.ERROR, evidence={"xid": 79})
    steps = [step_report("ENV", "nvml", "x", [run_of("nvml", Verdict.FAIL, NOTE, HOT, lost)])]
    said = report("quick", steps, inventory, 1000.0, 1.0).cause
    assert said == "too hot GPU1: nvml.too_hot; reset the GPU; GPU-5c1d; 91 <degrees>; +1 more: XID 79"
    assert told.model_copy(update={"steps": told.steps[1:]}).cause == ""
