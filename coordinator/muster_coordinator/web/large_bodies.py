"""Takes large bodies, with which nobody can fill the memory or keep the event loop busy.

Few are in memory at a time. One is read and validated at a time, which holds the event loop; after a large one there is
a rest in proportion, so that they take at most a quarter of its time, however many are sent.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web

from muster_coordinator.web.problems import Problem
from muster_coordinator.web.requests import read_body

AT_ONCE = 8
"""Bodies in memory at a time."""

MOST_WAITING = 100
"""Maximum number of requests that wait for room; each holds a connection. Agents send again what is refused."""

SMALL_S = 0.02
"""What takes no longer needs no rest: a thousand nodes may send their report at the same time."""

REST = 3.0
"""The rest after a large body, as a multiple of the time that it took."""


class LargeBodies:
    """Takes bodies of up to `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._room = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def taken(self, request: web.Request) -> AsyncIterator[web.Request]:
        """The request with its body, to be read and validated in the context.

        Raises a Problem as `body` does, or if too many wait.
        """
        larger = request.clone(client_max_size=self._most_bytes)
        async with self._in_room():
            await read_body(larger)  # before its turn: a slow sender delays nobody
            async with self._turn:
                began = time.monotonic()
                try:
                    yield larger
                finally:
                    await asyncio.sleep(REST * max(0.0, time.monotonic() - began - SMALL_S))

    @asynccontextmanager
    async def _in_room(self) -> AsyncIterator[None]:
        if self._waiting >= MOST_WAITING:
            raise Problem(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{MOST_WAITING} reports wait already; send it again", Retry_After="5"
            )
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._room.release()
