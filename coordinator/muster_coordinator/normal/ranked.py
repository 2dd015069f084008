"""Numbers in order, of which the middle one is wanted again and again while single ones change."""

from bisect import bisect_left, insort
from collections.abc import Iterable


class Ranked:
    """`values` from the least to the greatest; None stands for no number."""

    def __init__(self, numbers: Iterable[float | None] = ()) -> None:
        self.values = sorted(number for number in numbers if number is not None)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def middle(self) -> float | None:
        """The median, of an even number the upper one; None of nothing."""
        return self.values[len(self.values) // 2] if self.values else None

    def replace(self, before: float | None, after: float | None) -> None:
        """Takes one number out and puts one in; None stands for no number."""
        if before is not None:
            del self.values[bisect_left(self.values, before)]
        if after is not None:
            insort(self.values, after)
