"""References as text for people."""

import textwrap
from collections.abc import Iterator, Sequence
from itertools import chain

from muster.conditions import in_words
from muster.references import Considered, Reference
from muster.table import table
from muster.terminal import for_terminal
from muster.units import unit_of, with_unit
from muster_coordinator.references.explanation import ExplainedMetric, ExplainedRun

_LEAST_WIDTHS = {"METRIC": 24, "BOUNDS": 20}
"""Minimum widths of columns that are cut."""

_INDENT = "    "


def reference_list(rows: Sequence[Reference], width: int | None) -> str:
    """A line for each row. Within a `width`, its conditions are on lines of their own below it."""
    if width is None:
        long = ((row.check, row.metric, _conditions(row) or "-", _bounds(row), _origin(row)) for row in rows)
        return table(("CHECK", "METRIC", "WHEN", "BOUNDS", "ORIGIN"), long)
    short = ((row.check, row.metric, _bounds(row), _origin(row)) for row in rows)
    text = table(("CHECK", "METRIC", "BOUNDS", "ORIGIN"), short, width=width, shrinkable=_LEAST_WIDTHS)
    header, *lines = text.splitlines()
    below = ((line, *_when(row, width)) for line, row in zip(lines, rows, strict=True))
    return "\n".join([header, *chain.from_iterable(below)])


def _when(row: Reference, width: int) -> list[str]:
    text = for_terminal(_conditions(row))
    return textwrap.wrap(f"when {text}", width, initial_indent=_INDENT, subsequent_indent=_INDENT) if text else []


def described(row: Reference) -> str:
    """All fields of one row."""
    lines = [
        f"{row.check} {row.metric}, {_origin(row)}",
        f"  when    {_conditions(row) or 'always'}",
        f"  bounds  {_bounds(row)}",
        f"  source  {row.source}",
    ]
    return "\n".join(lines)


def explanation(run: ExplainedRun) -> str:
    """For each metric, the row that applies and the rows that do not, each with its reason."""
    lines = [f"{run.check} on {run.node}: {run.verdict} (run {run.run})"]
    for metric in run.metrics:
        lines += _metric_lines(metric)
    if run.without_reference:
        lines.append(f"  without a reference: {', '.join(run.without_reference)}")
    return "\n".join(lines)


def _metric_lines(metric: ExplainedMetric) -> Iterator[str]:
    yield f"  {metric.metric}: {_value(metric)}"
    if not any(item.applies for item in metric.considered):
        yield "    no reference applies"
    for item in metric.considered:
        yield from _considered_lines(item)


def _considered_lines(item: Considered) -> Iterator[str]:
    row = item.reference
    when = f" when {_conditions(row)}" if row.when else ""
    yield f"    {'applies:' if item.applies else 'not:    '} {_origin(row)}, {_bounds(row)}{when}"
    yield f"             {item.reason}"
    if item.applies:
        yield f"             source: {row.source}"


def _conditions(row: Reference) -> str:
    return ", ".join(f"{name}: {in_words(condition)}" for name, condition in row.when.items())


def _origin(row: Reference) -> str:
    return row.origin if row.set_by is None else f"{row.origin} {row.set_by}"


def _bounds(row: Reference) -> str:
    bounds = ", ".join(f"{name.replace('_', ' ')} {bound:.10g}" for name, bound in row.bounds.items())
    return f"{bounds} {row.unit or unit_of(row.metric)}".rstrip()


def _value(metric: ExplainedMetric) -> str:
    values = metric.value if isinstance(metric.value, list) else [metric.value]
    text = ", ".join("not measured" if value is None else f"{value:.6g}" for value in values)
    return with_unit(text, metric.metric) if any(value is not None for value in values) else text
