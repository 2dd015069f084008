"""Decides which runs of the outbox the agent sends, and when. No run is lost, however many messages are.

The idea is a sliding window with cumulative acknowledgements, as in TCP. The runs of a stream are numbered 1, 2, 3, …;
the agent deletes a run only after the coordinator has acknowledged it as stored. The coordinator ignores a run that it
has already, so sending twice does no harm and sending again is the answer to every doubt:

- The agent sends a new run at once, but at most a window of runs is sent and not acknowledged. The window begins with
  one report of up to `ONE_REPORT` runs, and doubles with each acknowledgement of new runs up to `WINDOW`.
- If no acknowledgement arrives for `PATIENCE_S`, the agent sends again, from the oldest run that it keeps, with a
  window of one report. It doubles the wait after each attempt that gets no answer, up to `MAX_PATIENCE_S`.
- If a run is urgent, the agent sends everything again up to that run, at most WINDOW runs: an overloaded
  coordinator may have dropped what was sent, and takes a run only after those before it.
- If the coordinator reports a gap or has time for a report that it had dropped, if another coordinator takes over, or
  the connection is new, the agent does the same at once. Each of the reports after a gap says that there is one: within
  `PATIENCE_S` only the first counts.

Prevents: a coordinator or broker that is too slow for the fleet gets everything again from each agent, which makes it
slower still. With one report of each agent, what it receives again is bounded however many runs wait. It may also drop
a report: had the agent sent more, these would be useless. So runs that come meanwhile wait, and travel together.

Example: the outbox keeps runs 1 to 800 and the coordinator is silent. The agent sends 1 to 50, and again after 5, 10,
20, 40, 60, 60, … seconds. The coordinator comes back and acknowledges 50. The agent sends 51 to 150, after the next
acknowledgement 151 to 350, and then as many as 500 at a time.

Every step takes constant time.
"""

import math

from muster.backoff import backoff_s

WINDOW = 500
ONE_REPORT = 50
PATIENCE_S = 5.0
MAX_PATIENCE_S = 60.0


class DeliveryWindow:
    """The numbers of one stream: sent through, stored through, and when to send again.

    `unanswered` is the number of attempts in a row that nothing was acknowledged after.
    """

    def __init__(self) -> None:
        self.sent_through = 0
        self._stored_through = 0
        self._window = ONE_REPORT
        self.unanswered = 0
        self._began_at = -math.inf
        self._due = math.inf

    def free(self, unacknowledged: int) -> int:
        """How many runs may be sent now, if `unacknowledged` runs are sent and not stored yet."""
        if self._window == ONE_REPORT and unacknowledged:
            return 0  # the one report may have had fewer runs
        return max(0, self._window - unacknowledged)

    def sent(self, through: int, now: float) -> None:
        """Notes that the broker has the runs up to `through`."""
        self.sent_through = through
        self._due = min(self._due, now + self._patience_s)

    def stored(self, through: int, gap: bool, now: float) -> None:
        """Notes that the coordinator has stored the runs up to `through`; `gap` if it misses runs after that."""
        has_progressed = through > self._stored_through
        if has_progressed:
            self._stored_through, self.unanswered = through, 0
            self._window = min(2 * self._window, WINDOW)
        self._due = now + self._patience_s if self.sent_through > through else math.inf
        if gap and (has_progressed or now - self._began_at >= PATIENCE_S):
            self.start_again(now)

    def start_again(self, now: float) -> None:
        """Sends again from the oldest run, one report at first."""
        self.sent_through, self._due, self._window, self._began_at = 0, math.inf, ONE_REPORT, now

    def hurry(self, now: float) -> None:
        """Sends again from the oldest run, as much as may be sent at once."""
        self.start_again(now)
        self._window = WINDOW

    def next_due(self) -> float:
        """When to stop waiting for an acknowledgement; infinity if none is expected."""
        return self._due

    def tick(self, now: float) -> None:
        """Starts again if the acknowledgement is overdue, and waits twice as long the next time."""
        if now >= self._due:
            self.unanswered += 1
            self.start_again(now)

    @property
    def _patience_s(self) -> float:
        return backoff_s(self.unanswered + 1, PATIENCE_S, MAX_PATIENCE_S)
