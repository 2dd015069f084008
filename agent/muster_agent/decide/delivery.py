"""Decides which runs of the outbox the agent sends, and when. No run is lost, however many messages are.

The idea is a sliding window with cumulative acknowledgements, as in TCP. The runs of a stream are numbered 1, 2, 3, …;
the agent deletes a run only after the coordinator has acknowledged it as stored. The coordinator ignores a run that it
has already, so sending twice does no harm and sending again is the answer to every doubt:

- The agent sends a new run at once, but at most `WINDOW` runs are sent and not acknowledged. A coordinator that stores
  nothing therefore costs little traffic.
- If no acknowledgement arrives for `PATIENCE_S`, the agent sends everything again, from the oldest run that it keeps.
  It doubles the wait after each attempt that gets no answer, up to `MAX_PATIENCE_S`.
- If the coordinator reports a gap, or another coordinator takes over, the agent sends everything again at once.

Example: the outbox keeps runs 1 to 800 and the broker loses the report with 51 to 100. The agent sends 1 to 500. The
coordinator stores 1 to 50, then receives 101 to 150, sees the gap and acknowledges "50, gap". The agent deletes 1 to 50
and sends 51 to 550. If the coordinator is silent instead, the agent repeats after 5, 10, 20, 40, 60, 60, … seconds.

Every step takes constant time.
"""

import math

from muster.backoff import backoff_s

WINDOW = 500
PATIENCE_S = 5.0
MAX_PATIENCE_S = 60.0


class DeliveryWindow:
    """The numbers of one stream: sent through, stored through, and when to send again."""

    def __init__(self) -> None:
        self.sent_through = 0
        self._stored_through = 0
        self._unanswered = 0
        self._due = math.inf

    def free(self, unacknowledged: int) -> int:
        """How many runs may be sent now, if `unacknowledged` runs are sent and not stored yet."""
        return max(0, WINDOW - unacknowledged)

    def sent(self, through: int, now: float) -> None:
        """Notes that the broker has the runs up to `through`."""
        self.sent_through = through
        self._due = min(self._due, now + self._patience_s)

    def stored(self, through: int, gap: bool, now: float) -> None:
        """Notes that the coordinator has stored the runs up to `through`; `gap` if it misses runs after that."""
        if through > self._stored_through:
            self._stored_through, self._unanswered = through, 0
        self._due = now + self._patience_s if self.sent_through > through else math.inf
        if gap:
            self.start_again()

    def start_again(self) -> None:
        """Sends again from the oldest run."""
        self.sent_through, self._due = 0, math.inf

    def next_due(self) -> float:
        """When to stop waiting for an acknowledgement; infinity if none is expected."""
        return self._due

    def tick(self, now: float) -> None:
        """Starts again if the acknowledgement is overdue, and waits twice as long the next time."""
        if now >= self._due:
            self._unanswered += 1
            self.start_again()

    @property
    def _patience_s(self) -> float:
        """How long to wait for the next acknowledgement."""
        return backoff_s(self._unanswered + 1, PATIENCE_S, MAX_PATIENCE_S)
