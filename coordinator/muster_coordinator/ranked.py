"""Numbers in order, of which the middle one is wanted again and again while single ones change."""

from bisect import bisect_left, insort


class Ranked:
    """`values` from the least to the greatest."""

    def __init__(self) -> None:
        self.values: list[float] = []

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
