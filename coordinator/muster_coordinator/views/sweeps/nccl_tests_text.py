"""A sweep as text like that of nccl-tests: for each group its ranks and a table with one row.

Ranks report one result for all message sizes, so the row stands for the requested size. For a series of sizes, or if
the check chose the size, size and time are N/A. The row has the mean over the ranks, the default of nccl-tests. Wrong
elements are summed.
"""

import json
import math
import re
import statistics
from collections.abc import Iterator

from muster.model import Json
from muster.terminal import for_terminal
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord
from muster_coordinator.views.sweeps.amounts import numbers
from muster_coordinator.views.sweeps.naming import blame_lines

_HEADINGS = (
    ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong"),
    ("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", ""),
)

_WIDTHS = (12, 12, 8, 6, 6, 7, 6, 6, 6)

_UNKNOWN = "N/A"

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def nccl_tests_text(record: SweepRecord) -> str:
    """The complete record as text; groups in the order in which they were formed."""
    groups = [_group(record, stage.number, group) for stage in record.rounds for group in stage.groups]
    return for_terminal("\n".join(line for lines in groups for line in (*lines, "")))


def _group(record: SweepRecord, number: int, group: GroupRecord) -> Iterator[str]:
    yield f"# sweep {record.id}, round {number}, group {group.id}: {group.verdict or group.state}"
    yield f"# {record.check} {json.dumps(record.params, sort_keys=True)}"
    yield from (f"# {line}" for line in blame_lines(group.blamed))
    yield "#"
    yield "# Using devices"
    for place in group.places:
        ranks = range(place.first_rank or 0, (place.first_rank or 0) + (place.ranks or 0))
        yield from (f"#  Rank {rank:2} on {place.node:>10}" for rank in ranks)
    yield "#"
    yield from _table(group, record.params)


def _table(group: GroupRecord, params: Json) -> Iterator[str]:
    busbw = _mean(group, "busbw_gbps")
    if busbw is None:
        yield "# no bandwidth was reported"
        return
    for heading in _HEADINGS:
        yield _line("#" + heading[0].rjust(_WIDTHS[0] - 1), *heading[1:])
    size, algbw, wrong = _asked_size(params), _mean(group, "algbw_gbps"), _values(group, "wrong_elements")
    time_us = _UNKNOWN if size is None or not algbw else f"{size / algbw / 1e3:.2f}"
    labels = (str(size or _UNKNOWN), *[_UNKNOWN] * 4)
    speeds = (_UNKNOWN if algbw is None else f"{algbw:.2f}", f"{busbw:.2f}")
    yield _line(*labels, time_us, *speeds, f"{sum(wrong):.0f}" if wrong else _UNKNOWN)
    if wrong:
        yield f"# Out of bounds values : {sum(wrong):.0f} {'FAILED' if any(wrong) else 'OK'}"
    yield f"# Avg bus bandwidth    : {busbw:g}"


def _line(*columns: str) -> str:
    return "  ".join(column.rjust(width) for column, width in zip(columns, _WIDTHS, strict=True))


def _mean(group: GroupRecord, metric: str) -> float | None:
    values = _values(group, metric)
    return statistics.fmean(values) if values else None


def _values(group: GroupRecord, metric: str) -> list[float]:
    """The values that all ranks measured."""
    return [value for place in group.places for rank in place.measured for value in numbers(rank.get(metric))]


def _asked_size(params: Json) -> int | None:
    """The requested message size in bytes, with the units of nccl-tests; None if there is not exactly one."""
    found = re.fullmatch(r"(?P<number>\d{1,15}(\.\d+)?)(?P<unit>[KMG]?)", str(params.get("size_bytes")).upper())
    return None if found is None else math.floor(float(found["number"]) * _UNITS[found["unit"]])
