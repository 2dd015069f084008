"""How fast the API server is asked."""

import asyncio
import time

from muster.token_bucket import TokenBucket


class Pace:
    """The turns of those who ask. Each goes together with one request."""

    def __init__(self, requests_per_s: float) -> None:
        self._bucket = TokenBucket(max(1.0, requests_per_s), requests_per_s)

    async def wait(self) -> None:
        """Returns when it is one's turn."""
        await asyncio.sleep(self._bucket.reserve(time.monotonic()))

    async def go_first(self) -> None:
        """Lets others wait instead."""
        if self._bucket.left(time.monotonic()) >= 1:
            self._bucket.spend(1)
