"""When background checks are due.

Every check has a beat: its first run plus whole intervals. The first run is spread by a share of the interval that
follows from the names of node and check, so that a fleet that restarts as one makes no wave and every restart of one
node gives the same times. A check whose run outlasts its interval misses beats; it never runs twice at once.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from muster_agent.plan import Planned


@dataclass(slots=True)
class _Beat:
    interval_s: float
    due: float
    running: bool = False


class Schedule:
    """The background checks of one node. Within `spread_s` seconds from now each has been due once."""

    def __init__(self, node: str, plan: Mapping[str, Planned], now: float, *, spread_s: float) -> None:
        self._beats = {
            name: _Beat(planned.interval_s, now + spread(node, name) * min(planned.interval_s, spread_s))
            for name, planned in plan.items()
            if planned.interval_s is not None
        }

    def tick(self, now: float) -> list[str]:
        """The checks that are to start now, earliest first; each counts as running until `ended`."""
        due = sorted((beat.due, name) for name, beat in self._beats.items() if not beat.running and beat.due <= now)
        for _, name in due:
            self._beats[name].running = True
        return [name for _, name in due]

    def ended(self, check: str, now: float) -> None:
        """A background run of `check` is over; the next is due at the first beat after now."""
        beat = self._beats[check]
        beat.running = False
        missed = math.floor((now - beat.due) / beat.interval_s)
        beat.due += (max(missed, 0) + 1) * beat.interval_s

    def next_due(self) -> float:
        """When `tick` has something to do next; infinity while it has nothing."""
        return min((beat.due for beat in self._beats.values() if not beat.running), default=math.inf)


def spread(node: str, check: str) -> float:
    """A share in [0, 1) that depends on the two names only."""
    digest = hashlib.blake2b(f"{node}/{check}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
