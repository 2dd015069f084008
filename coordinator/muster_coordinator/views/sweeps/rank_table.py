"""A sweep as CSV: one line for each rank of each group."""

import csv
import io
from collections.abc import Iterable, Iterator

from muster.model import Metric
from muster_coordinator.model.sweep_records import MemberRecord, SweepRecord

_COLUMNS = ("sweep", "round", "group", "ending", "group_verdict", "objective", "node", "rank", "verdict")

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Spreadsheets run a text that begins with one of these as a formula (OWASP, CSV injection)."""


def rank_table(record: SweepRecord) -> str:
    """The complete record as CSV (RFC 4180), with a header and a column for each metric of any rank.

    A node whose ranks reported nothing has one line without a rank. The numbers of a metric for each device are
    separated by spaces.
    """
    metrics = sorted({name for place in _places(record) for rank in place.measured for name in rank})
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(map(_safe, (*_COLUMNS, *metrics)))
    for stage in record.rounds:
        for group in stage.groups:
            common = (record.id, stage.number, group.id, group.ending, group.verdict, group.objective)
            for place in group.places:
                for rank, measured in _ranks(place):
                    values = (_number(measured.get(name)) for name in metrics)
                    rows.writerow(map(_safe, (*common, place.node, rank, place.verdict, *values)))
    return text.getvalue()


def _places(record: SweepRecord) -> Iterable[MemberRecord]:
    return (place for stage in record.rounds for group in stage.groups for place in group.places)


def _ranks(place: MemberRecord) -> Iterator[tuple[int | None, dict[str, Metric]]]:
    if not place.measured:
        yield None, {}
    yield from enumerate(place.measured, place.first_rank or 0)


def _number(metric: Metric) -> float | str | None:
    if isinstance(metric, list):
        return " ".join("" if number is None else repr(number) for number in metric)
    return metric


def _safe(value: object) -> object:
    """The value as a cell that no spreadsheet runs: texts that look like a formula get a quote in front."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
