"""How much may be asked at an instant, so that it is not too much in a second. Pure."""

from math import inf


class TokenBucket:
    """Fills with `per_s` tokens a second, and holds those of one second: so many may be taken at once."""

    def __init__(self, per_s: float) -> None:
        self._refill_s = 1 / per_s
        self._full_at = -inf
        """When it will be full again if nobody takes any more; a second later than now it is empty."""

    def take(self, now: float) -> float:
        """Takes a token, which is there in so many seconds; whoever comes later waits for a later one."""
        self._full_at = max(self._full_at, now) + self._refill_s
        return max(0.0, self._full_at - now - 1.0)

    def take_if_there(self, now: float) -> None:
        """Takes a token if there is one: for who does not wait, but leaves the less for those who do."""
        if self._full_at + self._refill_s <= now + 1.0:
            self.take(now)
