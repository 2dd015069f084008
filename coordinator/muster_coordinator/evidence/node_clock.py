"""What a node's clock says beside the coordinator's, as its reports tell it: when they were sent and when they came."""

from muster.model import Run

IN_STEP_S = 5.0
"""Longer than a report is on its way, and than clocks that are kept in step differ."""

WRONG_S = 60.0
"""From here on people should know: a clock that is kept in step at all is never so far off."""

REMEMBERED = 3


class NodeClock:
    """How far a node's clock is off: `ahead_s` is None as long as it is not known to be wrong."""

    def __init__(self, ahead_s: float | None = None) -> None:
        self.ahead_s = ahead_s
        self._late_s: tuple[float, ...] = ()

    def heard(self, sent_at: float, now: float) -> str | None:
        """A report has come that was sent at `sent_at` by the node's clock; what there is to tell of the clock now.

        A report may come late for another reason as well, several in a row hardly, and none comes early.
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
    """How a clock differs from the coordinator's, for people."""
    return f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the coordinator's"


def behind_s(sent_at: float, now: float) -> float:
    """How far a node's clock is behind by which a report was sent at `sent_at`; negative when it is ahead.

    Its runs began that much later than they say. How old a run was when it was sent, the clock tells however wrong it
    is, and also when the run has waited in the outbox for hours.
    """
    return 0.0 if abs(now - sent_at) <= IN_STEP_S else now - sent_at


def begun_at(run: Run, behind_s: float, now: float) -> float:
    """When a run began by the coordinator's clock, which never lies in the future."""
    return max(0.0, min(run.started_at + behind_s, now))


def dated(run: Run, behind_s: float, now: float) -> Run:
    """The run with its start by the coordinator's clock."""
    started_at = begun_at(run, behind_s, now)
    return run if started_at == run.started_at else run.model_copy(update={"started_at": started_at})
