"""Calculates figures from the losses and times of a training. Pure; `training` and `training_ddp` share it."""

import math
import statistics
from collections.abc import Sequence

from pydantic import JsonValue

LAST_LOSSES = 8
"""Number of final losses that are averaged: the number of batches, because some are harder than others."""

MOST_POINTS = 100
"""Points of a curve: enough for a plot, and few enough to send and store with every run."""

DRIFT_AFTER_S = 5.0
"""Seconds of measured steps below which there is no drift: heat and throttling take seconds to show.

Fifty steps of an mlp take 0.1 s of an H200, and one step is so short that the host decides how long it takes: a healthy
one drifted by 30 % there (2026-11-27).
"""

SPREAD_FROM_S = 1.0
"""Seconds of measured steps below which a training is too short to be compared with its repetition.

An interruption of the host by 50 ms is 5 % of a second, and 5 % is what acceptance playbooks allow.
"""

Figures = dict[str, float | None]


def loss_figures(losses: Sequence[float]) -> Figures:
    """The loss of the first step, the mean of the last eight, and last over first; None for values not finite."""
    first, last = losses[0], statistics.fmean(losses[-LAST_LOSSES:])
    return {
        "loss_first": _finite(first),
        "loss_last": _finite(last),
        "loss_ratio": _finite(last / first) if first else None,
    }


def time_figures(seconds: Sequence[float], total_s: float, samples: int) -> Figures:
    """Figures of the measured steps. `samples` is the number of samples of all devices in `total_s` of wall time.

    The drift is None if the steps took less than `DRIFT_AFTER_S`.
    """
    return {
        "total_time_s": total_s,
        "average_step_time_s": total_s / len(seconds),
        "median_step_time_s": statistics.median(seconds),
        "p99_step_time_s": sorted(seconds)[math.ceil(0.99 * len(seconds)) - 1],
        "step_time_drift": _drift(seconds) if total_s >= DRIFT_AFTER_S else None,
        "throughput_samples_per_s": samples / total_s,
        "total_samples": float(samples),
    }


def spread(total_s: Sequence[float]) -> float | None:
    """How much slower the slowest of equal trainings was than the fastest, as a share of the fastest speed.

    None for a single training, and if one took less than `SPREAD_FROM_S`.
    """
    fastest, slowest = min(total_s), max(total_s)
    return 1 - fastest / slowest if len(total_s) > 1 and fastest >= SPREAD_FROM_S else None


def _drift(seconds: Sequence[float]) -> float:
    """Increase of the median step time from the first quarter to the last, as a share of the first."""
    quarter = max(1, len(seconds) // 4)
    return statistics.median(seconds[-quarter:]) / statistics.median(seconds[:quarter]) - 1


def curves(losses: Sequence[Sequence[float]], seconds: Sequence[Sequence[float]]) -> list[JsonValue]:
    """Curves for reports, of one device or several: the median loss and the median time of each step."""
    drawn = [_curve("loss", "step", "loss", losses), _curve("time of a step", "measured step", "s", seconds)]
    return [curve for curve in drawn if curve is not None]


def _curve(title: str, x_label: str, y_label: str, series: Sequence[Sequence[float]]) -> JsonValue:
    """A curve; None if there are too few values. A loss that is NaN has no point."""
    medians = [statistics.median(values) for values in zip(*series, strict=True)]
    apart = math.ceil(len(medians) / MOST_POINTS)
    points = [(step, value) for step, value in enumerate(medians, 1) if step % apart == 0 and math.isfinite(value)]
    if len(points) < 2:
        return None
    x, y = zip(*points, strict=True)
    return {"title": title, "x_label": x_label, "y_label": y_label, "x": [*x], "y": [*y]}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
