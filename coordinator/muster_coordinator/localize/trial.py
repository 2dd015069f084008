"""What one group showed, by itself: the evidence that `localize` compares."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a trial showed by itself, before it is compared with the others."""

    GOOD = "GOOD"
    BAD = "BAD"
    VOID = "VOID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one group showed.

    `crashed` are the members whose own ranks were ended, `hard` says that there were any or that a verdict was FAIL,
    and `detail` says for people why it was bad. Where the rails were tried apart, `rails` holds for each what the group
    would reach if all were like it.
    """

    group: str
    members: tuple[str, ...]
    outcome: Outcome
    objective: float | None = None
    rails: tuple[float, ...] = ()
    crashed: frozenset[str] = frozenset()
    hard: bool = False
    detail: str = ""

    def others(self, node: str) -> tuple[str, ...]:
        return tuple(member for member in self.members if member != node)
