"""How fast the API server is asked."""

import asyncio
import time

from muster_plugins.schedulers.kubernetes.token_bucket import TokenBucket


class Pace:
    """The turns of those who ask. Each goes together with one request."""

    def __init__(self, requests_per_s: float) -> None:
        self._bucket = TokenBucket(requests_per_s)

    async def wait(self) -> None:
        """Returns when it is one's turn."""
        await asyncio.sleep(self._bucket.take(time.monotonic()))

    async def go_first(self) -> None:
        """Lets others wait instead."""
        self._bucket.take_if_there(time.monotonic())
