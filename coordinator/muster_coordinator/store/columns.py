"""Columns of numbers to and from bytes. Pure.

The idea: what one device measured by one metric is a column, and neighbours in a column are alike. A column of which
all numbers are the same is that number. Numbers with few decimals become whole numbers (70.5 and 70.25 are 705 and 2525
with two decimals: 7050, 7025), then offsets from the least of them, or steps from one to the next, whichever need less
room. Their bytes are sorted by place, because the highest ones are nearly the same; deflate does the rest. All other
columns, such as those with `null` or exponents, are a list of the texts that occur, and places in it.

The texts of numbers come back to the letter. One column takes time in proportion to its numbers.
"""

import json
import re
import sys
import zlib
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

Header = Any
"""How a column is packed, as JSON: None like its start, a text if all numbers are that one, otherwise a list."""

Column = Callable[[int], str]
"""The number in a row, as text."""

_PLAIN = re.compile(r"-?\d{1,18}(?:\.(\d+))?")
_MOST_DIGITS = 18
"""Whole numbers with this number of digits fit into 64 bits."""

_TYPES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def packed(head: dict[str, Any], columns: Sequence[Sequence[str]], starts: Sequence[str]) -> bytes:
    """The columns as bytes, with a head. A column that is everywhere like its start takes no room."""
    headers, data = [], []
    for column, start in zip(columns, starts, strict=True):
        header, raw = _pack(column, start)
        headers.append(header)
        data.append(raw)
    text = json.dumps([head, headers], separators=(",", ":")).encode()
    return zlib.compress(b"%d\n%s%s" % (len(text), text, b"".join(data)), 9)


def head_of(body: bytes) -> tuple[dict[str, Any], list[Header], bytes]:
    """The head, the headers of the columns and their bytes, for `columns_of`."""
    size, rest = zlib.decompress(body).split(b"\n", 1)
    head, headers = json.loads(rest[: int(size)])
    return head, headers, rest[int(size) :]


def columns_of(headers: Sequence[Header], data: bytes, count: int, starts: Sequence[str]) -> list[Column]:
    """The columns, each of `count` numbers."""
    view, columns, at = memoryview(data), [], 0
    for header, start in zip(headers, starts, strict=True):
        column, size = _unpack(header, view[at:], count, start)
        columns.append(column)
        at += size
    return columns


def packed_integers(columns: Sequence[Sequence[int]]) -> bytes:
    """Columns of whole numbers of up to 64 bits as bytes."""
    parts = [_squeeze(column) for column in columns]
    text = json.dumps([header for header, _ in parts], separators=(",", ":")).encode()
    return zlib.compress(b"%d\n%s%s" % (len(text), text, b"".join(raw for _, raw in parts)), 9)


def integers_of(body: bytes, count: int) -> list[list[int]]:
    """The columns, each of `count` whole numbers."""
    size, rest = zlib.decompress(body).split(b"\n", 1)
    data, at, columns = memoryview(rest)[int(size) :], 0, []
    for header in json.loads(rest[: int(size)]):
        columns.append(_swell(header, data[at:], count))
        at += _size(header, count)
    return columns


def _pack(column: Sequence[str], start: str) -> tuple[Header, bytes]:
    occurring = dict.fromkeys(column)
    if len(occurring) == 1:
        return (None if column[0] == start else column[0]), b""
    scaled = _scaled(list(occurring))
    if scaled is None:
        places = {text: place for place, text in enumerate(occurring)}
        header, raw = _squeeze([places[text] for text in column])
        return ["t", list(occurring), *header], raw
    decimals, values = scaled
    header, raw = _squeeze([values[text] for text in column])
    return ["n", decimals, *header], raw


def _unpack(header: Header, data: memoryview, count: int, start: str) -> tuple[Column, int]:
    if not isinstance(header, list):
        text = start if header is None else header
        return (lambda _row: text), 0
    kind, what, *numbers = header
    values = _swell(numbers, data, count)
    size = _size(numbers, count)
    if kind == "t":
        return (lambda row: str(what[values[row]])), size
    return (lambda row: _text(values[row], what)), size


def _scaled(texts: Sequence[str]) -> tuple[int, dict[str, int]] | None:
    """The number of decimals, and whole numbers for the texts; None unless each text can be made again from these.

    There are no decimals if the texts are whole numbers without a point.
    """
    decimals = 0
    for text in texts:
        if (found := _PLAIN.fullmatch(text)) is None:
            return None
        decimals = max(decimals, len(found[1] or ""))
    values = {text: _whole(text, decimals) for text in texts}
    limit = 10**_MOST_DIGITS
    if all(-limit < value < limit and _text(value, decimals) == text for text, value in values.items()):
        return decimals, values
    return None


def _whole(text: str, decimals: int) -> int:
    before, _, after = text.partition(".")
    return int(before + after.ljust(decimals, "0"))


def _text(value: int, decimals: int) -> str:
    """The shortest text with at least one decimal, or with none if there are no decimals."""
    if not decimals:
        return str(value)
    digits = str(abs(value)).rjust(decimals + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-decimals]}.{digits[-decimals:].rstrip('0') or '0'}"


def _squeeze(values: Sequence[int]) -> tuple[list[int], bytes]:
    """A header, and offsets from the least value or steps between neighbours.

    The header is the least value and the bytes of an offset; for steps, the first value comes third.
    """
    steps = [after - before for before, after in pairwise(values)]
    low, least = min(values), min(steps, default=0)
    if steps and max(steps) - least < max(values) - low:
        width, raw = _planes([step - least for step in steps])
        return [least, width, values[0]], raw
    width, raw = _planes([value - low for value in values])
    return [low, width], raw


def _swell(header: Sequence[int], data: memoryview, count: int) -> list[int]:
    low, width, *first = header
    offsets = _numbers(data, width, count - len(first))
    if not first:
        return [low + offset for offset in offsets]
    return list(accumulate((low + offset for offset in offsets), initial=first[0]))


def _size(header: Sequence[int], count: int) -> int:
    _, width, *first = header
    return int(width) * (count - len(first))


def _planes(values: Sequence[int]) -> tuple[int, bytes]:
    """The bytes of one value, and all of them, sorted by their place in the value; the lowest come first."""
    most = max(values)
    if not most:
        return 0, b""
    width = next(size for size in _TYPES if most >> 8 * size == 0)
    numbers = array(_TYPES[width], values)
    if sys.byteorder == "big":
        numbers.byteswap()
    raw = numbers.tobytes()
    return width, b"".join(raw[place::width] for place in range(width))


def _numbers(data: memoryview, width: int, count: int) -> Sequence[int]:
    if not width:
        return [0] * count
    raw = bytearray(width * count)
    for place in range(width):
        raw[place::width] = data[place * count : (place + 1) * count]
    numbers = array(_TYPES[width], bytes(raw))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
