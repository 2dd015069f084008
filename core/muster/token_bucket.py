"""A limit on a rate: tokens that refill at a constant rate up to a burst. Pure.

Written by hand, because libraries such as aiolimiter wait on the clock of an event loop, and decisions are given `now`.
"""


class TokenBucket:
    """A bucket that is full with `burst` tokens at first and refills by `per_s` tokens a second.

    Example: `TokenBucket(6, 0.1)` allows six at once, and one more every ten seconds. A clock that was set back refills
    nothing.
    """

    __slots__ = ("_at", "_burst", "_left", "_per_s")

    def __init__(self, burst: float, per_s: float) -> None:
        self._burst = burst
        self._per_s = per_s
        self._left = burst
        self._at = float("-inf")

    def left(self, now: float) -> float:
        """The tokens that are left at the time `now`, in seconds; negative if more were spent than there were."""
        passed_s, self._at = max(0.0, now - self._at), now
        self._left = min(self._burst, self._left + passed_s * self._per_s)
        return self._left

    def spend(self, tokens: float) -> None:
        """Takes tokens out, even more than are left."""
        self._left -= tokens

    def reserve(self, now: float) -> float:
        """Takes one token and returns in how many seconds it is available. A later reservation waits longer."""
        left = self.left(now) - 1
        self._left = left
        return max(0.0, -left / self._per_s)
