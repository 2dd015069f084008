"""Computes the plots of a report's page. Pure.

Bars compare the devices of a node. A check puts curves into its facts as `curves`: each with `title`, `x_label`,
`y_label`, and the lists `x` and `y` of the same length.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field, JsonValue, ValidationError

from muster.model import Data, Run
from muster.units import metric_text, unit_of

WIDTH, HEIGHT = 640, 200
"""Size of a curve's plot, in its own units."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One device. `share` is relative to the longest bar, in per cent."""

    label: str
    text: str
    share: float


@dataclass(frozen=True, slots=True)
class Bars:
    """A metric of every device of a node."""

    title: str
    bars: tuple[Bar, ...]


class Curve(Data):
    """A curve of a check. Its x axis is logarithmic if it spans more than two decades."""

    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...] = Field(min_length=2)
    y: tuple[float, ...] = Field(min_length=2)

    @property
    def points(self) -> str:
        """The curve as the points of an SVG line; y begins at 0."""
        across = _scaled(self.x, WIDTH)
        down = [HEIGHT * (1 - max(y, 0.0) / self._top) for y in self.y]
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))

    @property
    def x_ends(self) -> tuple[str, str]:
        """Smallest and largest x, as text."""
        return metric_text(min(self.x)), metric_text(max(self.x))

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """Grid lines at 0, half way and the largest y: the position of each, and its value."""
        return [(HEIGHT * (1 - share), metric_text(share * self._top)) for share in (0.0, 0.5, 1.0)]

    @property
    def _top(self) -> float:
        return max(*self.y, 0.0) or 1.0


def bars(run: Run) -> list[Bars]:
    """The metrics of `run` that have a number for each of several devices."""
    found = []
    for name, values in run.metrics.items():
        if isinstance(values, list) and len(values) > 1 and any(values):
            longest = max(abs(value) for value in values if value is not None)
            drawn = (
                Bar(f"device {index}", metric_text(value), 100 * abs(value or 0.0) / longest)
                for index, value in enumerate(values)
            )
            unit = unit_of(name)
            found.append(Bars(f"{name} ({unit})" if unit else name, tuple(drawn)))
    return found


def curves(run: Run) -> list[Curve]:
    """The curves in the facts of `run`; values that are not valid curves are left out."""
    given = run.facts.get("curves")
    return [curve for one in (given if isinstance(given, list) else []) if (curve := _curve(one))]


def _curve(given: JsonValue) -> Curve | None:
    try:
        curve = Curve.model_validate(given)
    except ValidationError:
        return None
    return curve if len(curve.x) == len(curve.y) else None


def _scaled(values: Sequence[float], width: float) -> list[float]:
    if min(values) > 0 and max(values) / min(values) > 100:
        values = [math.log(value) for value in values]
    low, high = min(values), max(values)
    return [width * (value - low) / ((high - low) or 1.0) for value in values]
