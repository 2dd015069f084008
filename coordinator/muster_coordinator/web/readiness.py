"""Whether the database can be written. Anyone can ask `/readyz` for it without a token."""

import asyncio
from collections.abc import Awaitable, Callable

STANDS_S = 1.0
"""A probe that succeeded is valid for this long. Kubernetes asks every ten seconds by default. Without this limit, a
client without a token could make the coordinator commit as often as it can ask.
"""


class Readiness:
    """Runs `probe` for requests, one at a time and at most once in STANDS_S while it succeeds."""

    def __init__(self, probe: Callable[[], Awaitable[None]]) -> None:
        self._probe = probe
        self._turn = asyncio.Lock()
        self._stands_until = 0.0

    async def check(self) -> None:
        """Raises the errors of the probe."""
        clock = asyncio.get_running_loop().time
        async with self._turn:
            if clock() >= self._stands_until:
                await self._probe()
                self._stands_until = clock() + STANDS_S
