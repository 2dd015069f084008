"""A sorted list of numbers that change one by one, its median, and where most of them are.

A change takes O(log n) comparisons and one insertion, the rest constant time. A number takes eight bytes.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable


class Ranked:
    """`values` in ascending order."""

    def __init__(self, numbers: Iterable[float | None] = ()) -> None:
        self.values = array("d", sorted(number for number in numbers if number is not None))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def middle(self) -> float | None:
        """The median; the upper one of an even number of values, None without values."""
        return self.values[len(self.values) // 2] if self.values else None

    @property
    def low(self) -> float | None:
        """The value that one in twenty is below; None without values."""
        return self.values[len(self.values) // 20] if self.values else None

    @property
    def high(self) -> float | None:
        """The value that one in twenty is above; None without values."""
        return self.values[-1 - len(self.values) // 20] if self.values else None

    def replace(self, before: float | None, after: float | None) -> None:
        """Removes `before` and inserts `after`; None stands for no number."""
        if before is not None:
            del self.values[bisect_left(self.values, before)]
        if after is not None:
            insort(self.values, after)
