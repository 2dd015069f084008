"""Connects the fleet's decisions with I/O: stores every command first, then carries it out.

Events go in through `feed`. The fleet returns commands, which wait in a queue. One task commits all waiting commands in
a single transaction, then carries out in order those that are not for the store. The next batch gathers during the
commit: batches grow with the load, and the number of commits does not. Scheduled runs that change nothing gather for
GATHER_S before that, since a commit costs as much as storing ten of them; anything else is committed at once, and takes
them along. A failed commit ends the daemon. The agents still have every run that was not acknowledged, and a
coordinator that cannot store must not give orders.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import structlog

from muster.log_limit import LogLimit
from muster.model import Run
from muster.wire.scheduled_runs import SCHEDULED
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.audit import AppendAudit, AuditEntry, StoredCommand
from muster_coordinator.model.events import (
    AgentMisbehaved,
    Announce,
    FleetEvent,
    GroupReplySeen,
    InventorySeen,
    LogNotBegun,
    PresenceSeen,
    PublishReferences,
    ReportSeen,
    SaveSweep,
    SendAck,
    SendCommand,
    StoreRuns,
)
from muster_coordinator.model.load import LogLoad
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.quarantine_events import DispatchTransition, LogResumedByHand, ResendAlarm, SendAlarm
from muster_coordinator.runtime.steady_clock import SteadyClock
from muster_coordinator.store.store import Store

BACKLOG = 5_000
"""Maximum number of commands that may wait to be stored before `take` waits, too."""

LEAST_BACKLOG = 200
"""As many may always wait: a commit of fewer costs more than what it stores."""

BATCH_S = 0.25
"""If a batch takes longer than this, fewer commands may wait: an urgent finding may have to wait for two batches."""

BACKLOG_BYTES = 4 << 20
"""Bytes of received reports that may wait to be stored. In memory they take about five times as much."""

PRESSING = 500
"""Number of commands that may wait to be stored before `calm` waits, so that tasks that are not urgent let these go
first.
"""

GATHER_S = 0.25
"""How long runs that change nothing wait for others. Nobody waits for them: their agents have kept them for longer.
2,000 nodes took 17.3 % of a core with 0.05 s, and take 14.0 % (two shared cores, SQLite).
"""

STUCK_S = 120.0
"""A batch that takes longer counts as stuck. A database failover or a busy disk takes up to a minute."""

_ROUTINE = (StoreRuns, SendAck)
"""The commands that may wait, besides the announcement of a scheduled run."""

OutgoingCommand = (
    SendAck
    | SendCommand
    | PublishReferences
    | Announce
    | LogLoad
    | LogNotBegun
    | LogResumedByHand
    | DispatchTransition
    | SendAlarm
    | ResendAlarm
)


log = structlog.get_logger()


class Pipeline:
    """The only access to the fleet, and from there to the store and the outlet."""

    def __init__(self, fleet: Fleet, store: Store, clock: Callable[[], float] | None = None) -> None:
        self.fleet = fleet
        self.clock = clock or SteadyClock()
        self._store = store
        self._waiting: list[StoredCommand] = []
        self._waiting_bytes = 0
        self._waiting_since: float | None = None  # by the clock of the event loop, as the two below
        self._stored_since: float | None = None  # the same for the batch that is in work
        self.failed = 0
        self.sweeps_ended = 0  # and stored: a list of sweeps has them only then
        self._log_limit = LogLimit()
        self._arrived = asyncio.Event()
        self._urgent = asyncio.Event()
        self._flushed = asyncio.Event()
        self._calm = asyncio.Event()
        self._calm.set()
        self._batch_begun: float | None = None
        self._most_waiting = BACKLOG

    @property
    def stuck_s(self) -> float:
        """How long the current batch has been in work, in seconds; 0 if there is none."""
        return 0.0 if self._batch_begun is None else asyncio.get_running_loop().time() - self._batch_begun

    @property
    def is_stuck(self) -> bool:
        """Whether storing hangs. A slow database or an absent broker does not take that long."""
        return self.stuck_s > STUCK_S

    @property
    def backlog(self) -> int:
        """Commands that wait to be stored."""
        return len(self._waiting)

    @property
    def backlog_age_s(self) -> float:
        """How long the oldest command has waited to be stored, in seconds."""
        since = self._waiting_since if self._stored_since is None else self._stored_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    @property
    def late_s(self) -> float:
        """How long commands wait to be stored and sent, or messages to be taken, whichever is longer, in seconds."""
        return max(self.backlog_age_s, self.fleet.load.lag_s)

    def feed(self, event: FleetEvent, entry: AuditEntry | None = None) -> asyncio.Event:
        """Passes an event to the fleet; may raise Refused. If it is a person's, the audit log gets the `entry`.

        The returned event is set when all commands are carried out. They wait for no others. They are stored together
        with the entry, or not at all.
        """
        commands = self.fleet.handle(event, self.clock())
        flushed = self.submit(commands if entry is None else (AppendAudit(entry), *commands))
        self._urgent.set()
        return flushed

    def submit(self, commands: Iterable[StoredCommand]) -> asyncio.Event:
        """Queues commands that the fleet has already returned."""
        commands = tuple(commands)
        if commands and not self._waiting:
            self._waiting_since = asyncio.get_running_loop().time()
        self._waiting.extend(commands)
        if self.backlog > PRESSING:
            self._calm.clear()
        if self.backlog > PRESSING or not all(map(is_routine, commands)):
            self._urgent.set()
        self._arrived.set()
        return self._flushed

    def offer(self, event: FleetEvent) -> None:
        """Feeds an event without a waiting caller, such as a message of a node or a tick. Never raises.

        An exception of the fleet is a bug. A node that can cause it must not end the coordinator: the pipeline drops
        the event, logs it, counts it in `failed` and holds it against the node.
        """
        try:
            self.submit(self.fleet.handle(event, self.clock()))
        except Exception as error:
            self._note_failed(event, error)

    async def take(self, events: Iterable[FleetEvent]) -> None:
        """Offers events of nodes and schedulers. Returns when the backlog is small enough for more."""
        for event in events:
            self.offer(event)
            if isinstance(event, ReportSeen):
                self._waiting_bytes += event.size
        while self.backlog > self._most_waiting or self._waiting_bytes > BACKLOG_BYTES:
            await self._flushed.wait()

    def _note_failed(self, event: FleetEvent, error: Exception) -> None:
        self.failed += 1
        kind = type(error).__name__
        if (left_out := self._log_limit.admit(kind, time.monotonic())) is not None:
            log.exception("message_failed", event_kind=type(event).__name__, left_out=left_out)
        if isinstance(event, PresenceSeen | InventorySeen | ReportSeen | GroupReplySeen):
            with suppress(Exception):  # the same bug may make this fail, too
                self.feed(AgentMisbehaved(event.message.node, Misconduct.FAILED, kind))

    async def flush(self) -> None:
        """Returns when all that waits is carried out."""
        self._arrived.set()
        self._urgent.set()
        await self._flushed.wait()

    async def calm(self, within_s: float) -> None:
        """Returns when little is left to store, or after `within_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._calm.wait()

    async def run(self, outlet: Callable[[OutgoingCommand], None]) -> None:
        """Stores and carries out the queued commands. Does not return; raises the errors of the store.

        `outlet` carries out a command that is not for the store; it is called between two commits and must not block.
        """
        while True:
            await self._arrived.wait()
            await self._gather()
            self._arrived.clear()
            self._urgent.clear()
            commands, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._stored_since, self._waiting_since = self._waiting_since, None
            flushed, self._flushed = self._flushed, asyncio.Event()
            self._batch_begun = asyncio.get_running_loop().time()
            await self._store.write(commands)
            self._stored_since = None
            self.sweeps_ended += sum(map(ends_a_sweep, commands))
            for command in outgoing(commands):
                outlet(command)
            flushed.set()
            self._most_waiting = most_waiting(len(commands), self.stuck_s)
            self._batch_begun = None
            if self.backlog <= PRESSING:
                self._calm.set()

    async def _gather(self) -> None:
        """Returns when something that must not wait has arrived, or after GATHER_S."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GATHER_S):
                await self._urgent.wait()


def most_waiting(commands: int, took_s: float) -> int:
    """How many commands may wait, if the last batch of `commands` took that long: as many as take BATCH_S."""
    return BACKLOG if took_s * BACKLOG <= commands * BATCH_S else max(LEAST_BACKLOG, int(commands * BATCH_S / took_s))


def is_routine(command: StoredCommand) -> bool:
    """Whether the command follows from a scheduled run that changes nothing, so that it may wait for others."""
    if isinstance(command, Announce):
        return isinstance(command.payload, Run) and command.payload.cause == SCHEDULED
    return isinstance(command, _ROUTINE)


def ends_a_sweep(command: StoredCommand) -> bool:
    """Whether the command stores the end of a sweep."""
    return isinstance(command, SaveSweep) and command.record.ended_at is not None


def outgoing(commands: list[StoredCommand]) -> list[OutgoingCommand]:
    """The commands that are not for the store, in order.

    Only the last ack of a stream is kept: it covers the others.
    """
    said = [command for command in commands if isinstance(command, OutgoingCommand)]
    last = {_stream_of(command): index for index, command in enumerate(said) if isinstance(command, SendAck)}
    return [
        command
        for index, command in enumerate(said)
        if not isinstance(command, SendAck) or last[_stream_of(command)] == index
    ]


def _stream_of(command: SendAck) -> tuple[str, str]:
    return command.node, command.ack.stream
