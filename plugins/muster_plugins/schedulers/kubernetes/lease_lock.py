"""The leader holds a Lease of Kubernetes, as its own controllers do.

The leader writes the Lease every RENEW_S. The others watch its version: when it has not changed for DURATION_S by their
own clock, nobody holds it, and one of them writes itself into it. The API server takes one of several such writes. So
the leader knows until when nobody else can hold it: until DURATION_S after it asked for what the server has confirmed
last. No clocks of two hosts are compared.

While the API server is away, nobody can renew the Lease, and nobody leads.
"""

import asyncio
import socket
import uuid
from contextlib import suppress

import structlog

from muster.errors import MusterError, Unavailable
from muster.leader_lock import Certainty, LeadershipLost
from muster_plugins.schedulers.kubernetes.api_error import Absent, Conflict
from muster_plugins.schedulers.kubernetes.connection import Connection
from muster_plugins.schedulers.kubernetes.lease import FREE, LeaderLease, LeaseClient, held
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings

DURATION_S = 6

RENEW_S = 1.5

MARGIN_S = 1.0
"""How much earlier than the others the leader takes its Lease for over."""

LOOK_S = 0.5
"""How often a standby looks at the Lease."""

AGAIN_S = 0.5

ANSWERED_WITHIN_S = 2.0

log = structlog.get_logger()


class LeaseLock:
    """The lock; `url` is that of this coordinator's API."""

    has_rivals = True

    def __init__(self, settings: KubernetesSettings, url: str) -> None:
        self.leader_url: str | None = None
        self._client = LeaseClient(Connection(settings), settings.lease)
        self._holder = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._url = url
        self._certainty = Certainty()
        self._ours: LeaderLease | None = None
        self._seen_version = ""
        self._seen_at = 0.0
        self._next_look = 0.0
        self._has_answered = False
        self._is_away = False

    async def try_acquire(self) -> bool:
        """As in `LeaderLock`. False if the API server is away, or another coordinator leads."""
        now = asyncio.get_running_loop().time()
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_S
        try:
            async with asyncio.timeout(ANSWERED_WITHIN_S):
                is_ours = await self._try(now)
        except Conflict:  # another one was quicker
            return False
        except (MusterError, TimeoutError) as error:
            if not self._has_answered:
                raise Unavailable(f"leader.lock: cannot use the Lease: {_reason(error)}") from None
            self._note_away(error)
            return False
        self._has_answered, self._is_away = True, False
        return is_ours

    async def keep(self) -> None:
        """As in `LeaderLock`."""
        while True:
            await asyncio.sleep(RENEW_S)
            await self._renew()

    async def confirm(self) -> None:
        """As in `LeaderLock`."""
        await self._certainty.confirm()

    async def release(self) -> None:
        """As in `LeaderLock`."""
        self._certainty.end()
        ours, self._ours = self._ours, None
        with suppress(MusterError, TimeoutError):
            if ours is not None:
                async with asyncio.timeout(ANSWERED_WITHIN_S):
                    await self._client.update(ours, self._url, FREE)
        await self._client.close()

    async def _try(self, now: float) -> bool:
        lease = await self._client.read()
        if lease is None:
            self._hold(await self._client.create(self._url, held(self._holder, DURATION_S, 0)), now)
            return True
        if not self._is_free(lease, now):
            self.leader_url = lease.url
            return False
        spec = held(self._holder, DURATION_S, (lease.spec.transitions or 0) + 1)
        self._hold(await self._client.update(lease, self._url, spec), now)
        return True

    def _is_free(self, lease: LeaderLease, now: float) -> bool:
        if lease.metadata.version != self._seen_version:
            self._seen_version, self._seen_at = lease.metadata.version, now
        lasts_s = DURATION_S if lease.spec.duration_s is None else lease.spec.duration_s
        return lease.spec.holder in (None, "", self._holder) or now - self._seen_at >= lasts_s

    async def _renew(self) -> None:
        """Writes the Lease again. Raises LeadershipLost if that does not succeed while it lasts."""
        reason = "the process stood still"
        while (left_s := self._certainty.left_s) > 0:
            asked_at = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(min(left_s, ANSWERED_WITHIN_S)):
                    await self._write(asked_at)
                return
            except LeadershipLost:
                raise
            except (MusterError, TimeoutError) as error:
                reason = _reason(error)
            await asyncio.sleep(AGAIN_S)
        raise LeadershipLost(f"the leader's Lease could not be renewed: {reason}")

    async def _write(self, asked_at: float) -> None:
        assert self._ours is not None
        spec = held(self._holder, DURATION_S, self._ours.spec.transitions or 0)
        try:
            ours = await self._client.update(self._ours, self._url, spec)
        except Absent:
            raise LeadershipLost("somebody has deleted the leader's Lease") from None
        except Conflict:
            ours = await self._client.update(await self._still_ours(), self._url, spec)
        self._hold(ours, asked_at)

    async def _still_ours(self) -> LeaderLease:
        """The present version: our last write may have had its effect without an answer, or somebody has annotated it.

        Raises LeadershipLost if another coordinator holds it.
        """
        lease = await self._client.read()
        if lease is None or lease.spec.holder != self._holder:
            raise LeadershipLost("another coordinator holds the leader's Lease")
        return lease

    def _hold(self, lease: LeaderLease, asked_at: float) -> None:
        self._ours = lease
        self._certainty.extend(asked_at + DURATION_S - MARGIN_S)

    def _note_away(self, error: Exception) -> None:
        if not self._is_away:
            log.warning("lease_not_taken", error=_reason(error))
        self._is_away, self.leader_url = True, None


def _reason(error: Exception) -> str:
    return str(error) or "no answer in time"
