"""Parses the output of nccl-tests: the text table in all its versions, and the JSON that `-J` writes.

Versions differ in their columns. `root` came late; `#wrong` came late, too, and replaced `error`, the largest
difference, which rounding may cause. Options add times of single iterations and the time of day. Therefore a row is
parsed from its end, by the headings above it. Some programs do not work in place, and print `N/A` or nothing there.
mpirun puts its own prefix in front of lines, and lines of NCCL's log can appear in between.
"""

import json
import math
import re
from typing import Any, NamedTuple

from muster_plugins.shared.collectives.table import SizeRow


class NcclTestsOutput(NamedTuple):
    """The parsed output. `out_of_bounds` is the program's own count; None if the program did not finish.

    `checked` is whether the program has checked any result; it counts unchecked results as 0 and calls them OK.
    `unreadable` are lines, or entries of the JSON, that should be rows but cannot be parsed.
    """

    rows: list[SizeRow]
    out_of_bounds: int | None
    checked: bool
    unreadable: list[str]

    @property
    def wrong(self) -> int | None:
        """The number of wrong elements: the larger of the rows' and the program's own count; None if unknown."""
        counts = [row.wrong for row in self.rows if row.wrong is not None]
        told = [sum(counts)] if counts else []
        if self.checked and self.out_of_bounds is not None:
            told.append(self.out_of_bounds)
        return max(told, default=None)


_MPI_MARK = re.compile(r"^(\[\d+,\d+\]<std(?:out|err)>:\s?)+")

_OUT_OF_BOUNDS = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)")

_ROW = re.compile(r"^\s*\d+\s+\d+\s+[a-z]\w*\s")

_LABELS = 3
"""Every row begins with size, count and type; an operation and a root may follow."""

_MOST_UNREADABLE = 5
"""Maximum number of unreadable lines that are kept for the report."""

_LONGEST = 200
"""Maximum number of characters that are kept of each."""


def parse_text(text: str) -> NcclTestsOutput:
    """Parses the table in a program's text and ignores all other lines."""
    headings: list[str] = []
    rows: list[SizeRow] = []
    unreadable: list[str] = []
    out_of_bounds, checked = None, False
    for line in (_MPI_MARK.sub("", raw) for raw in text.splitlines()):
        if line.startswith("#") and {"size", "count", "busbw"} <= set(line[1:].split()):
            headings = line[1:].replace("cputime", "time").split()
        elif found := _OUT_OF_BOUNDS.match(line):
            out_of_bounds = int(found[1])
        elif _ROW.match(line):
            try:
                labels, halves = _split(line.split(), headings)
                rows.append(_text_row(labels, halves))
                checked = checked or any(half.get("#wrong", half.get("error")) != "N/A" for half in halves)
            except (ValueError, LookupError, OverflowError, StopIteration):
                unreadable.append(line.strip()[:_LONGEST])
    return NcclTestsOutput(rows, out_of_bounds, checked, unreadable[:_MOST_UNREADABLE])


def _split(words: list[str], headings: list[str]) -> tuple[list[str], list[dict[str, str]]]:
    """The first columns of a row, and its measured values by heading: out of place, in place or both.

    Raises ValueError if the row does not fit the headings above it.
    """
    if headings[-1:] == ["timestamp"]:
        words, headings = words[:-2], headings[:-1]  # a date and a time
    speeds = headings[headings.index("time") :]
    half = len(speeds) // speeds.count("time")
    if len(words) < _LABELS + len(speeds):  # in place only
        speeds = speeds[:half]
    values = words[-len(speeds) :]
    starts = range(0, len(speeds), half)
    halves = [dict(zip(speeds[:half], values[start : start + half], strict=True)) for start in starts]
    return words[: -len(speeds)], halves


def _text_row(labels: list[str], halves: list[dict[str, str]]) -> SizeRow:
    size, count, kind, *others = labels
    first = next(half for half in halves if half["time"] != "N/A")
    counts = [half["#wrong"] for half in halves if half.get("#wrong", "N/A") != "N/A"]
    return SizeRow(
        size_bytes=int(size),
        count=int(count),
        type=kind,
        redop=next((label for label in others if label.isalpha()), "none"),
        root=next((int(label) for label in others if not label.isalpha()), -1),
        time_us=_number(first["time"]),
        algbw_gbps=_number(first["algbw"]),
        busbw_gbps=_number(first["busbw"]),
        wrong=sum(int(_number(count)) for count in counts) if counts else None,
    )


def _number(value: Any) -> float:
    """A finite number that is not negative. Raises ValueError for anything else."""
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r} is not a measured value")
    return number


def parse_json(text: str) -> NcclTestsOutput:
    """The results in the JSON of `-J`, without its environment. Raises ValueError if it is not such JSON."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise ValueError("nests too deeply") from None
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list):
        raise ValueError("holds no results")
    rows: list[SizeRow] = []
    unreadable: list[str] = []
    for result in results:
        try:
            rows.append(_json_row(result))
        except (ValueError, LookupError, OverflowError, TypeError, AttributeError):
            unreadable.append(json.dumps(result)[:_LONGEST])
    checked = any(row.wrong is not None for row in rows)
    return NcclTestsOutput(rows, _json_out_of_bounds(document), checked, unreadable[:_MOST_UNREADABLE])


def _json_row(result: dict[str, Any]) -> SizeRow:
    halves = [half for name in ("out_of_place", "in_place") if (half := result.get(name))]
    counts = [half["nwrong"] for half in halves if half.get("nwrong") is not None]
    first = halves[0] if halves else {}
    return SizeRow(
        size_bytes=int(result["size"]),
        count=int(result["count"]),
        type=str(result["type"]),
        redop=str(result["redop"]),
        root=int(result["root"]),
        time_us=_number(first["time"] if "time" in first else first["cpu_time"]),
        algbw_gbps=_number(first["alg_bw"]),
        busbw_gbps=_number(first["bus_bw"]),
        wrong=sum(int(_number(count)) for count in counts) if counts else None,
    )


def _json_out_of_bounds(document: dict[str, Any]) -> int | None:
    match document.get("out_of_bounds"):
        case {"count": int(count)} if count >= 0:
            return count
    return None
