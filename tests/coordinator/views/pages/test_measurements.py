"""The charts of a node's page: which there are, in which order, and what each says."""

import json

from tests.cases import cases
from tests.coordinator.views.pages.fleet_rows import NOW, found, view

from muster.check import Worse
from muster.model import Device, Finding, Run, Severity, Verdict
from muster.references import Origin, Reference
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.history import MetricFigures
from muster_coordinator.views.pages.chart_range import ChartRange
from muster_coordinator.views.pages.measurements import NodeMeasurements, measurements

GPUS = tuple(Device(index=index, uuid=f"GPU-{index}", model="H100") for index in range(2))
BUSY = Finding(code="run.busy", summary="in use", severity=Severity.SKIPPED)
ROW = Reference(check="gemm", metric="tflops", fail_below=556, warn_below=570, source="acceptance", unit="TFLOP/s")


def run(check="gemm", verdict=Verdict.PASS, *, ago=60.0, **more):
    return Run(id="r", node="n1", check=check, verdict=verdict, started_at=NOW - ago, duration_s=1.0, **more)


def figures(least=1.0, median=2.0, most=3.0):
    return MetricFigures(count=9, least=least, median=median, most=most)


def baseline(**more):
    whole = BaselineView(
        id="b",
        check="gemm",
        metric="tflops",
        worse=Worse.LOWER,
        when={},
        devices=64,
        nodes=8,
        centre=600.0,
        low=590.0,
        high=610.0,
        anchor=None,
        out_of_line=(),
        shift=None,
    )
    return whole.model_copy(update=more)


def section(*runs, figures=None, findings=(), references=(), baselines=(), refused="", devices=GPUS):
    by_check: dict[str, list[Run]] = {}
    for each in runs:
        by_check.setdefault(each.check, []).append(each)
    node = view("n1", devices=devices, findings=findings, checks=dict.fromkeys(by_check, Verdict.PASS))
    measured = NodeMeasurements(range=ChartRange.DAY, at=NOW, runs=by_check, figures=figures or {}, refused=refused)
    return measurements(node, measured, references, baselines)


def only_chart(*args, **more):
    (chart,) = section(*args, **more).charts.items
    return chart


def test_a_chart_has_the_numbers_of_each_device():
    """With its UUID; a device that is gone is no GPU, and the node itself comes first."""
    past = {("gemm", "tflops"): {"1": figures(590.0, 600.0, 610.5), "7": figures(), "": figures()}}
    chart = only_chart(run(metrics={"tflops": [601.25, None]}), figures=past)
    assert [(row.label, row.uuid, row.latest, row.median, row.least, row.most) for row in chart.rows] == [
        ("Node", "", "-", "2 TFLOP/s", "1 TFLOP/s", "3 TFLOP/s"),
        ("GPU 0", "GPU-0", "601.25 TFLOP/s", "-", "-", "-"),
        ("GPU 1", "GPU-1", "-", "600 TFLOP/s", "590 TFLOP/s", "610.5 TFLOP/s"),
        ("Device 7", "", "-", "2 TFLOP/s", "1 TFLOP/s", "3 TFLOP/s"),
    ]
    assert (chart.unit, chart.empty, chart.measured_at) == ("TFLOP/s", "", NOW - 60)


def test_metrics_with_a_finding_come_first():
    """Then the others of their check, and the other checks by name."""
    slow = found(device=1, summary="tflops 548 TFLOP/s is below 556")
    runs = [run(check, metrics={"power_w": 1.0, "tflops": 1.0}) for check in ("acme", "gemm")]
    charts = section(*runs, findings=(slow,)).charts.items
    names = [(chart.check, chart.metric, chart.is_found) for chart in charts]
    assert names[:2] == [("gemm", "tflops", True), ("gemm", "power_w", False)]
    assert names[2:] == [("acme", "power_w", False), ("acme", "tflops", False)]


@cases(
    "finding",
    [
        {"summary": "tflops 548 is below 556", "device": 1},
        {"summary": "slow", "device": 1, "evidence": {"metric": "tflops"}},
    ],
)
def test_the_device_with_the_finding_is_marked(finding):
    """Whether the evidence or the summary names the metric."""
    chart = only_chart(run(metrics={"tflops": [1.0, 2.0]}), findings=(found(**finding),))
    assert [row.is_found for row in chart.rows] == [False, True]
    assert json.loads(chart.data)["lines"]["1"] == {"label": "GPU 1", "uuid": "GPU-1", "found": True}


def test_the_reference_that_applies_has_its_source():
    """An operator's wins over a shipped one; a row whose conditions are not met does not apply."""
    shipped = ROW.model_copy(update={"origin": Origin.SHIPPED, "source": "data sheet"})
    other = ROW.model_copy(update={"when": {"gpu_model": "A100"}, "source": "another model"})
    chart = only_chart(run(metrics={"tflops": 1.0}, facts={"gpu_model": "H100"}), references=[shipped, ROW, other])
    assert [bound.text for bound in chart.bounds] == ["fail below 556 TFLOP/s", "warn below 570 TFLOP/s"]
    assert (chart.source, chart.origin) == ("acceptance", "set by an operator")
    named = ROW.model_copy(update={"set_by": "ann"})
    assert only_chart(run(metrics={"tflops": 1.0}), references=[named]).origin == "set by ann"


def test_a_reference_of_the_check_itself_is_known_from_its_finding():
    """The coordinator has only its own rows and the operator's."""
    evidence = {"value": 548.0, "bound": 556.0, "source": "the plugin's author"}
    chart = only_chart(
        run(metrics={"tflops": 548.0}), findings=(found(summary="tflops 548 is below 556", evidence=evidence),)
    )
    assert [bound.text for bound in chart.bounds] == ["at least 556 TFLOP/s"]
    assert (chart.source, chart.origin) == ("the plugin's author", "as the check said")


@cases(
    "of_fleet, why",
    [
        ([], "this metric is not compared over the fleet"),
        ([{"nodes": 1}], "no other node measures it under the same conditions"),
        ([{"centre": None, "low": None, "high": None}], "no device has measured it three times yet"),
        ([{}], ""),
    ],
)
def test_a_band_says_what_it_is_or_why_there_is_none(of_fleet, why):
    """It is about more than this node."""
    chart = only_chart(run(metrics={"tflops": 1.0}), baselines=[baseline(**each) for each in of_fleet])
    assert chart.why_no_band == why
    if not why:
        assert chart.band is not None
        assert chart.band.text == (
            "590 to 610 TFLOP/s, median 600: nine of ten of 64 devices of 8 nodes under the same conditions"
        )
        assert json.loads(chart.data)["band"] == {"low": 590.0, "centre": 600.0, "high": 610.0}


@cases(
    "metrics, ago, refused, empty",
    [
        ({"tflops": [1.0]}, 2 * 86_400, "", "Nothing was measured in this time. The last run was 2 d ago."),
        ({"tflops": [None]}, 60, "", "The last run of gemm gave no number, 60 s ago."),
        ({"tflops": [1.0]}, 60, "too many runs", ""),
    ],
)
def test_an_empty_chart_says_why(metrics, ago, refused, empty):
    """Unless nobody knows: the figures could not be read."""
    assert only_chart(run(metrics=metrics, ago=ago), refused=refused).empty == empty


def test_a_run_that_was_skipped_does_not_hide_the_measurement_before():
    """The chart shows the last that was measured."""
    chart = only_chart(run(verdict=Verdict.SKIPPED), run(ago=600, metrics={"tflops": 1.0}))
    assert (chart.rows[0].latest, chart.measured_at) == ("1 TFLOP/s", NOW - 600)


@cases(
    "runs, why",
    [
        ([run(metrics={}, ago=300)], "ran 5 min ago and measured no number"),
        (
            [run(verdict=Verdict.SKIPPED, findings=(BUSY,))],
            "was skipped 60 s ago: in use",
        ),
        ([], "has not run on this node"),
    ],
)
def test_a_check_without_a_number_says_why(runs, why):
    """It has no chart."""
    node = view("n1", checks={"gemm": Verdict.SKIPPED})
    measured = NodeMeasurements(range=ChartRange.DAY, at=NOW, runs={"gemm": runs}, figures={})
    made = measurements(node, measured, (), ())
    assert (made.charts.items, made.unmeasured) == ((), (("gemm", why),))


def test_a_metric_that_is_no_longer_measured_keeps_its_chart():
    """While there is something in the time."""
    charts = section(run(metrics={"new": 1.0}), figures={("gemm", "old"): {"": figures()}}).charts.items
    assert [(chart.metric, chart.rows[0].latest) for chart in charts] == [("new", "1"), ("old", "-")]


def test_no_range_has_more_points_than_a_request_may_have():
    """Of the history of the API, of which a page has at most 1,000."""
    assert [each.words for each in ChartRange] == ["24 hours", "7 days", "30 days"]
    assert max(each.seconds / each.step_s for each in ChartRange) <= 360
