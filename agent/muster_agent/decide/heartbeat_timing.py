"""Decides when the agent sends its heartbeat, and which heartbeats the broker keeps.

The idea: a heartbeat says that the node lives, how many runs wait in its outbox, and how many were dropped. A report
says that it lives, too. If the coordinator takes it for that, a node whose last heartbeat said that no run waits sends
the next one only `every_s` after its last report, and later still if a report is about to go. If runs were dropped
since, it sends one `every_s` after the last, whatever it reports. The broker keeps the first heartbeat of a
connection for coordinators that start later, and one at least five minutes later; those in between need not be readable
by any other coordinator, so they can be short.

Example: with `every_s` 10, heartbeats are due at 0, 10 and 20 s. A report at 14 s moves the third to 24 s. If runs wait
then that are due at 29 s, the heartbeat waits too, until 32 s at the latest, and the report makes it needless. So a
node that reports every 15 s sends none. It is lost after 30 s of silence, so 12 s are left for a message that is late.
"""

import math

KEPT_EVERY_S = 300.0
"""How often the broker gets a heartbeat to keep, in case it has published an old last will late. A coordinator that
reads the will hears the next report or heartbeat soon after. A heartbeat to keep takes twice the bytes of another."""

WAITS_FOR_REPORT = 0.8
"""The share of an interval for which a heartbeat waits for a report."""


class HeartbeatTiming:
    """When the next heartbeat of a connection is due: `due`."""

    def __init__(self, every_s: float) -> None:
        self.due = -math.inf
        self._every_s = every_s
        self._kept_due = -math.inf
        self._has_said_all = False
        self._sent_at = -math.inf
        self._said_drops = 0

    def connected(self) -> None:
        """Notes a new connection."""
        self.due = self._kept_due = -math.inf

    def due_beside(self, report_due: float, drops: int) -> float:
        """When the next heartbeat is due if a report is, which the coordinator takes as a sign of life.

        `drops` is how many runs this process has dropped.
        """
        if drops != self._said_drops:
            return self._sent_at + self._every_s
        latest = self.due + WAITS_FOR_REPORT * self._every_s
        return latest if self._has_said_all and report_due <= latest else self.due

    def is_to_be_kept(self, now: float) -> bool:
        """Whether the broker is to keep a heartbeat that is sent now."""
        return now >= self._kept_due

    def sent(self, outbox: int, drops: int, now: float, *, kept: bool) -> None:
        """Notes a heartbeat that said how many runs wait and were dropped; the broker may have `kept` it."""
        self.due, self._sent_at, self._said_drops = now + self._every_s, now, drops
        self._has_said_all = outbox == 0
        if kept:
            self._kept_due = now + KEPT_EVERY_S

    def reported(self, now: float) -> None:
        """Notes a report that the coordinator takes as a sign of life."""
        if self._has_said_all:
            self.due = now + self._every_s
