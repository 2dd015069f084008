"""Lists of names as Slurm writes them: `node-[001-032,040],login1`.

Written by hand, because the library for it, python-hostlist, has a licence (GPL) that would become muster's.
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

MOST_NAMES = 1 << 17
"""More names than any fleet has. A longer list is a typing error such as `node-[1-99999999]`, and would take all
memory.
"""

_TO_COMMA = re.compile(r"((?:[^,\[\]]|\[[^\[\]]*\])*)(,?)")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(?P<low>[0-9]{1,18})(?:-(?P<high>[0-9]{1,18}))?")


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers from `low` to `high`, written with leading zeros to `width` digits."""

    low: int
    high: int
    width: int

    def __iter__(self) -> Iterator[str]:
        return (f"{number:0{self.width}}" for number in range(self.low, self.high + 1))

    @property
    def count(self) -> int:
        return self.high - self.low + 1


def expand(text: str) -> list[str]:
    """The names of the list, in order. Raises ValueError with the problem and a valid form."""
    names: list[str] = []
    for item in _items(text):
        names += _names(item, MOST_NAMES - len(names))
    return names


def _items(text: str) -> Iterator[str]:
    """The parts between commas that are not in brackets."""
    for found in _TO_COMMA.finditer(text):
        item, comma = found.groups()
        yield item.strip()
        if not comma:
            break
    if found.end() < len(text):
        item += text[found.end() :].partition(",")[0]
        raise ValueError(f"{item!r} is neither a name nor names with ranges, for example node-[001-016,020]")


def _names(item: str, room: int) -> Iterator[str]:
    """The names in one item. Raises ValueError for more than `room`."""
    if not item:
        raise ValueError("has an empty name: give names between commas, for example node-1,node-2")
    parts = _BRACKETS.split(item)  # alternately outside and inside of brackets
    ranges = [[_numbers(part, item) for part in inside.split(",")] for inside in parts[1::2]]
    if math.prod(sum(numbers.count for numbers in choice) for choice in ranges) > room:
        raise ValueError(f"{item!r} makes the list more than {MOST_NAMES} names long")
    choices = [itertools.chain.from_iterable(choice) for choice in ranges]
    first, *outside = parts[::2]
    return (first + "".join(map(str.__add__, chosen, outside)) for chosen in itertools.product(*choices))


def _numbers(text: str, item: str) -> _Numbers:
    found = _RANGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} in {item!r} is neither a number nor a range of numbers, for example 1-16")
    low, high = found["low"], found["high"] or found["low"]
    if int(high) < int(low):
        raise ValueError(f"{text!r} in {item!r} runs backwards: write {high}-{low}")
    return _Numbers(int(low), int(high), len(low))
