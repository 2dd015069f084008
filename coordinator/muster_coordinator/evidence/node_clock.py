"""The offset of a node's clock, from the times when its reports were sent and when they arrived.

The idea: a report cannot arrive before it was sent, and several in a row are rarely late. So the shortest of the last
REMEMBERED delays is near the true offset of the clock. Delays up to IN_STEP_S are the network. An offset above WRONG_S
is reported to people.

Example: reports arrive 3605, 3600 and 3609 s after the time that they carry. The clock is 3600 s behind. A run that
began at 10:00:00 by that clock, in a report sent at 10:05:00 by that clock, began 5 minutes before the report was sent,
so the coordinator dates it 3600 s later, at 11:00:00. Each report takes constant time.
"""

from muster.model import Run

IN_STEP_S = 5.0
"""Longer than a report takes, and more than synchronised clocks differ."""

WRONG_S = 60.0
"""People are told from this offset on: no synchronised clock is so far off."""

REMEMBERED = 3


class NodeClock:
    """How far a node's clock is ahead, in seconds; `ahead_s` is None while the clock is not known to be wrong."""

    def __init__(self, ahead_s: float | None = None) -> None:
        self.ahead_s = ahead_s
        self._late_s: tuple[float, ...] = ()

    def heard(self, sent_at: float, now: float) -> str | None:
        """Notes a report that was sent at `sent_at` by the node's clock.

        Returns a sentence if the clock turned wrong or right.
        """
        self._late_s = (*self._late_s[1 - REMEMBERED :], now - sent_at)
        if len(self._late_s) < REMEMBERED:
            return None
        before, late_s = self.ahead_s, min(self._late_s)
        self.ahead_s = round(-late_s, 1) if abs(late_s) > WRONG_S else None
        if (before is None) == (self.ahead_s is None):
            return None
        return f"its clock is {'right again' if self.ahead_s is None else clock_in_words(self.ahead_s)}"


def clock_in_words(ahead_s: float) -> str:
    """The offset of a clock in words, for people."""
    return f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the coordinator's"


def behind_s(sent_at: float, now: float) -> float:
    """Seconds by which the clock of a report `sent_at` is behind; negative if it is ahead.

    The runs of the report began that much later than they say. This is also true for runs that waited in the outbox for
    hours: the age of a run when it was sent is right by any clock.
    """
    return 0.0 if abs(now - sent_at) <= IN_STEP_S else now - sent_at


def begun_at(run: Run, behind_s: float, now: float) -> float:
    """When a run began by the coordinator's clock; never in the future."""
    return max(0.0, min(run.started_at + behind_s, now))


def dated(run: Run, behind_s: float, now: float) -> Run:
    """The run with its start by the coordinator's clock."""
    started_at = begun_at(run, behind_s, now)
    return run if started_at == run.started_at else run.model_copy(update={"started_at": started_at})
