"""The checks that a node has announced, and what follows from them.

Thousands of nodes announce the same checks. What follows is worked out once for all of them: every report and every
health of a node needs it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from muster.check import CheckInfo, Needs, Scope
from muster_coordinator.model.orders import run_patience_s

KINDS = 64
"""Maximum number of sets of checks for which it is kept what follows. A fleet has some for each version and machine.
Each keeps its checks in memory, up to 100 KiB, also when no node announces them any more.
"""


def runs_by_itself(check: CheckInfo) -> bool:
    """Whether a node that announces this check runs it in the background."""
    return bool(check.cadence_s) and check.scope is Scope.NODE


@dataclass(frozen=True, slots=True, eq=False)
class AnnouncedChecks:
    """Checks `by_name`.

    - `own`: those that the node runs in the background; `reporting_soon` need no idle node for it.
    - `shortest_cadence_s`: the interval of the one that it runs most often; infinity if it runs none.
    - `silent_after_s`: for each check that it runs alone, how long a requested run may send nothing.
    """

    by_name: Mapping[str, CheckInfo]
    own: tuple[str, ...]
    reporting_soon: tuple[str, ...]
    shortest_cadence_s: float
    silent_after_s: dict[str, float]

    @classmethod
    def of(cls, checks: Iterable[CheckInfo]) -> "AnnouncedChecks":
        """The same object for the same check objects in the same order."""
        return _announced(_Identical(tuple(checks)))


class _Identical:
    """Checks that are equal to the same objects only: their parameters make them slow to compare."""

    __slots__ = ("checks", "ids")

    def __init__(self, checks: tuple[CheckInfo, ...]) -> None:
        self.checks = checks
        self.ids = tuple(map(id, checks))

    def __hash__(self) -> int:
        return hash(self.ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identical) and self.ids == other.ids


@lru_cache(KINDS)
def _announced(key: _Identical) -> AnnouncedChecks:
    own = [check for check in key.checks if runs_by_itself(check)]
    return AnnouncedChecks(
        by_name={check.name: check for check in key.checks},
        own=tuple(check.name for check in own),
        reporting_soon=tuple(check.name for check in own if check.needs is Needs.NOTHING),
        shortest_cadence_s=min((check.cadence_s or math.inf for check in own), default=math.inf),
        silent_after_s={
            check.name: run_patience_s(check.timeout_s) for check in key.checks if check.scope is Scope.NODE
        },
    )
