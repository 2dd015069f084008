"""When background checks are due.

Every check has a beat: its first run plus whole intervals. The first run is spread by a share of the interval that
follows from the names of node and check, so that a fleet that restarts as one makes no wave and every restart of one
node gives the same times. A check whose run outlasts its interval misses beats; it never runs twice at once.

A check that is hastened runs once beside its beats, which stay where they are. However often that happens, such runs
start a second apart, so that a storm of events costs no more than a run a second.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from muster_agent.decide.plan import Planned

HASTENED_EVERY_S = 1.0


@dataclass(slots=True)
class _Beat:
    interval_s: float
    due: float
    running: bool = False
    hastened: float = math.inf
    last_hastened: float = -math.inf

    @property
    def next(self) -> float:
        return min(self.due, self.hastened)


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
        due = sorted((beat.next, name) for name, beat in self._beats.items() if not beat.running and beat.next <= now)
        for _, name in due:
            beat = self._beats[name]
            beat.running = True
            if beat.hastened <= now:
                beat.last_hastened, beat.hastened = now, math.inf
        return [name for _, name in due]

    def hasten(self, check: str, now: float) -> None:
        """`check` is due at once, or again when its present run began before that; ignored if it has no beat."""
        if beat := self._beats.get(check):
            beat.hastened = max(now, beat.last_hastened + HASTENED_EVERY_S)

    def ended(self, check: str, now: float) -> None:
        """A background run of `check` is over; the next is due at the first beat after now."""
        beat = self._beats[check]
        beat.running = False
        if beat.due <= now:
            beat.due += (math.floor((now - beat.due) / beat.interval_s) + 1) * beat.interval_s

    def next_due(self) -> float:
        """When `tick` has something to do next; infinity while it has nothing."""
        return min((beat.next for beat in self._beats.values() if not beat.running), default=math.inf)


def spread(node: str, check: str) -> float:
    """A share in [0, 1) that depends on the two names only."""
    digest = hashlib.blake2b(f"{node}/{check}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
