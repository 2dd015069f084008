"""Passes documents about sweeps, acceptances and failed runs to plugins that store them.

Each plugin has its own queue, so that one whose store is away delays no other. A document is made for each try: what
waits takes little memory. If a plugin fails, it is called again with the same documents after a wait
that doubles up to five minutes, TRIES times in all, which takes about 40 minutes; then they are given up and counted.
What waits when the coordinator ends is given up, too. Nothing is lost by that: the database has it all.

If a check fails again and again on a node, only its first failed run is stored.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from muster.artifact import Artifact
from muster.backoff import backoff_s
from muster.errors import Unavailable
from muster.model import Run, Verdict
from muster.plugins import Plugins
from muster.transition import ActionOutcome, Effect
from muster_coordinator.model.acceptance_records import AcceptanceRecord
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.runtime.transition_dispatcher import outcome_of
from muster_coordinator.views.artifacts import artifacts_of_acceptance, artifacts_of_run, artifacts_of_sweep

HOOK = "muster_artifacts"

TIMEOUT_S = 60.0
WAITING = 1000
"""Maximum number of sweeps, acceptances and runs that wait for one plugin. Further ones are dropped and counted."""

TRIES = 16
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 300.0

log = structlog.get_logger()

Documented = SweepRecord | AcceptanceRecord | Run


class ArtifactSender:
    """A queue in front of the hook for each plugin that implements it; `read_sweep` reads a sweep with its groups."""

    def __init__(self, plugins: Plugins, read_sweep: Callable[[str], Awaitable[SweepRecord | None]]) -> None:
        self.dropped = 0
        self._plugins = plugins
        self._read_sweep = read_sweep
        self._queues: dict[str, asyncio.Queue[Documented]] = {
            plugin: asyncio.Queue(WAITING) for plugin in plugins.implementing(HOOK)
        }
        self._failing: set[tuple[str, str]] = set()

    def note_sweep(self, summary: SweepRecord) -> None:
        """Queues a sweep if it has ended."""
        if summary.ended_at is not None:
            self._enqueue(summary)

    def note_run(self, run: Run) -> None:
        """Queues a run that failed, unless the check failed in its last run on this node, too."""
        key = run.node, run.check
        if run.verdict is not Verdict.FAIL:
            self._failing.discard(key)
        elif key not in self._failing:
            self._failing.add(key)
            self._enqueue(run)

    def note_acceptance(self, record: AcceptanceRecord) -> None:
        """Queues an acceptance that was received."""
        self._enqueue(record)

    async def run(self) -> None:
        """Sends what is queued."""
        async with asyncio.TaskGroup() as group:
            for plugin, queue in [*self._queues.items()]:
                group.create_task(self._serve(plugin, queue), name=f"artifacts of {plugin}")

    def _enqueue(self, documented: Documented) -> None:
        for plugin, queue in self._queues.items():
            try:
                queue.put_nowait(documented)
            except asyncio.QueueFull:
                self._drop(plugin, f"{WAITING} wait already")

    async def _serve(self, plugin: str, queue: asyncio.Queue[Documented]) -> None:
        """Sends what is queued until the plugin says that it stores nothing."""
        while await self._send(plugin, await queue.get()):
            pass
        del self._queues[plugin]

    async def _send(self, plugin: str, documented: Documented) -> bool:
        """Calls the plugin until it has stored the documents or they are given up. Returns whether it wants others."""
        detail = ""
        for tried in range(TRIES):
            if tried:
                await asyncio.sleep(backoff_s(tried, FIRST_RETRY_S, LONGEST_RETRY_S))
            outcome = await self._ask(plugin, documented)
            if outcome is None or outcome.effect is not Effect.FAILED:
                return outcome is not None
            if outcome.detail != detail:
                detail = outcome.detail
                log.warning("artifacts_not_stored", plugin=plugin, detail=detail)
        self._drop(plugin, detail)
        return True

    async def _ask(self, plugin: str, documented: Documented) -> ActionOutcome | None:
        try:
            artifacts = await self._made(documented)
        except Unavailable as error:  # the database is away
            return ActionOutcome(effect=Effect.FAILED, detail=str(error))
        return outcome_of(await self._plugins.call_one(plugin, HOOK, TIMEOUT_S, artifacts=artifacts))

    async def _made(self, documented: Documented) -> tuple[Artifact, ...]:
        match documented:
            case Run():
                return artifacts_of_run(documented)
            case AcceptanceRecord():
                return artifacts_of_acceptance(documented)
        record = await self._read_sweep(documented.id)
        return () if record is None else await asyncio.to_thread(artifacts_of_sweep, record)

    def _drop(self, plugin: str, why: str) -> None:
        self.dropped += 1
        log.error("artifacts_dropped", plugin=plugin, dropped=self.dropped, why=why)
