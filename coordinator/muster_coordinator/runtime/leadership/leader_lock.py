"""What a lock promises that only one coordinator can hold, and the lock of a coordinator that has no rivals."""

import asyncio
from typing import Protocol

from muster.config import Settings
from muster_coordinator.runtime.leadership.postgres_lock import PostgresLock
from muster_coordinator.store.database import engine_without_pool


class LeaderLock(Protocol):
    """The lock that the leader holds. `leader_url` is the URL of the leader's API, None if it is not known.

    `has_rivals` says whether other coordinators may hold it.
    """

    has_rivals: bool
    leader_url: str | None

    async def try_acquire(self) -> bool:
        """Takes the lock if nobody holds it. Raises Unavailable if what grants the lock has never answered."""

    async def keep(self) -> None:
        """Keeps the lock until cancelled. Raises LeadershipLost when it is lost."""

    async def confirm(self) -> None:
        """Returns while nobody else can hold the lock; waits if that is uncertain."""

    async def release(self) -> None:
        """Lets others take the lock at once."""


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


def leader_lock_of(settings: Settings) -> LeaderLock:
    """The lock that these settings ask for. Raises SettingsError if `store.url` is wrong."""
    engine = engine_without_pool(settings)
    if engine.dialect.name == "sqlite":
        return OnlyCoordinator()
    return PostgresLock(engine)
