"""Lists that stay short however large the fleet is: the first items, and how many more there are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

ShownT_co = TypeVar("ShownT_co", covariant=True)
GivenT = TypeVar("GivenT")


@dataclass(frozen=True, slots=True)
class Bounded(Generic[ShownT_co]):
    """The first items of a list; `rest` counts the others. `is_least`: there are even more that nobody counted."""

    items: Sequence[ShownT_co] = ()
    rest: int = 0
    is_least: bool = False

    @property
    def total(self) -> int:
        return len(self.items) + self.rest

    @property
    def rest_text(self) -> str:
        """How many more there are, in words; empty if there are none."""
        if not self.rest:
            return ""
        return f"{'at least ' if self.is_least else ''}{self.rest:,} more"


def bounded(items: Iterable[GivenT], most: int, *, is_least: bool = False) -> Bounded[GivenT]:
    """The first `most` items."""
    given = tuple(items)
    return Bounded(given[:most], max(0, len(given) - most), is_least)
