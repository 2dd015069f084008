"""The lock that the settings ask for, and that of a coordinator that has no rivals."""

import asyncio

from muster.config import DATABASE_LOCK, Settings
from muster.errors import SettingsError, unknown
from muster.leader_lock import LeaderLock
from muster.plugins import Plugins
from muster_coordinator.runtime.leadership.postgres_lock import PostgresLock
from muster_coordinator.store.opening import engine_without_pool

HOOK = "muster_leader_lock"


class OnlyCoordinator:
    """The lock of a coordinator with SQLite, which nobody shares: the store locks the file itself."""

    has_rivals = False
    leader_url: str | None = None

    async def try_acquire(self) -> bool:
        """Always."""
        return True

    async def keep(self) -> None:
        """For ever."""
        await asyncio.Event().wait()

    async def confirm(self) -> None:
        """At once."""

    async def release(self) -> None:
        """Nothing is held."""


def leader_lock_of(settings: Settings, plugins: Plugins, url: str) -> LeaderLock:
    """The lock that these settings ask for; `url` is that of this coordinator's API. Raises SettingsError."""
    engine = engine_without_pool(settings)
    is_shared = engine.dialect.name != "sqlite"
    if settings.leader.lock == DATABASE_LOCK:
        return PostgresLock(engine) if is_shared else OnlyCoordinator()
    if not is_shared:
        raise SettingsError("leader.lock: several coordinators need a database that they share: set store.url")
    for answer in plugins.contribute(HOOK, url=url):
        if answer.plugin == settings.leader.lock and answer.value is not None:
            lock: LeaderLock = answer.value
            return lock
    offers = (DATABASE_LOCK, *plugins.implementing(HOOK))
    raise SettingsError(f"leader.lock: {unknown('lock', settings.leader.lock, offers)}")
