"""Whether the database takes writes. `/readyz` asks it for anybody, without a token."""

import asyncio
from collections.abc import Awaitable, Callable

STANDS_S = 1.0
"""A probe that succeeded stands for so long. Kubernetes asks every ten seconds by default. Without this limit, a client
without a token could make the coordinator commit as often as it can ask."""


class Readiness:
    """Runs `probe` for those that ask, one at a time and at most once in STANDS_S while it succeeds."""

    def __init__(self, probe: Callable[[], Awaitable[None]]) -> None:
        self._probe = probe
        self._turn = asyncio.Lock()
        self._stands_until = 0.0

    async def check(self) -> None:
        """Raises what the probe raises."""
        clock = asyncio.get_running_loop().time
        async with self._turn:
            if clock() >= self._stands_until:
                await self._probe()
                self._stands_until = clock() + STANDS_S
