"""How much less often agents run their background checks while the coordinator is overloaded.

The idea: agents keep what the coordinator cannot take, but not for ever, and each run that waits is late. So as long as
the overload lasts, agents make fewer runs. What is urgent does not depend on that: an event of a GPU or of the kernel
hastens its check, and sweeps and requested runs go on.

The slowdown goes up by one while it is overloaded, and down by one when it is not, at most once in CHANGED_EVERY_S.
It is at most MOST: a check that is planned four times a minute then runs once in 45 s.

Example: agents make three times what it takes, from 1,000 on. It counts as overloaded at 1,010 and asks for half as
many runs, and at 1,070 for a third. What has waited until then is taken at 1,120, so it asks for half at 1,140. If that
is too many, it is overloaded again, and asks for a third.
"""

import math

MOST = 3

CHANGED_EVERY_S = 60.0
"""What agents have gathered before a change comes for up to 45 s after it. To go on sooner goes too far."""


class Slowdown:
    """Agents run their background checks `times` less often: 1 is as often as planned."""

    def __init__(self) -> None:
        self.times = 1
        self._changed_at = -math.inf

    def note(self, now: float, *, is_overloaded: bool) -> None:
        """Notes whether the coordinator is overloaded now."""
        wanted = min(self.times + 1, MOST) if is_overloaded else max(self.times - 1, 1)
        if wanted != self.times and now - self._changed_at >= CHANGED_EVERY_S:
            self.times, self._changed_at = wanted, now
