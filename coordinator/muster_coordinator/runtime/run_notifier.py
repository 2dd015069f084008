"""Tells plugins which runs were stored, apart from everything else: a plugin that hangs delays other news only."""

import asyncio

import structlog

from muster.model import Run
from muster.plugins import Plugins

TIMEOUT_S = 10.0
WAITING = 10_000
"""News that may wait. When plugins fall further behind, the rest is dropped and counted; the API has it all."""

log = structlog.get_logger()


class RunNotifier:
    """A queue in front of the hook."""

    def __init__(self, plugins: Plugins) -> None:
        self.dropped = 0
        self._plugins = plugins
        self._wants_runs = bool(plugins.implementing("muster_result"))
        self._queue: asyncio.Queue[Run] = asyncio.Queue(WAITING)

    def tell(self, run: Run) -> None:
        """Queues a stored run for `muster_result` if any plugin wants runs."""
        if not self._wants_runs:
            return
        try:
            self._queue.put_nowait(run)
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped == 1:
                log.error("plugins_too_slow", waiting=WAITING)

    async def run(self) -> None:
        """Calls the hook for one run after the other, for ever."""
        while True:
            await self._plugins.call_each("muster_result", TIMEOUT_S, run=await self._queue.get())
