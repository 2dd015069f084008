"""Results of collectives by message size, in the forms of nccl-tests: its JSON, and the table that it prints.

A run shows them to others as the fact `report`, the JSON that nccl-tests writes with `-J`. So a coordinator can print
the table of any check that has such results. What was not measured is `N/A`.
"""

import statistics
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from muster.model import Data, Json
from muster.texts import Label

Half = Literal["out_of_place", "in_place"]

BOTH: tuple[Half, ...] = ("out_of_place", "in_place")

MOST_SIZES = 256
"""Maximum number of message sizes of one run. From a byte to 16 GiB by factor 2 there are 35."""

_Measured = Annotated[float, Field(ge=0, le=1e30)]


class HalfResult(Data):
    """One measurement: `time` in microseconds, bandwidths in GB/s. `nwrong` is None if nothing was checked."""

    time: _Measured
    alg_bw: _Measured
    bus_bw: _Measured
    nwrong: Annotated[int, Field(ge=0, lt=1 << 63)] | None = None


class SizeResult(Data):
    """The measurements of one message size: with a buffer of its own for the result, and in the sender's buffer."""

    size: Annotated[int, Field(ge=0, lt=1 << 63)]
    count: Annotated[int, Field(ge=0, lt=1 << 63)]
    type: Label
    redop: Label
    root: Label
    out_of_place: HalfResult | None = None
    in_place: HalfResult | None = None


SizeResults = Annotated[tuple[SizeResult, ...], Field(max_length=MOST_SIZES)]

_RESULTS = TypeAdapter(SizeResults)


def results_in(facts: Json) -> tuple[SizeResult, ...]:
    """The results in the facts of a run; none if it has no such report."""
    report = facts.get("report")
    try:
        return _RESULTS.validate_python(report.get("results", ()) if isinstance(report, dict) else ())
    except ValidationError:
        return ()


_LABELS = ("size", "count", "type", "redop", "root")
_LABEL_UNITS = ("(B)", "(elements)", "", "", "")
_SPEEDS = ("time", "algbw", "busbw", "#wrong")
_SPEED_UNITS = ("(us)", "(GB/s)", "(GB/s)", "")
_LABEL_WIDTHS = (12, 12, 8, 6, 6)
_SPEED_WIDTHS = (7, 6, 6, 6)
_WIDTHS = (*_LABEL_WIDTHS, *_SPEED_WIDTHS, *_SPEED_WIDTHS)
_HALF_WIDTH = sum(_SPEED_WIDTHS) + 2 * len(_SPEED_WIDTHS)
_TITLES = {"out_of_place": "out-of-place", "in_place": "in-place"}
_NOT_MEASURED = "N/A"


def table_lines(results: Sequence[SizeResult], halves: Sequence[Half] = BOTH) -> list[str]:
    """The headings and a line for each size, with the columns of these halves."""
    return [*heading_lines(halves), *(_row(result, halves) for result in results)]


def summary_lines(results: Sequence[SizeResult]) -> list[str]:
    """The lines below the table: wrong elements, and the mean bus bandwidth over everything that was measured."""
    measured = [half for result in results for half in (result.out_of_place, result.in_place) if half is not None]
    wrong = sum(half.nwrong or 0 for half in measured)
    mean = statistics.fmean(half.bus_bw for half in measured) if measured else 0.0
    return [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}", f"# Avg bus bandwidth    : {mean:g}"]


def heading_lines(halves: Sequence[Half] = BOTH) -> Iterator[str]:
    """The lines above the results: names and units of the columns, and which half they are of if there are both."""
    if len(halves) > 1:
        titles = "".join(f"{_TITLES[half]:^{_HALF_WIDTH}}" for half in halves)
        yield f"#{' ' * (len(columns(_LABELS)) - 1)}{titles}".rstrip()
    yield f"#{columns((*_LABELS, *_SPEEDS * len(halves)))[1:]}"
    yield f"#{columns((*_LABEL_UNITS, *_SPEED_UNITS * len(halves)))[1:]}"


def columns(texts: Sequence[str]) -> str:
    """A line of the table: five labels of a size, and four numbers for each half."""
    return "  ".join(text.rjust(width) for text, width in zip(texts, _WIDTHS, strict=False))


def _row(result: SizeResult, halves: Sequence[Half]) -> str:
    labels = (str(result.size), str(result.count), result.type, result.redop, result.root)
    measured = [getattr(result, half) for half in halves]
    speeds = (value for half in measured for value in _speeds(half))
    return columns((*labels, *speeds))


def _speeds(half: HalfResult | None) -> tuple[str, str, str, str]:
    if half is None:
        return (_NOT_MEASURED,) * 4
    wrong = _NOT_MEASURED if half.nwrong is None else str(half.nwrong)
    return time_text(half.time), f"{half.alg_bw:.2f}", f"{half.bus_bw:.2f}", wrong


def time_text(time_us: float) -> str:
    """Microseconds with as many decimals as nccl-tests prints."""
    decimals = 2 if time_us < 100 else 1 if time_us < 10_000 else 0
    return f"{time_us:.{decimals}f}"
