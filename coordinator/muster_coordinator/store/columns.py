"""Columns of numbers to and from bytes. Pure.

The idea: what one device measured by one metric is a column, and neighbours in a column are alike. A column of which
all numbers are the same is that number. Numbers with few decimals become whole numbers (70.5 and 70.25 are 705 and 2525
with two decimals: 7050, 7025), then offsets from the least of them, or steps from one to the next, whichever need less
room. Their bytes are sorted by place, because the highest ones are nearly the same; deflate does the rest. All other
columns, such as those with `null` or exponents, are a list of the texts that occur, and places in it.

The texts of numbers come back to the letter. One column takes time in proportion to its numbers. Most columns of a
healthy node never change, so each number of these costs one comparison; each text that differs is parsed once.
"""

import json
import re
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import sub
from typing import Any, Protocol

Header = Any
"""How a column is packed, as JSON: None like its start, a text if all numbers are that one, otherwise a list."""

NULL = "null"

_DECIMAL = re.compile(r"(?<![^,])(-?(?:0|[1-9]\d{0,17}))\.(0|\d*[1-9]),")
"""One of many numbers, each with a comma after it: with a point, and neither a zero nor a digit too many."""

_MOST_DIGITS = 18
"""Whole numbers with this number of digits fit into 64 bits."""

_TYPES = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Column(Protocol):
    """The numbers of a column."""

    def text(self, row: int) -> str:
        """The number in a row, as text."""

    def floats(self) -> list[float | None]:
        """All numbers, None for `null`."""


@dataclass(frozen=True, slots=True)
class SameText:
    """A column whose numbers are all the same."""

    same: str
    count: int

    def text(self, row: int) -> str:
        """The number in any row."""
        return self.same

    def floats(self) -> list[float | None]:
        """The same number for each row."""
        return [_float(self.same)] * self.count


@dataclass(frozen=True, slots=True)
class ListedTexts:
    """The texts that occur, and the place of each row's number among them."""

    texts: Sequence[str]
    places: Sequence[int]

    def text(self, row: int) -> str:
        """The number in a row, as text."""
        return str(self.texts[self.places[row]])

    def floats(self) -> list[float | None]:
        """All numbers, None for `null`."""
        numbers = list(map(_float, self.texts))
        return [numbers[place] for place in self.places]


@dataclass(frozen=True, slots=True)
class ScaledNumbers:
    """Numbers as whole numbers, with this number of decimals."""

    values: Sequence[int]
    decimals: int

    def text(self, row: int) -> str:
        """The number in a row, as text."""
        return _text(self.values[row], self.decimals)

    def floats(self) -> list[float | None]:
        """All numbers: Python divides whole numbers to the float that their text stands for."""
        scale = 10**self.decimals
        return [value / scale for value in self.values]


def packed(head: dict[str, Any], columns: Sequence[Sequence[str]], starts: Sequence[str]) -> bytes:
    """The columns as bytes, with a head. A column that is everywhere like its start takes no room.

    Of a column that is the same everywhere, one number is enough.
    """
    headers, data = [], []
    for column, start in zip(columns, starts, strict=True):
        header, raw = _pack(column, start)
        headers.append(header)
        data.append(raw)
    text = json.dumps([head, headers], separators=(",", ":")).encode()
    return zlib.compress(b"%d\n%s%s" % (len(text), text, b"".join(data)), 9)


def head_of(body: bytes) -> tuple[dict[str, Any], list[Header], bytes]:
    """The head, the headers of the columns and their bytes, for `PackedColumns`."""
    size, rest = zlib.decompress(body).split(b"\n", 1)
    head, headers = json.loads(rest[: int(size)])
    return head, headers, rest[int(size) :]


class PackedColumns:
    """The columns of a block, each unpacked when it is first asked for: most readers want one of hundreds.

    Raises ValueError, KeyError or TypeError then, if its bytes are damaged.
    """

    def __init__(self, headers: Sequence[Header], data: bytes, count: int, starts: Sequence[str]) -> None:
        self._packed = list(zip(headers, starts, strict=True))
        self._data = memoryview(data)
        self._count = count
        self._unpacked: list[Column] = []
        self._chosen: dict[int, Column] = {}

    def __iter__(self) -> Iterator[Column]:
        if not self._unpacked:
            self._unpacked = [self[place] for place in range(len(self._packed))]
        return iter(self._unpacked)

    def __getitem__(self, place: int) -> Column:
        if place not in self._chosen:
            header, start = self._packed[place]
            self._chosen[place] = _unpack(header, self._data[self._offsets[place] :], self._count, start)
        return self._chosen[place]

    @cached_property
    def _offsets(self) -> list[int]:
        """Where the bytes of each column begin."""
        sizes = (_size(header[2:], self._count) if isinstance(header, list) else 0 for header, _ in self._packed)
        return list(accumulate(sizes, initial=0))


def packed_integers(columns: Sequence[Sequence[int]]) -> bytes:
    """Columns of whole numbers of up to 64 bits as bytes."""
    parts = [_squeeze(column) for column in columns]
    text = json.dumps([header for header, _ in parts], separators=(",", ":")).encode()
    return zlib.compress(b"%d\n%s%s" % (len(text), text, b"".join(raw for _, raw in parts)), 9)


def integers_of(body: bytes, count: int) -> Iterator[list[int]]:
    """The columns, each of `count` whole numbers, one after the other."""
    size, rest = zlib.decompress(body).split(b"\n", 1)
    data, at = memoryview(rest)[int(size) :], 0
    for header in json.loads(rest[: int(size)]):
        yield _swell(header, data[at:], count)
        at += _size(header, count)


def _pack(column: Sequence[str], start: str) -> tuple[Header, bytes]:
    if column.count(column[0]) == len(column):
        return (None if column[0] == start else column[0]), b""
    occurring = list(dict.fromkeys(column))
    scaled = _scaled(occurring)
    decimals, numbers = (None, range(len(occurring))) if scaled is None else scaled
    number_of = dict(zip(occurring, numbers, strict=True))
    header, raw = _squeeze(list(map(number_of.__getitem__, column)))
    return (["t", occurring, *header] if decimals is None else ["n", decimals, *header]), raw


def _unpack(header: Header, data: memoryview, count: int, start: str) -> Column:
    if not isinstance(header, list):
        return SameText(start if header is None else header, count)
    kind, what, *numbers = header
    values = _swell(numbers, data, count)
    return ListedTexts(what, values) if kind == "t" else ScaledNumbers(values, what)


def _scaled(texts: list[str]) -> tuple[int, Sequence[int]] | None:
    """The number of decimals, and a whole number for each text; None unless each text can be made again from these.

    There are no decimals if the texts are whole numbers without a point.
    """
    decimals, values = _decimals(texts) if "." in texts[0] else (0, _integers(texts))
    limit = 10**_MOST_DIGITS
    return (decimals, values) if values and -limit < min(values) and max(values) < limit else None


def _decimals(texts: Sequence[str]) -> tuple[int, list[int]]:
    """The most decimals of a text, and the texts as whole numbers; no numbers unless all are the shortest ones."""
    parts = _DECIMAL.findall(",".join(texts) + ",")
    if len(parts) != len(texts) or "-0.0" in texts:
        return 0, []
    decimals = max(len(after) for _, after in parts)
    if decimals == 1:
        return 1, [int(before + after) for before, after in parts]
    return decimals, [int(before + after.ljust(decimals, "0")) for before, after in parts]


def _integers(texts: list[str]) -> list[int]:
    try:
        values = list(map(int, texts))
    except ValueError:
        return []
    return values if list(map(str, values)) == texts else []


def _float(text: str) -> float | None:
    return None if text == NULL else float(text)


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
    steps = list(map(sub, values[1:], values))
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
