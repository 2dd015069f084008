"""Passes stored runs to plugins in its own task: a plugin that hangs delays only other notices."""

import asyncio

import structlog

from muster.model import Run
from muster.plugins import Plugins

TIMEOUT_S = 10.0
WAITING = 10_000
"""Maximum number of waiting runs. If plugins fall further behind, further runs are dropped and counted; the API has
them all.
"""

log = structlog.get_logger()


class RunNotifier:
    """A queue of runs in front of the hook `muster_result`."""

    def __init__(self, plugins: Plugins) -> None:
        self.dropped = 0
        self._plugins = plugins
        self._wants_runs = bool(plugins.implementing("muster_result"))
        self._queue: asyncio.Queue[Run] = asyncio.Queue(WAITING)

    def enqueue(self, run: Run) -> None:
        """Queues a stored run if any plugin implements the hook."""
        if not self._wants_runs:
            return
        try:
            self._queue.put_nowait(run)
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped == 1:
                log.error("plugins_too_slow", waiting=WAITING)

    async def run(self) -> None:
        """Calls the hook for one run after the other. Does not return."""
        while True:
            await self._plugins.call_each("muster_result", TIMEOUT_S, run=await self._queue.get())
