"""What another host's clock says, told from when its messages were sent and came.

A message comes later than it was sent by the time it took plus what the two clocks differ by. The least of several
such differences is therefore the best guess at the clocks, and only the last few count, so that a clock which is set
right is believed again after that many messages.
"""

from collections import deque

REMEMBERED = 32


class PeerClock:
    """The offset of one peer's clock, in seconds."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=REMEMBERED)

    def heard(self, sent_at: float, now: float) -> None:
        """A message which the peer says it sent at `sent_at` came at `now`."""
        self._lags.append(now - sent_at)

    def here(self, instant: float) -> float:
        """A time on the peer's clock, on this host's."""
        return instant + min(self._lags, default=0.0)
