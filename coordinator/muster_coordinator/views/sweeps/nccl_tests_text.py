"""A sweep as text like that of nccl-tests: for each group its ranks and a table.

A check of collectives reports its results by message size, and the table has a row for each, as the first rank saw it.
Of any other check with a bandwidth there is one row, for the requested size: it has the mean over the ranks, the
default of nccl-tests, and the sum of wrong elements. What is not known is N/A.
"""

import json
import math
import re
import statistics
from collections.abc import Iterator

from muster.model import Json
from muster.nccl_tests_table import columns, heading_lines, summary_lines, table_lines, time_text
from muster.terminal import for_terminal
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord
from muster_coordinator.views.sweeps.amounts import numbers
from muster_coordinator.views.sweeps.naming import blame_lines

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
    by_size = next((place.by_size for place in group.places if place.by_size), ())
    if by_size:
        yield from table_lines(by_size)
        yield from summary_lines(by_size)
        return
    busbw = _mean(group, "busbw_gbps")
    if busbw is None:
        yield "# no bandwidth was reported"
        return
    size, algbw, wrong = _asked_size(params), _mean(group, "algbw_gbps"), _values(group, "wrong_elements")
    time_us = _UNKNOWN if size is None or not algbw else time_text(size / algbw / 1e3)
    speeds = (_UNKNOWN if algbw is None else f"{algbw:.2f}", f"{busbw:.2f}", f"{sum(wrong):.0f}" if wrong else _UNKNOWN)
    yield from heading_lines()
    yield columns((str(size or _UNKNOWN), *[_UNKNOWN] * 4, time_us, *speeds, *[_UNKNOWN] * 4))
    if wrong:
        yield f"# Out of bounds values : {sum(wrong):.0f} {'FAILED' if any(wrong) else 'OK'}"
    yield f"# Avg bus bandwidth    : {busbw:g}"


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
