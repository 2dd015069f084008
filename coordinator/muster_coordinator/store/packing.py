"""Rows of quiet runs to blocks, and blocks to blocks of summaries. Pure, but for counting what is damaged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.wire.scheduled_runs import scheduled_id
from muster_coordinator.store.quiet_rows import NumbersReader
from muster_coordinator.store.rows import Unread
from muster_coordinator.store.runs_view import full_block, summaries_in
from muster_coordinator.store.series import (
    FULL,
    QuietNumbers,
    metric_names,
    packed_runs,
    packed_summaries,
)
from muster_coordinator.store.summaries import HOUR_S, Summary, joined, params_key

FIVE_MINUTES_S = 300

DatabaseRow = Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class ResolutionStep:
    """Blocks of the resolution `source_s` become summaries of `target_s`, those of `span_s` in one block."""

    source_s: int
    target_s: int
    span_s: int


TO_MINUTES = ResolutionStep(FULL, FIVE_MINUTES_S, 6 * HOUR_S)
TO_HOURS = ResolutionStep(FIVE_MINUTES_S, HOUR_S, 24 * HOUR_S)


def whole_span(at: float, span_s: float) -> float:
    """The beginning of the hour, or of another span, that a time is in."""
    return at // span_s * span_s


def block_of(summaries: Sequence[Summary], resolution_s: int) -> dict[str, Any]:
    """The row of a block of summaries of one check with the same parameters, in the order of their start."""
    times, body = packed_summaries(summaries)
    return {
        "node": summaries[0].node,
        "check": summaries[0].check,
        "verdict": None,
        "resolution_s": resolution_s,
        "since": summaries[0].started_at,
        "until": summaries[-1].started_at,
        "count": len(summaries),
        "key": None,
        "metrics": metric_names({metric for each in summaries for metric in each.metrics}),
        "times": times,
        "body": body,
    }


def hourly_blocks(summaries: Iterable[Summary]) -> list[dict[str, Any]]:
    """The rows of hourly summaries of a node, those of a day in one block."""
    return _blocks(summaries, TO_HOURS)


def packed_rows(
    rows: Sequence[DatabaseRow], bases: Mapping[str, Mapping[str, Any]], unread: Unread
) -> tuple[list[Any], list[DatabaseRow]]:
    """The blocks of these rows, and the rows that are in them: without those that cannot be read.

    Nor can a row if the run that it is like is not in `bases`.
    """
    alike: defaultdict[tuple[Any, ...], list[DatabaseRow]] = defaultdict(list)
    for row in rows:
        alike[row["check"], row["base"], row["key"], whole_span(row["started_at"], HOUR_S)].append(row)
    blocks, packed = [], []
    for (_, base, *_), same in alike.items():
        numbers_of = NumbersReader(bases[base]).read if base in bases else _without_base
        read = [
            (row, numbers)
            for row in same
            for numbers in unread.leave_out("quiet_runs", [(scheduled_id(row["key"], row["seq"]), row)], numbers_of)
        ]
        if read:
            packed += [row for row, _ in read]
            blocks.append(_block_of_runs([row for row, _ in read], bases[base], [numbers for _, numbers in read]))
    return blocks, packed


def _without_base(row: DatabaseRow) -> QuietNumbers:
    raise ValueError(f"the run {row['base']} that it is like cannot be read")


def _block_of_runs(
    rows: Sequence[DatabaseRow], base: Mapping[str, Any], runs: Sequence[QuietNumbers]
) -> dict[str, Any]:
    times, body = packed_runs(base, runs)
    return {
        "node": rows[0]["node"],
        "check": rows[0]["check"],
        "verdict": rows[0]["verdict"],
        "resolution_s": FULL,
        "since": rows[0]["started_at"],
        "until": rows[-1]["started_at"],
        "count": len(rows),
        "key": rows[0]["key"],
        "metrics": metric_names(base["metrics"]),
        "times": times,
        "body": body,
    }


def downsampled(
    rows: Sequence[DatabaseRow], level: ResolutionStep, unread: Unread
) -> tuple[list[dict[str, Any]], list[DatabaseRow]]:
    """The blocks of summaries, and the rows that are in them: without those that cannot be read."""
    used, summaries = [], []
    for row in rows:
        for found in unread.leave_out("series", [(row["id"], row)], lambda row: _summaries(row, level)):
            used.append(row)
            summaries += found
    return _blocks(summaries, level), used


def _summaries(row: DatabaseRow, level: ResolutionStep) -> list[Summary]:
    return full_block(row).summaries(level.target_s) if level.source_s == FULL else summaries_in(row)


def _blocks(summaries: Iterable[Summary], level: ResolutionStep) -> list[dict[str, Any]]:
    alike: defaultdict[tuple[str, str, int], list[Summary]] = defaultdict(list)
    for each in summaries:
        alike[each.check, params_key(each.params), int(each.started_at // level.span_s)].append(each)
    return [block_of(joined(same, level.target_s), level.target_s) for same in alike.values()]
