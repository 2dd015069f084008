"""Which runs of the outbox to send when, so that each reaches the database and none is lost on the way.

- What is new goes out at once, but only WINDOW runs are on the way at a time: what nobody takes costs little.
- The coordinator says through which number it has stored. If that does not rise for a while, or it says that it
  misses some, or somebody new answers, everything that is kept is sent again, from the oldest.
- While nobody answers, the pause between attempts doubles up to MAX_PATIENCE_S.
"""

import math

WINDOW = 500
PATIENCE_S = 5.0
MAX_PATIENCE_S = 60.0


class Delivery:
    """How far the runs of one stream have been sent and stored, by number."""

    def __init__(self) -> None:
        self.sent_through = 0
        self._stored_through = 0
        self._patience_s = PATIENCE_S
        self._due = math.inf

    def room(self, on_the_way: int) -> int:
        """How many runs may be sent now, while so many that were sent are not stored yet."""
        return max(0, WINDOW - on_the_way)

    def sent(self, through: int, now: float) -> None:
        """The runs up to `through` have been given to the broker."""
        self.sent_through = through
        self._due = min(self._due, now + self._patience_s)

    def stored(self, through: int, gap: bool, now: float) -> None:
        """The coordinator has stored the runs up to `through`; `gap` says that it misses some after them."""
        if through > self._stored_through:
            self._stored_through, self._patience_s = through, PATIENCE_S
        self._due = now + self._patience_s if self.sent_through > through else math.inf
        if gap:
            self.again()

    def again(self) -> None:
        """Begins with the oldest again."""
        self.sent_through, self._due = 0, math.inf

    def next_due(self) -> float:
        """When to give up waiting for the coordinator's word; infinity while nothing is on the way."""
        return self._due

    def tick(self, now: float) -> None:
        """Time has passed."""
        if now >= self._due:
            self._patience_s = min(2 * self._patience_s, MAX_PATIENCE_S)
            self.again()
