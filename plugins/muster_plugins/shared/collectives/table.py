"""Results of collectives by message size: the judged values, and the table and JSON that nccl-tests would write.

Everything here is pure. References judge bandwidth on large messages and latency on small ones; the mean over all
sizes, which nccl-tests also prints, says little about either.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pydantic import Field, JsonValue, TypeAdapter

from muster.conditions import Condition, is_met
from muster.model import Data, Json, Metric
from muster.nccl_tests_table import HalfResult, SizeResult, summary_lines, table_lines
from muster.toml import shipped_table
from muster_plugins.shared.collectives.message_sizes import LARGE_BYTES, SMALL_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """One message size. Bandwidths are in GB/s (1e9 bytes); `wrong` is None where elements were not checked.

    `in_place`: the result was written into the buffer that was sent.
    """

    size_bytes: int
    count: int
    redop: str
    root: int
    time_us: float
    algbw_gbps: float
    busbw_gbps: float
    wrong: int | None
    type: str = "float"
    in_place: bool = False


def judged_rows(rows: Sequence[SizeRow]) -> list[SizeRow]:
    """The rows that bandwidth is judged by: those of large messages, or else the row of the largest message."""
    large = [row for row in rows if row.size_bytes >= LARGE_BYTES]
    return large or [max(rows, key=lambda row: row.size_bytes)]


def median_busbw(rows: Sequence[SizeRow]) -> float:
    """The bus bandwidth of large messages, in GB/s."""
    return statistics.median(row.busbw_gbps for row in judged_rows(rows))


def metrics(rows: Sequence[SizeRow], world_size: int, peak_gbps: float | None) -> dict[str, Metric]:
    """The metrics of the rows. A single rank sends nothing to anybody, so it has no bandwidth."""
    found: dict[str, Metric] = {}
    if world_size > 1:
        found["algbw_gbps"] = statistics.median(row.algbw_gbps for row in judged_rows(rows))
        busbw = median_busbw(rows)
        found["busbw_gbps"] = busbw
        if peak_gbps:
            found["efficiency"] = busbw / peak_gbps
    small = [row.time_us for row in rows if row.size_bytes <= SMALL_BYTES]
    if small:
        found["latency_us"] = statistics.median(small)
    checked = [row.wrong for row in rows if row.wrong is not None]
    if checked:
        found["wrong_elements"] = float(sum(checked))
    return found


def facts(rows: Sequence[SizeRow]) -> Json:
    """Facts that select references: the smallest message size that bandwidth is judged by."""
    return {"size_bytes": min(row.size_bytes for row in judged_rows(rows))}


class Peak(Data):
    """The best known bus bandwidth for measurements whose facts meet the conditions in `when`."""

    when: dict[str, Condition]
    busbw_gbps: float = Field(gt=0)
    source: str = Field(min_length=1)


@cache
def peaks() -> tuple[Peak, ...]:
    """The peaks that come with muster."""
    table = shipped_table("muster_plugins.shared.collectives", "peaks.toml")
    return TypeAdapter(tuple[Peak, ...]).validate_python(table["peak"])


def expected_peak(facts: Mapping[str, JsonValue]) -> float | None:
    """The peak in GB/s for a measurement with these facts; None if none has been published."""
    for peak in peaks():
        if all(is_met(condition, facts.get(name)) for name, condition in peak.when.items()):
            return peak.busbw_gbps
    return None


def text_table(rows: Sequence[SizeRow], peak_gbps: float | None = None) -> str:
    """The table that nccl-tests prints, with the share of the peak after each row if the peak is known.

    It has only the columns of the half that was measured, in place or not.
    """
    results = [_result(row) for row in rows]
    lines = table_lines(results, ("in_place" if rows[0].in_place else "out_of_place",))
    if peak_gbps:
        shares = ("effic", "(%)", *(f"{100 * row.busbw_gbps / peak_gbps:.1f}" for row in rows))
        lines = [f"{line}  {share:>6}" for line, share in zip(lines, shares, strict=True)]
    return "\n".join((*lines, *summary_lines(results)))


def curves(rows: Sequence[SizeRow]) -> list[JsonValue]:
    """Data for plots in reports: bus bandwidth by message size, if there are several sizes."""
    if len(rows) < 2:
        return []
    sizes, bandwidths = [row.size_bytes for row in rows], [row.busbw_gbps for row in rows]
    return [{"title": "bus bandwidth", "x_label": "bytes", "y_label": "GB/s", "x": [*sizes], "y": [*bandwidths]}]


def report(rows: Sequence[SizeRow], config: Json) -> Json:
    """The JSON that nccl-tests writes with `-J`: its keys, its booleans as strings, nothing about the environment."""
    wrong, none_wrong = sum(row.wrong or 0 for row in rows), all(not row.wrong for row in rows)
    return {
        "config": config,
        "results": [_result(row).model_dump(mode="json") for row in rows],
        "out_of_bounds": {"count": wrong, "okay": _as_string(none_wrong)},
        "average_bus_bandwidth": {"bandwidth": _average(rows), "okay": "unchecked"},
    }


def _result(row: SizeRow) -> SizeResult:
    half = HalfResult(time=row.time_us, alg_bw=row.algbw_gbps, bus_bw=row.busbw_gbps, nwrong=row.wrong)
    return SizeResult(
        size=row.size_bytes,
        count=row.count,
        type=row.type,
        redop=row.redop,
        root=str(row.root),
        out_of_place=None if row.in_place else half,
        in_place=half if row.in_place else None,
    )


def _average(rows: Sequence[SizeRow]) -> float:
    return statistics.fmean(row.busbw_gbps for row in rows)


def _as_string(value: bool) -> str:
    return "true" if value else "false"
