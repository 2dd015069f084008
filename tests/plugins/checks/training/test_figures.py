"""The figures of a training."""

import math

import pytest
from tests.cases import cases

from muster_plugins.checks.training.figures import (
    DRIFT_AFTER_S,
    MOST_POINTS,
    SPREAD_FROM_S,
    curves,
    loss_figures,
    spread,
    time_figures,
)
from muster_plugins.checks.training.utilisation import BusySample, Stretch, busy_percent


@cases(
    ("losses", "expected"),
    [
        ([2.0] + [1.0] * 8, {"loss_first": 2.0, "loss_last": 1.0, "loss_ratio": 0.5}),
        ([2.0, 1.0], {"loss_first": 2.0, "loss_last": 1.5, "loss_ratio": 0.75}),
        ([2.0, math.nan], {"loss_first": 2.0, "loss_last": None, "loss_ratio": None}),
        ([math.inf, 1.0], {"loss_first": None, "loss_last": None, "loss_ratio": None}),
        ([0.0, 1.0], {"loss_first": 0.0, "loss_last": 0.5, "loss_ratio": None}),
    ],
)
def test_losses(losses, expected):
    """The last loss is a mean, as some batches are harder than others; what is not finite is no number."""
    assert loss_figures(losses) == expected


def test_samples_are_counted_once():
    """Samples per second are all samples over the wall time, not a rate that is multiplied again."""
    figures = time_figures([0.5] * 4, total_s=2.0, samples=64)
    assert figures["throughput_samples_per_s"] == 32
    assert (figures["total_time_s"], figures["average_step_time_s"], figures["total_samples"]) == (2.0, 0.5, 64)


def test_step_times():
    """The 99th percentile is a time that was measured, and drift compares the last quarter with the first."""
    figures = time_figures([1.0] * 50 + [1.5] * 49 + [9.0], total_s=200.0, samples=1)
    assert figures["median_step_time_s"] == 1.25
    assert figures["p99_step_time_s"] == 1.5
    assert figures["step_time_drift"] == 0.5


@cases(
    ("total_s", "expected"),
    [
        ([10.0, 8.0, 9.0], pytest.approx(0.2)),
        ([SPREAD_FROM_S] * 3, 0.0),
        ([10.0], None),
        ([10.0, 0.9 * SPREAD_FROM_S], None),
    ],
)
def test_spread(total_s, expected):
    """It is about the slowest and the fastest of several trainings; one that was over at once says nothing."""
    assert spread(total_s) == expected


@cases(
    ("stretches", "expected"),
    [
        ([Stretch(0.0, 3.5)], 95.0),
        ([Stretch(0.0, 2.5), Stretch(6.0, 8.5)], 60.0),
        ([Stretch(0.0, 0.9)], None),
        ([], None),
    ],
)
def test_only_what_is_about_measured_steps_alone_counts_as_utilisation(stretches, expected):
    """NVML's values are about up to the second before, so those of the first second are about something else, too."""
    samples = [BusySample(at, percent) for at, percent in [(0.5, 0), (1, 90), (2, 90), (3, 105), (5, 0), (7.5, 0)]]
    assert busy_percent(samples, stretches) == expected


def test_steps_of_a_moment_have_no_drift():
    """They took less time than heat needs to show, and each is so short that the host decides how long it takes."""
    seconds = [0.002] * 25 + [0.003] * 25
    assert time_figures(seconds, total_s=0.125, samples=1)["step_time_drift"] is None
    assert time_figures(seconds, total_s=DRIFT_AFTER_S, samples=1)["step_time_drift"] == pytest.approx(0.5)


def test_reports_draw_the_loss_and_the_time_of_a_step():
    """By step, the median of all devices."""
    loss, time = curves([[4.0, 2.0, 1.0], [6.0, 2.0, 3.0]], [[0.5, 0.25], [1.5, 0.25]])
    assert loss == {"title": "loss", "x_label": "step", "y_label": "loss", "x": [1, 2, 3], "y": [5.0, 2.0, 2.0]}
    assert time == {
        "title": "time of a step",
        "x_label": "measured step",
        "y_label": "s",
        "x": [1, 2],
        "y": [1.0, 0.25],
    }


def test_a_curve_has_as_many_points_as_can_be_seen():
    """They go into every stored run; what is not finite has none, and a single point is no curve."""
    (loss,) = curves([[float(step) for step in range(2_000)]], [[1.0]])
    assert isinstance(loss, dict)
    assert isinstance(loss["x"], list)
    assert (len(loss["x"]), loss["x"][-1]) == (MOST_POINTS, 2_000)
    assert curves([[1.0, math.nan, math.inf]], []) == []
    assert curves([], []) == []
