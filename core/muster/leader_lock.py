"""What a lock promises that only one coordinator can hold. A plugin may offer one (`muster_leader_lock`)."""

import asyncio
from typing import Protocol

from muster.errors import Unavailable


class LeadershipLost(Unavailable):
    """Another coordinator leads the fleet, or may do so by now. This one must not store or do anything more."""


class LeaderLock(Protocol):
    """The lock that the leader holds. `leader_url` is the URL of the leader's API, None if it is not known.

    `has_rivals` says whether other coordinators may hold it.
    """

    has_rivals: bool
    leader_url: str | None

    async def try_acquire(self) -> bool:
        """Takes the lock if nobody holds it. Called four times a second.

        Raises Unavailable if what grants the lock has never answered.
        """

    async def keep(self) -> None:
        """Keeps the lock until cancelled. Raises LeadershipLost when it is lost."""

    async def confirm(self) -> None:
        """Returns while nobody else can hold the lock; waits if that is uncertain."""

    async def release(self) -> None:
        """Lets others take the lock at once, and closes connections."""


class Certainty:
    """Until when it is certain that nobody else holds a lock, by the clock of the event loop.

    That clock goes on while the process is paused.
    """

    def __init__(self) -> None:
        self._until = 0.0
        self._extended = asyncio.Event()

    @property
    def left_s(self) -> float:
        """How long it still lasts; not above 0 if it is over."""
        return self._until - asyncio.get_running_loop().time()

    def extend(self, until: float) -> None:
        """It lasts until then."""
        self._until = until
        self._extended.set()

    def end(self) -> None:
        """It is over."""
        self._until = 0.0

    async def confirm(self) -> None:
        """Returns while it lasts; otherwise waits until it is extended."""
        while self.left_s <= 0:
            self._extended.clear()
            await self._extended.wait()
