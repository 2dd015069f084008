"""What one group showed, by itself: the evidence that `localize` compares."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MOST_CHARGED = 3
"""In a group of so many, a crash counts against all members: a pair, or the group of three in an odd fleet."""


class Outcome(StrEnum):
    """What a trial showed by itself, before it is compared with the others."""

    GOOD = "GOOD"
    BAD = "BAD"
    VOID = "VOID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one group showed.

    `crashed` are the members whose own ranks crashed, perhaps because of what others sent them. `hard` says that there
    are such members or that a verdict was FAIL, and `detail` says for people why the run was bad. If the rails were
    also tried apart, `rails` holds what each reached by itself, to be compared with the other rails only. `on_one_host`
    says that members share a host, and take its cores and its memory bandwidth from each other.

    The rest is by node, as far as it was measured: `sent` what it could send while nobody else did, in GB/s, in a group
    of two only; `latest` the share of the rounds in which one of its ranks came last, from 0 to 1; `work_s` the seconds
    that its slowest rank computed before it took part.
    """

    group: str
    members: tuple[str, ...]
    outcome: Outcome
    objective: float | None = None
    rails: tuple[float, ...] = ()
    crashed: frozenset[str] = frozenset()
    hard: bool = False
    detail: str = ""
    on_one_host: bool = False
    sent: Mapping[str, float] = field(default_factory=dict)
    latest: Mapping[str, float] = field(default_factory=dict)
    work_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def charged(self) -> tuple[str, ...]:
        """The members that the run counts against, if it was bad.

        In a small group any member may have made the ranks of another crash. In a large group that is unlikely for each
        member, and to suspect all would cost a run of each.
        """
        if not self.crashed or len(self.members) <= MOST_CHARGED:
            return self.members
        return tuple(member for member in self.members if member in self.crashed)

    def others(self, node: str) -> tuple[str, ...]:
        return tuple(member for member in self.members if member != node)
