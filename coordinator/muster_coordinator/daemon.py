"""The coordinator as a process: leads the fleet, or stands by while another coordinator leads it."""

import asyncio
import gc
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import structlog

from muster.backoff import backoff_s
from muster.config import HttpSettings, Settings
from muster.errors import MusterError
from muster.http_server import serving
from muster.leader_lock import LeaderLock, LeadershipLost
from muster.plugins import Plugins
from muster.systemd import READY, keep_watchdog_quiet, notify
from muster_coordinator.leader import lead
from muster_coordinator.runtime.leadership.leader_lock import leader_lock_of
from muster_coordinator.runtime.settings.acceptance import require_tests
from muster_coordinator.runtime.settings.policy import known_checks, policy_of
from muster_coordinator.store.database import DatabaseAway
from muster_coordinator.web.server import listen
from muster_coordinator.web.standby import standby_application

TRY_S = 0.25
"""How often a standby tries to lead."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""How long a coordinator stands by after it has failed as the leader, so that another one may lead."""

CLOSING_S = 2.0
"""How long plugins may take to close their connections and files."""

COLLECT_AFTER = (100_000, 50, 100)
"""Threshold of Python's search for cyclic garbage. Reports have none, but the search takes a quarter of their time."""

log = structlog.get_logger()


async def run(settings: Settings, plugins: Plugins) -> None:
    """Serves until SIGINT or SIGTERM. Raises SettingsError or Unavailable if it cannot start or go on."""
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    failed: BaseException | None = None
    try:
        await serve(settings, plugins, stop)
    except* MusterError as group:
        failed = first_error(group)
    if failed is not None:
        raise failed


async def serve(settings: Settings, plugins: Plugins, stop: asyncio.Event) -> None:
    """Leads the fleet while no other coordinator does, and stands by otherwise, until `stop` is set. Errors: see `run`.

    A database that several coordinators share may go and come back. What one has in memory is dropped then, and it
    starts again from what is stored; the agents have kept the rest.
    """
    checks = known_checks(plugins)
    policy = policy_of(settings, checks)
    require_tests(settings.quarantine, checks)
    listener, api_url = listen(settings.http.listen)
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        lock = leader_lock_of(settings, plugins, settings.leader.url or api_url)
        stack.push_async_callback(plugins.call_each, "muster_close", CLOSING_S)
        stack.push_async_callback(lock.release)
        failures, pause_s = 0, 0.0
        while await stand_by(lock, listener, settings.http, stop, pause_s):
            began = time.monotonic()
            try:
                async with held(lock, plugins):
                    await lead(settings, plugins, policy, (listener.dup(), api_url), stop)
            except* (LeadershipLost, DatabaseAway) as group:
                if not lock.has_rivals:
                    raise
                log.error("leadership_lost", reason=str(first_error(group)))
            finally:
                gc.unfreeze()
                await lock.release()
            failures = 1 if time.monotonic() - began > LONGEST_PAUSE_S else failures + 1
            pause_s = backoff_s(failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)


@asynccontextmanager
async def held(lock: LeaderLock, plugins: Plugins) -> AsyncIterator[None]:
    """Keeps the lock, and lets no plugin be called while that is uncertain. Raises LeadershipLost in a group."""
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(lock.keep(), name="leader lock")
        with plugins.held_back_by(lock.confirm):
            yield
        keeping.cancel()


def first_error(error: BaseException) -> BaseException:
    """The first error of a group of groups."""
    return first_error(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def stand_by(
    lock: LeaderLock, listener: socket.socket, http: HttpSettings, stop: asyncio.Event, pause_s: float
) -> bool:
    """Serves as a standby until this coordinator may lead, for `pause_s` at least. False when `stop` is set before."""
    if stop.is_set() or (not pause_s and await lock.try_acquire()):
        return not stop.is_set()
    app = standby_application(lambda: lock.leader_url, http)
    async with serving(app, listener.dup()), asyncio.TaskGroup() as tasks:
        watchdog = tasks.create_task(keep_watchdog_quiet(lambda: True), name="watchdog")
        log.info("coordinator_stands_by", leader=lock.leader_url)
        notify(READY)
        leads, wait_s = False, pause_s or TRY_S
        while not leads and not await _is_set_within(stop, wait_s):
            leads, wait_s = await lock.try_acquire(), TRY_S
        watchdog.cancel()
    return leads


async def _is_set_within(event: asyncio.Event, within_s: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
    return event.is_set()
