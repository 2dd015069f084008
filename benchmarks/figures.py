"""What a benchmark found: a table for people, JSON for programs."""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from muster.model import format_instant
from muster.table import table

SPEED_LOOP = 2_000_000

Target = tuple[Literal["<=", ">="], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number with its unit, what it was asked to be, and how it spreads."""

    what: str
    unit: str
    value: float
    target: Target | None = None
    spread: dict[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        relation, bound = self.target
        return self.value <= bound if relation == "<=" else self.value >= bound


def median_of(what: str, unit: str, samples: Sequence[float], target: Target | None = None) -> Figure:
    """The median of the samples, with how many there are, the least, the 90th and 99th percentile, and the most."""
    high = {f"p{percent}": percentile(samples, percent) for percent in (90, 99)}
    spread = {"n": len(samples), "min": min(samples), **high, "max": max(samples)}
    return Figure(what=what, unit=unit, value=statistics.median(samples), target=target, spread=spread)


def percentile(samples: Sequence[float], percent: int) -> float:
    """A percentile of the samples, such as 95, from 1 to 99. A single sample is every percentile."""
    return statistics.quantiles(samples, n=100, method="inclusive")[percent - 1] if len(samples) > 1 else samples[0]


def arguments(description: str | None) -> argparse.ArgumentParser:
    """A parser with what every benchmark understands."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    return parser


def publish(options: argparse.Namespace, figures: Sequence[Figure]) -> None:
    """Prints the table and writes the JSON. The exit code tells nothing: a missed target is a figure, no error."""
    print(table(("figure", "unit", "value", "target", "met", "spread"), map(_row, figures)))
    machine = _machine()
    print("this machine:", ", ".join(f"{name} {value}" for name, value in machine.items()))
    if options.json:
        document = _document(options, machine, figures)
        options.json.write_text(json.dumps(document, indent=2, default=str) + "\n", encoding="utf-8")


def python_speed(additions: int = SPEED_LOOP) -> float:
    """How fast this machine is now: millions of additions of a plain loop in a second of one core's time.

    Shared machines differ by a factor of two from day to day, and figures of different days compare only with this.
    """
    began = time.thread_time()
    count = 0
    for each in range(additions):
        count += each
    return additions / 1e6 / (time.thread_time() - began)


def _row(figure: Figure) -> tuple[str, ...]:
    target = "" if figure.target is None else f"{figure.target[0]} {figure.target[1]:g}"
    met = {None: "", True: "yes", False: "NO"}[figure.met]
    spread = ", ".join(f"{name} {value:.4g}" for name, value in figure.spread.items())
    return figure.what, figure.unit, f"{figure.value:.4g}", target, met, spread


def _machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_1min": os.getloadavg()[0],
        "python_speed": round(python_speed(), 1),
    }


def _document(options: argparse.Namespace, machine: dict[str, Any], figures: Sequence[Figure]) -> dict[str, Any]:
    return {
        "at": format_instant(time.time()),
        "machine": machine,
        "options": {name: value for name, value in vars(options).items() if name != "json"},
        "figures": [asdict(figure) | {"met": figure.met} for figure in figures],
    }
