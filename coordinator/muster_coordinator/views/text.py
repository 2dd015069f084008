"""The fleet's history and baselines as text for people."""

from collections.abc import Iterable

from muster.instants import instant_text
from muster.table import table
from muster.units import unit_of, with_unit
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.model.history import HistoryPoint


def history_table(points: Iterable[HistoryPoint], metric: str) -> str:
    """A line for every run or hour: the values of each device; for several runs, with the range."""
    unit = unit_of(metric)
    header = ("TIME", "CHECK", "VERDICTS", f"VALUES ({unit})" if unit else "VALUES")
    return table(header, map(_history_row, points))


def _history_row(point: HistoryPoint) -> tuple[str, ...]:
    verdicts = [f"{verdict}" if count == 1 else f"{count} x {verdict}" for verdict, count in point.verdicts.items()]
    values = [_history_value(point, name) for name in point.values]
    return instant_text(point.at), point.check, ", ".join(verdicts), "  ".join(values)


def _history_value(point: HistoryPoint, name: str) -> str:
    value = f"{point.values[name]:.4g}"
    if point.least is not None and point.most is not None and point.least[name] != point.most[name]:
        value += f" ({point.least[name]:.4g} to {point.most[name]:.4g})"
    return f"{name}: {value}" if name else value


def baseline_table(baselines: Iterable[BaselineView]) -> str:
    """A line for every baseline."""
    header = ("BASELINE", "CHECK", "METRIC", "NORMAL", "NOW", "DEVICES", "NODES", "OUT OF LINE", "SHIFT")
    return table(header, map(_baseline_row, baselines))


def _baseline_row(baseline: BaselineView) -> tuple[str, ...]:
    anchor, metric = baseline.anchor, baseline.metric
    normal = "-" if anchor is None else with_unit(f"{anchor.centre:.4g} +- {anchor.spread:.2g}", metric)
    now = "-" if baseline.centre is None else with_unit(f"{baseline.centre:.4g}", metric)
    shift = "-" if baseline.shift is None else f"since {instant_text(baseline.shift.since)}"
    counts = (str(baseline.devices), str(baseline.nodes), str(len(baseline.out_of_line)))
    return baseline.id, baseline.check, metric, normal, now, *counts, shift
