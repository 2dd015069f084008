"""Tells plugins what has happened, apart from everything else: a plugin that hangs delays other news only."""

import asyncio

import structlog

from muster.check import Transition
from muster.model import Run
from muster.plugins import Plugins

TIMEOUT_S = 10.0
WAITING = 10_000
"""News that may wait. When plugins fall further behind, the rest is dropped and counted; the API has it all."""

log = structlog.get_logger()


class Notices:
    """A queue in front of the notify hooks."""

    def __init__(self, plugins: Plugins) -> None:
        self.dropped = 0
        self._plugins = plugins
        self._wants_runs = plugins.implements("muster_result")
        self._queue: asyncio.Queue[Transition | Run] = asyncio.Queue(WAITING)

    def tell(self, news: Transition | Run) -> None:
        """Queues a transition for `muster_transition`, or a stored run for `muster_result` if any plugin wants runs."""
        if isinstance(news, Run) and not self._wants_runs:
            return
        try:
            self._queue.put_nowait(news)
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped == 1:
                log.error("plugins_too_slow", waiting=WAITING)

    async def run(self) -> None:
        """Calls the hooks, one piece of news after the other, for ever."""
        while True:
            news = await self._queue.get()
            if isinstance(news, Run):
                await self._plugins.call_each("muster_result", TIMEOUT_S, run=news)
            else:
                await self._plugins.call_each("muster_transition", TIMEOUT_S, transition=news)
