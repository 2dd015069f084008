"""Logs alarms and notifies plugins of them, once when they begin and once when they are over.

If a plugin fails, it is notified again after a wait that doubles up to five minutes. Only the latest notice for each
kind and subject is sent: if an alarm is over before a plugin has taken its begin, the plugin gets only the end. The
quarantine records which plugin has taken which notice, and after a restart requests the rest.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection
from contextlib import suppress

import structlog

from muster.alarm import Alarm
from muster.backoff import backoff_s
from muster.plugins import Plugins
from muster.transition import ActionOutcome, Effect
from muster_coordinator.model.quarantine_events import AlarmDelivered, AlarmTaken
from muster_coordinator.model.transitions import FIRST_RETRY_S, LONGEST_RETRY_S
from muster_coordinator.runtime.transition_dispatcher import outcome_of

HOOK = "muster_alarm"

TIMEOUT_S = 10.0

AT_ONCE = 4
"""Maximum number of concurrent notices to a plugin, so that one that hangs does not delay all others."""

log = structlog.get_logger()

_Job = tuple[str, str, str]
"""Plugin, kind and subject."""


class AlarmNotifier:
    """The alarms of which plugins must still be notified; `deliver` takes the events about the outcome."""

    def __init__(self, plugins: Plugins, deliver: Callable[[AlarmTaken | AlarmDelivered], object]) -> None:
        self._plugins = plugins
        self._deliver = deliver
        self._latest: dict[_Job, Alarm] = {}
        self._news: dict[_Job, asyncio.Event] = {}
        self._new: asyncio.Queue[_Job] = asyncio.Queue()
        self._room: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_ONCE))

    def send(self, alarm: Alarm) -> None:
        """Logs an alarm that begins or is over, and queues it for every plugin with the hook."""
        write = log.info if alarm.is_over else log.warning
        write(
            "quarantine_alarm",
            kind=alarm.kind,
            subject=alarm.subject,
            text=alarm.text,
            over=alarm.is_over,
            dry_run=alarm.dry_run,
        )
        self.enqueue(alarm)

    def enqueue(self, alarm: Alarm, taken_by: Collection[str] = ()) -> None:
        """Queues an alarm for every plugin with the hook that has not taken it yet."""
        plugins = [plugin for plugin in self._plugins.implementing(HOOK) if plugin not in taken_by]
        if not plugins:
            self._deliver(AlarmDelivered(alarm=alarm))
        for plugin in plugins:
            job = plugin, alarm.kind, alarm.subject
            self._latest[job] = alarm
            if job in self._news:
                self._news[job].set()
            else:
                self._news[job] = asyncio.Event()
                self._new.put_nowait(job)

    async def run(self) -> None:
        """Sends queued notices. Does not return."""
        async with asyncio.TaskGroup() as group:
            while True:
                job = await self._new.get()
                group.create_task(self._notify(job), name=f"{job[0]} about the alarm {job[1]}")

    async def _notify(self, job: _Job) -> None:
        """Sends a plugin the latest notice about an alarm until the plugin has taken it."""
        taken, failures = None, 0
        while self._latest[job] is not taken:
            self._news[job].clear()
            async with self._room[job[0]]:
                alarm = self._latest[job]
                outcome = await self._ask(job[0], alarm)
            if outcome is None or outcome.effect is not Effect.FAILED:
                taken, failures = alarm, 0
                self._deliver(AlarmTaken(alarm=alarm, plugin=job[0]))
                continue
            failures += 1
            wait_s = max(backoff_s(failures, FIRST_RETRY_S, LONGEST_RETRY_S), outcome.retry_after_s or 0.0)
            log.info("alarm_not_taken", plugin=job[0], kind=job[1], subject=job[2], detail=outcome.detail)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._news[job].wait()
        latest = self._latest.pop(job)
        del self._news[job]
        if not any(other[1:] == job[1:] for other in self._latest):
            self._deliver(AlarmDelivered(alarm=latest))

    async def _ask(self, plugin: str, alarm: Alarm) -> ActionOutcome | None:
        return outcome_of(await self._plugins.call_one(plugin, HOOK, TIMEOUT_S, alarm=alarm))
