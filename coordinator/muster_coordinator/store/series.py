"""Blocks of runs in full, and blocks of summaries, to and from bytes. Pure.

A block in full has runs of one check on one node that are alike (see `model.run_shape`). It holds one of them as JSON
and the numbers of all as columns, so that each run can be made again. A block of summaries has one check on one node
with the same parameters; each metric of each device has four columns: count, least, median and most.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any, NamedTuple

from muster.model import Run, Verdict
from muster.wire.scheduled_runs import scheduled_id
from muster_coordinator.model.history import MetricFigures
from muster_coordinator.model.run_shape import facts_of, metrics_of, numbers_in, split
from muster_coordinator.normal.readings import by_device
from muster_coordinator.store.columns import (
    NULL,
    Column,
    PackedColumns,
    SameText,
    head_of,
    integers_of,
    packed,
    packed_integers,
)
from muster_coordinator.store.summaries import Summary, device_name, figures_of

FULL = 0
"""The resolution of blocks with every run."""

_FIGURES = 4
_NO_FIGURES = MetricFigures(count=0, least=0.0, median=0.0, most=0.0)


class QuietNumbers(NamedTuple):
    """What a quiet run has of its own. RunTimes are in milliseconds.

    `at_ms` is its start by the coordinator's clock, `ahead_ms` is how far its node's clock was ahead. `metrics` are its
    numbers; `facts` are those in its facts, empty if these are the same as in the run that it is like.
    """

    seq: int
    at_ms: int
    ahead_ms: int
    duration_s: float
    metrics: str
    facts: str


def rebuilt(base: Mapping[str, Any], quiet: QuietNumbers, key: str) -> Run:
    """The run with these numbers; `base` is the run that it is like, as read from JSON."""
    facts = facts_of(base, split(quiet.facts)) if quiet.facts else base["facts"]
    return _run(base, key, quiet, metrics_of(base, split(quiet.metrics)), facts)


def packed_runs(base: Mapping[str, Any], runs: Sequence[QuietNumbers]) -> tuple[bytes, bytes]:
    """The times and the rest of a block in full. The runs are in the order of `at_ms`."""
    starts = numbers_in(base)
    measured = len(_metrics(base))
    facts = ",".join(starts[measured:])
    columns: list[Sequence[str]] = [[repr(run.duration_s) for run in runs], [str(run.ahead_ms) for run in runs]]
    columns += _columns([run.metrics for run in runs], measured)
    columns += _columns([run.facts or facts for run in runs], len(starts) - measured)
    body = packed({"base": base}, columns, ["0.0", "0", *starts])
    return packed_integers([[run.at_ms for run in runs], [run.seq for run in runs]]), body


def _columns(texts: Sequence[str], count: int) -> Sequence[Sequence[str]]:
    """The columns of texts that have `count` numbers each; columns of one number if all texts are the same."""
    if texts.count(texts[0]) == len(texts):
        return [(number,) for number in split(texts[0])]
    numbers = split(",".join(texts))
    if len(numbers) != count * len(texts):
        raise ValueError("has not as many numbers as the run that it is like")
    return [numbers[place::count] for place in range(count)]


class RunTimes(NamedTuple):
    """The starts in a block in milliseconds, in order, and the sequence numbers of its runs; summaries have none."""

    at_ms: Sequence[int]
    seqs: Sequence[int] = ()


def times_of(times: bytes, count: int) -> RunTimes:
    """The times of a block."""
    return RunTimes(*integers_of(times, count))


def starts_of(times: bytes, count: int) -> Sequence[int]:
    """Only the starts of a block, which take half of the time. Raises as `FullBlock.read` if the bytes are damaged."""
    return next(integers_of(times, count))


@dataclass(frozen=True)
class FullBlock:
    """A block in full. It makes its runs again one by one."""

    key: str
    times: RunTimes
    base: Mapping[str, Any]
    columns: PackedColumns

    @classmethod
    def read(cls, key: str, times: bytes, body: bytes, count: int) -> "FullBlock":
        """The block of these bytes. Raises ValueError, KeyError, TypeError or zlib.error if they are damaged."""
        head, headers, data = head_of(body)
        base = head["base"]
        columns = PackedColumns(headers, data, count, ["0.0", "0", *numbers_in(base)])
        return cls(key, times_of(times, count), base, columns)

    def run(self, row: int) -> Run:
        """The run in this row."""
        return rebuilt(self.base, self.numbers(row), self.key)

    def numbers(self, row: int) -> QuietNumbers:
        """The numbers of the run in this row."""
        duration_s, ahead_ms, *numbers = (column.text(row) for column in self.columns)
        metrics, facts = ",".join(numbers[: self._metrics]), ",".join(numbers[self._metrics :])
        at_ms, seq = self.times.at_ms[row], self.times.seqs[row]
        return QuietNumbers(seq, at_ms, int(ahead_ms), float(duration_s), metrics, facts)

    def summaries(self, resolution_s: int) -> list[Summary]:
        """The summaries of its runs, by the coordinator's clock."""
        slots = [
            slice((same := [row for row, _ in rows])[0], same[-1] + 1)
            for _, rows in groupby(enumerate(self.times.at_ms), lambda each: each[1] // (1000 * resolution_s))
        ]
        return self.in_slots(slots)

    def in_slots(self, slots: Sequence[slice], metric: str | None = None) -> list[Summary]:
        """A summary of the runs in each slot of rows, with one metric or all."""
        verdict = Verdict(self.base["verdict"])
        return [
            Summary(
                node=self.base["node"],
                check=self.base["check"],
                params=self.base["params"],
                started_at=self.times.at_ms[rows.start] / 1000,
                verdicts={verdict: rows.stop - rows.start},
                metrics=figures,
            )
            for rows, figures in zip(slots, self._figures(slots, metric), strict=True)
        ]

    @cached_property
    def _metrics(self) -> int:
        return len(_metrics(self.base))

    @cached_property
    def _devices(self) -> dict[str, dict[str, list[Column]]]:
        """The columns of each metric and device: one, unless the facts name a device twice."""
        found: dict[str, dict[str, list[Column]]] = {}
        at = 2
        for metric, value in self.base["metrics"].items():
            devices = found.setdefault(metric, {})
            for place, (device, _) in enumerate(by_device(value, self.base["facts"])):
                devices.setdefault(device_name(device), []).append(self.columns[at + place])
            at += max(1, len(value)) if isinstance(value, list) else 1
        return found

    def _figures(self, slots: Sequence[slice], wanted: str | None) -> list[dict[str, dict[str, MetricFigures]]]:
        """What each wanted metric and device measured in each slot."""
        found: list[dict[str, dict[str, MetricFigures]]] = [{} for _ in slots]
        for metric, devices in self._devices.items():
            if wanted not in (None, metric):
                continue
            for name, columns in devices.items():
                for measured, figures in zip(found, _figures_of(columns, slots), strict=True):
                    if figures is not None:
                        measured.setdefault(metric, {})[name] = figures
        return found


def _figures_of(columns: Sequence[Column], slots: Iterable[slice]) -> list[MetricFigures | None]:
    """The figures of what the columns have in each slot; None where nothing was measured."""
    first, *more = columns
    if isinstance(first, SameText) and not more:
        return [_same_figures(first.same, rows.stop - rows.start) for rows in slots]
    numbers = [column.floats() for column in columns]
    measured = [[value for each in numbers for value in each[rows] if value is not None] for rows in slots]
    return [figures_of(values) if values else None for values in measured]


@lru_cache(maxsize=4096)
def _same_figures(text: str, count: int) -> MetricFigures | None:
    """The figures of `count` equal numbers: three of four columns of a healthy node never change."""
    return None if text == NULL else figures_of([float(text)] * count)


def packed_summaries(summaries: Sequence[Summary]) -> tuple[bytes, bytes]:
    """The times and the rest of a block of summaries, which are in the order of their start."""
    places = sorted(
        {(metric, device) for each in summaries for metric in each.metrics for device in each.metrics[metric]}
    )
    verdicts = sorted({verdict for each in summaries for verdict in each.verdicts})
    columns = [[str(each.verdicts.get(verdict, 0)) for each in summaries] for verdict in verdicts]
    for metric, device in places:
        found = [each.metrics.get(metric, {}).get(device) for each in summaries]
        columns += _figure_columns([_NO_FIGURES if each is None else each for each in found])
    head = {"params": summaries[0].params, "verdicts": verdicts, "places": places}
    at_ms = [round(each.started_at * 1000) for each in summaries]
    return packed_integers([at_ms]), packed(head, columns, [""] * len(columns))


def summaries_of(node: str, check: str, times: bytes, body: bytes, count: int) -> list[Summary]:
    """The summaries of a block. Raises ValueError, KeyError, TypeError or zlib.error if the bytes are damaged."""
    head, headers, data = head_of(body)
    (at_ms,) = integers_of(times, count)
    columns = [*PackedColumns(headers, data, count, [""] * len(headers))]
    verdicts = [Verdict(verdict) for verdict in head["verdicts"]]
    return [
        Summary(
            node=node,
            check=check,
            params=head["params"],
            started_at=at_ms[row] / 1000,
            verdicts={
                verdict: of for verdict, column in zip(verdicts, columns, strict=False) if (of := int(column.text(row)))
            },
            metrics=_figures_in(head["places"], columns[len(verdicts) :], row),
        )
        for row in range(count)
    ]


def metric_names(names: Iterable[str]) -> str:
    """The names of metrics as they stand in the column `metrics`: with a space between them, which no name has."""
    return " ".join(sorted(names))


def _figures_in(
    places: Sequence[tuple[str, str]], columns: Sequence[Column], row: int
) -> dict[str, dict[str, MetricFigures]]:
    found: dict[str, dict[str, MetricFigures]] = {}
    for number, (metric, device) in enumerate(places):
        count, least, middle, most = (
            column.text(row) for column in columns[_FIGURES * number : _FIGURES * (number + 1)]
        )
        if count != "0":
            figures = MetricFigures(count=int(count), least=float(least), median=float(middle), most=float(most))
            found.setdefault(metric, {})[device] = figures
    return found


def _figure_columns(figures: Sequence[MetricFigures]) -> list[list[str]]:
    """The four columns of one metric of one device."""
    first = figures[0]
    if all(each is first for each in figures):
        texts = (str(first.count), repr(first.least), repr(first.median), repr(first.most))
        return [[text] * len(figures) for text in texts]
    return [
        [str(each.count) for each in figures],
        [repr(each.least) for each in figures],
        [repr(each.median) for each in figures],
        [repr(each.most) for each in figures],
    ]


def _metrics(base: Mapping[str, Any]) -> list[str]:
    """The numbers in the metrics of a run that is read from its JSON."""
    return numbers_in({"metrics": base["metrics"], "facts": {}})


def _run(base: Mapping[str, Any], key: str, quiet: QuietNumbers, metrics: Any, facts: Any) -> Run:
    own = {
        "id": scheduled_id(key, quiet.seq),
        "seq": quiet.seq,
        "started_at": (quiet.at_ms + quiet.ahead_ms) / 1000,
        "duration_s": quiet.duration_s,
        "metrics": metrics,
        "facts": facts,
    }
    return Run.model_validate({**base, **own})
