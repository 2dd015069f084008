"""Limits the rate of requests to the API server."""

import asyncio
import time

from muster.token_bucket import TokenBucket


class RateLimiter:
    """Gives waiting requests their turns. Each turn is for one request."""

    def __init__(self, requests_per_s: float) -> None:
        self._bucket = TokenBucket(max(1.0, requests_per_s), requests_per_s)

    async def wait(self) -> None:
        """Returns when it is the caller's turn."""
        await asyncio.sleep(self._bucket.reserve(time.monotonic()))

    async def go_first(self) -> None:
        """Takes a turn without waiting; other requests wait longer."""
        if self._bucket.left(time.monotonic()) >= 1:
            self._bucket.spend(1)
