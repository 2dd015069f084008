"""Measures whether the coordinator keeps up with what the agents send.

The idea: two things show that it does not. Messages wait for long (the lag), or it has to defer reports. The lag is the
longer of two times: how long messages wait in the inbox, and how long our own heartbeat takes through the broker, which
has the queue before ours. The coordinator counts as overloaded when such signs have come for OVERLOADED_AFTER_S without
a break of QUIET_S, and no longer after that break. A start or a reconnect, when all nodes report at once, is shorter.

Example: at 1,000 messages begin to wait for 1.2 s. At 1,010 the coordinator is overloaded since 1,000. The last sign
comes at 1,130: it is no longer overloaded at 1,150.

Every step takes constant time.
"""

import math
from collections import OrderedDict, deque
from typing import NamedTuple

from muster_coordinator.model.load import CoordinatorLoad
from muster_coordinator.runtime.slowdown import Slowdown

LONG_S = 1.0
"""A message that waits for this long shows that the coordinator does not keep up."""

OVERLOADED_AFTER_S = 10.0
QUIET_S = 20.0

WINDOW_S = 10.0
"""The rates are those of the last ten seconds."""

MOST_SAMPLES = 100

ADVICE = (
    "The coordinator takes {taken:.0f} reports a second and defers {deferred:.0f}. Agents keep the runs, which arrive "
    "later, and run background checks {slowdown} times less often; new failures go first. Run checks less often for "
    "good (interval_s), give the coordinator a faster core and disk, or split the fleet."
)


class _Sample(NamedTuple):
    """The counts at a time."""

    at: float
    taken: int
    deferred: int


class LoadMeter:
    """The load of one coordinator. Its times come from any clock that does not go back, except where it says so."""

    def __init__(self) -> None:
        self.deferred = 0
        self._taken = 0
        self._longest_wait_s = 0.0
        self._echo_s: float | None = None  # None: none came back on this connection
        self._heartbeats: OrderedDict[str, float] = OrderedDict()  # those that are not back yet, the oldest first
        self._samples: deque[_Sample] = deque([_Sample(-math.inf, 0, 0)], maxlen=MOST_SAMPLES)
        self._signs_since = math.inf
        self._last_sign = -math.inf
        self._slowdown = Slowdown()

    @property
    def slowdown(self) -> int:
        """How many times less often agents are to run background checks."""
        return self._slowdown.times

    def note_taken(self, reports: int) -> None:
        """Notes reports that are taken."""
        self._taken += reports

    def note_deferred(self) -> None:
        """Notes a report for which there is no time now."""
        self.deferred += 1

    def note_waited(self, waited_s: float) -> None:
        """Notes how long a message has waited in the inbox."""
        self._longest_wait_s = max(self._longest_wait_s, waited_s)

    def note_heartbeat(self, heartbeat: str, now: float) -> None:
        """Notes that the coordinator has sent the heartbeat with this id."""
        self._heartbeats[heartbeat] = now
        if len(self._heartbeats) > MOST_SAMPLES:
            self._heartbeats.popitem(last=False)

    def note_echo(self, heartbeat: str, now: float) -> None:
        """Notes that the broker has sent back this heartbeat. Earlier ones do not come any more."""
        while heartbeat in self._heartbeats:
            _, sent_at = self._heartbeats.popitem(last=False)
            self._echo_s = now - sent_at

    def note_connected(self) -> None:
        """Notes that a connection is new: heartbeats that were not back will not come any more."""
        self._heartbeats.clear()
        self._echo_s = None

    def measure(self, now: float, wall: float) -> CoordinatorLoad:
        """The load since the last measurements; `wall` is the time of day, in seconds since the epoch."""
        awaited_s = now - next(iter(self._heartbeats.values()), now)
        # A broker whose access list is from before 0.2 sends none back, which says nothing about its queue.
        at_broker_s = 0.0 if self._echo_s is None else max(self._echo_s, awaited_s)
        lag_s = max(self._longest_wait_s, at_broker_s)
        self._longest_wait_s = 0.0
        self._note_signs(lag_s >= LONG_S or self.deferred > self._samples[-1].deferred, now)
        taken_per_s, deferred_per_s = self._rates(now)
        is_overloaded = self._last_sign - self._signs_since >= OVERLOADED_AFTER_S
        self._slowdown.note(now, is_overloaded=is_overloaded)
        advice = ""
        if is_overloaded:
            advice = ADVICE.format(taken=taken_per_s, deferred=deferred_per_s, slowdown=self.slowdown)
        return CoordinatorLoad(
            overloaded_since=wall - (now - self._signs_since) if is_overloaded else None,
            lag_s=lag_s,
            taken_per_s=taken_per_s,
            deferred_per_s=deferred_per_s,
            slowdown=self.slowdown,
            advice=advice,
        )

    def _note_signs(self, shows_overload: bool, now: float) -> None:
        if now - self._last_sign >= QUIET_S:
            self._signs_since, self._last_sign = math.inf, -math.inf
        if shows_overload:
            self._signs_since, self._last_sign = min(self._signs_since, now), now

    def _rates(self, now: float) -> tuple[float, float]:
        """Reports taken and deferred in a second, over the window."""
        self._samples.append(_Sample(now, self._taken, self.deferred))
        while len(self._samples) > 2 and now - self._samples[0].at > WINDOW_S:
            self._samples.popleft()
        first, last = self._samples[0], self._samples[-1]
        passed = last.at - first.at
        return (last.taken - first.taken) / passed, (last.deferred - first.deferred) / passed
