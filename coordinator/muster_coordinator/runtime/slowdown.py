"""How much less often agents run their background checks while the coordinator is overloaded.

The idea: agents keep what the coordinator cannot take, but not for ever, and each run that waits is late. So as long as
the overload lasts, agents make fewer runs. What is urgent does not depend on that: an event of a GPU or of the kernel
hastens its check, and sweeps and requested runs go on.

The slowdown goes up by one each SLOWER_EVERY_S, and down by one each FASTER_EVERY_S after the overload. Agents hear of
it in their acknowledgements, which takes up to a minute, so faster steps would go too far. At most it is MOST, where a
check that runs four times a minute runs once in 45 s.

Example: agents make three times what it takes, from 1,000 on. It counts as overloaded at 1,010 and asks for half as
many runs, and at 1,040 for a third. What has waited until then is taken at 1,130, so it asks for half at 1,190. If that
is too many, it is overloaded again, and asks for a third.
"""

import math

MOST = 3
SLOWER_EVERY_S = 30.0
FASTER_EVERY_S = 60.0


class Slowdown:
    """Agents run their background checks `times` less often: 1 is as often as planned."""

    def __init__(self) -> None:
        self.times = 1
        self._changed_at = -math.inf

    def note(self, now: float, *, is_overloaded: bool) -> None:
        """Notes whether the coordinator is overloaded now."""
        passed_s = now - self._changed_at
        if is_overloaded and self.times < MOST and passed_s >= SLOWER_EVERY_S:
            self._change(1, now)
        elif not is_overloaded and self.times > 1 and passed_s >= FASTER_EVERY_S:
            self._change(-1, now)

    def _change(self, by: int, now: float) -> None:
        self.times += by
        self._changed_at = now
