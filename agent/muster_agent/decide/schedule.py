"""Decides when background checks are due.

Every check has a beat: its first run plus whole multiples of its interval. The first run is delayed by a share of the
interval that depends only on the names of node and check. A fleet that restarts at once therefore makes no wave, and a
node has the same times after every restart. A check never runs twice at once; if a run takes longer than the interval,
the beats in between are skipped.

Example: a check with an interval of 60 s has the share 0.25 on this node and starts at 15, 75, 135 s and so on. The run
of 75 s takes 70 s and ends at 145 s, so the beat of 135 s is skipped and the next run starts at 195 s.

An event can hasten a check: it runs once in between, and the beats stay where they are. Hastened runs start at least
`HASTENED_EVERY_S` apart, so that a storm of events costs at most one run a second.

An overloaded coordinator can slow the checks down: with a slowdown of 3, a check runs on every third beat only, but
still at least each `SLOWEST_S`. A check with a longer interval keeps all of its beats.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass

from muster_agent.decide.plan import PlannedCheck

HASTENED_EVERY_S = 1.0

SLOWEST_S = 300.0
"""A fault that only a background check finds is known after this time, however overloaded the coordinator is."""


@dataclass(slots=True)
class _Beat:
    interval_s: float
    due: float
    running: bool = False
    hastened: float = math.inf
    last_hastened: float = -math.inf

    def next(self, slowdown: int) -> float:
        skipped = beats_apart(self.interval_s, slowdown) - 1
        return min(self.due + skipped * self.interval_s, self.hastened)


class CheckSchedule:
    """The background checks of one node. Each is due for the first time within `spread_s` seconds."""

    def __init__(self, node: str, plan: Mapping[str, PlannedCheck], now: float, *, spread_s: float) -> None:
        self._slowdown = 1
        self._beats = {
            name: _Beat(planned.interval_s, now + spread(node, name) * min(planned.interval_s, spread_s))
            for name, planned in plan.items()
            if planned.interval_s is not None
        }

    def tick(self, now: float) -> list[str]:
        """The checks to start now, the most overdue first. Each counts as running until `ended`."""
        waiting = sorted((beat.next(self._slowdown), name) for name, beat in self._beats.items() if not beat.running)
        due = [name for at, name in waiting if at <= now]
        for name in due:
            beat = self._beats[name]
            beat.running = True
            if beat.hastened <= now:
                beat.last_hastened, beat.hastened = now, math.inf
        return due

    def hasten(self, check: str, now: float) -> None:
        """Makes `check` due at once, or again after its present run; ignored for a check without a beat."""
        if beat := self._beats.get(check):
            beat.hastened = max(now, beat.last_hastened + HASTENED_EVERY_S)

    def ended(self, check: str, now: float) -> None:
        """Notes the end of a background run; the next is due at the first beat after now."""
        beat = self._beats[check]
        beat.running = False
        if beat.due <= now:
            beat.due += (math.floor((now - beat.due) / beat.interval_s) + 1) * beat.interval_s

    def slow_down(self, times: int) -> None:
        """Makes every check run this many times less often from its next run on; 1 is as often as planned."""
        self._slowdown = times

    def next_due(self) -> float:
        """When `tick` has work next; infinity if never."""
        due = (beat.next(self._slowdown) for beat in self._beats.values() if not beat.running)
        return min(due, default=math.inf)


def beats_apart(interval_s: float, slowdown: int) -> int:
    """How many beats there are from one run to the next."""
    return max(1, min(slowdown, math.floor(SLOWEST_S / interval_s)))


def spread(node: str, check: str) -> float:
    """A share from 0 up to but not including 1 that depends only on the two names."""
    digest = hashlib.blake2b(f"{node}/{check}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
