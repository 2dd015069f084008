"""The parts that run concurrently around the fleet of the coordinator that leads, from their start to their end."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web

from muster.model import Data, Run
from muster.systemd import keep_watchdog_quiet
from muster_coordinator.model.events import (
    Announce,
    LogNotBegun,
    PublishReferences,
    SendAck,
    SendCommand,
    Ticked,
)
from muster_coordinator.model.load import LogLoad
from muster_coordinator.model.nodes import NodeGone, NodeView
from muster_coordinator.model.quarantine_events import DispatchTransition, LogResumedByHand, ResendAlarm, SendAlarm
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.alarm_notifier import AlarmNotifier
from muster_coordinator.runtime.artifact_sender import ArtifactSender
from muster_coordinator.runtime.changes import ChangeStream
from muster_coordinator.runtime.health_publisher import HealthPublisher
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.metrics import CoordinatorMetrics
from muster_coordinator.runtime.pipeline import OutgoingCommand, Pipeline
from muster_coordinator.runtime.run_notifier import RunNotifier
from muster_coordinator.runtime.stream import Stream
from muster_coordinator.runtime.transition_dispatcher import TransitionDispatcher
from muster_coordinator.store.acceptance_reports import AcceptanceReports
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store
from muster_coordinator.web.acceptance import AcceptanceApi
from muster_coordinator.web.acceptance_routes import ACCEPTANCE_ROUTES
from muster_coordinator.web.handlers import Api
from muster_coordinator.web.node_lists import NodeListApi
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.page_routes import Pages
from muster_coordinator.web.pages.seen_version import with_seen_version
from muster_coordinator.web.quarantine import QuarantineApi
from muster_coordinator.web.readiness import Readiness
from muster_coordinator.web.route_table import FLEET_ROUTES, QUARANTINE_ROUTES, openapi_text
from muster_coordinator.web.viewer_routes import NODE_LIST_ROUTES, VIEWER_ROUTES
from muster_coordinator.web.viewers import ViewerApi

TICK_S = 0.25

LATE_S = 1.0
"""When a message or a command has waited for this long, the coordinator is late. It usually takes milliseconds."""

ENDING_S = 1.5
"""How long a part may take to end before it is cancelled again; the farewell to the broker takes up to a second."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Shell:
    """The parts that run concurrently around the fleet."""

    pipeline: Pipeline
    link: CoordinatorLink
    stream: Stream
    changes: ChangeStream
    dispatcher: TransitionDispatcher
    notifier: RunNotifier
    artifacts: ArtifactSender
    alarms: AlarmNotifier
    poller: ActorPoller
    health: HealthPublisher
    retention: Retention

    def routes(self, store: Store) -> list[web.RouteDef]:
        """The whole API, and the pages."""
        figures = CoordinatorMetrics(
            pipeline=self.pipeline,
            link=self.link,
            stream=self.stream,
            notifier=self.notifier,
            artifacts=self.artifacts,
            retention=self.retention,
            poller=self.poller,
            unread=store.database.unread,
        )
        api = Api(
            pipeline=self.pipeline,
            store=store,
            stream=self.stream,
            link=self.link,
            figures=figures,
            readiness=Readiness(store.check_writable),
            disk=self.retention.budget.use,
            document=openapi_text,
        )
        quarantine = QuarantineApi(pipeline=self.pipeline, store=store, poller=self.poller)
        reports = AcceptanceReports(store.database)
        acceptance = AcceptanceApi(pipeline=self.pipeline, reports=reports, note_stored=self.artifacts.note_acceptance)
        lists, viewer = NodeListApi(pipeline=self.pipeline, store=store), ViewerApi(changes=self.changes)
        reader = FleetReader(
            pipeline=self.pipeline,
            store=store,
            link=self.link,
            poller=self.poller,
            disk=self.retention.budget.use,
        )
        return [
            *(route.bound(api) for route in FLEET_ROUTES),
            *(route.bound(lists) for route in NODE_LIST_ROUTES),
            *(route.bound(viewer) for route in VIEWER_ROUTES),
            *(route.bound(quarantine) for route in QUARANTINE_ROUTES),
            *(route.bound(acceptance) for route in ACCEPTANCE_ROUTES),
            *(with_seen_version(page, self.changes) for page in Pages(reader).routes()),
        ]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Runs the parts. At the end it first stops the sources of events, then stores the rest."""
        async with asyncio.TaskGroup() as group:
            pipeline = group.create_task(self.pipeline.run(self.carry_out), name="pipeline")
            notifier = group.create_task(self.notifier.run(), name="notifier")
            leading = [
                group.create_task(self.poller.run(), name="poller"),
                group.create_task(self.dispatcher.run(), name="dispatcher"),
                group.create_task(self.alarms.run(), name="alarms"),
                group.create_task(self.health.run(), name="health"),
                group.create_task(self.artifacts.run(), name="artifacts"),
            ]
            sources = [
                group.create_task(self._lead(leading), name="link"),
                group.create_task(self._tick(), name="ticks"),
                group.create_task(self.retention.run(), name="retention"),
                group.create_task(self.retention.compactor.run(), name="compactor"),
                group.create_task(keep_watchdog_quiet(lambda: not self.pipeline.is_stuck), name="watchdog"),
                *leading,
            ]
            try:
                yield
            finally:  # even if a part has failed: a part that lost its cancellation would never end
                await ended(sources)
            await self.pipeline.flush()
            pipeline.cancel()
            notifier.cancel()

    def carry_out(self, command: OutgoingCommand) -> None:
        """Carries out a command that is not for the store."""
        match command:
            case SendAck() | SendCommand() | PublishReferences():
                self.link.send(command)
            case Announce(_, payload):
                self.stream.publish(command)
                self._pass_on(payload)
            case DispatchTransition():
                self.dispatcher.act(command)
            case SendAlarm(alarm=alarm):
                self.alarms.send(alarm)
            case ResendAlarm(alarm=alarm, taken_by=taken_by):
                self.alarms.enqueue(alarm, taken_by)
            case LogLoad() | LogNotBegun() | LogResumedByHand():
                _write_log(command)

    def _pass_on(self, payload: Data) -> None:
        """Tells the parts that follow nodes, runs or sweeps what has been stored."""
        match payload:
            case Run():
                self.notifier.enqueue(payload)
                self.artifacts.note_run(payload)
            case SweepRecord():
                self.artifacts.note_sweep(payload)
            case NodeView():
                self.health.note(payload)
                self.changes.note(payload)
            case NodeGone():
                self.changes.drop(payload.name)

    async def _lead(self, leading: Sequence[asyncio.Task[None]]) -> None:
        """Runs the link until a newer coordinator leads the fleet, then ends the parts that only the leader may run.

        The watchdog goes on: without its messages, a supervisor would restart this coordinator, which would lead again.
        """
        await self.link.run()
        await ended(leading)

    async def _tick(self) -> None:
        clock = asyncio.get_running_loop().time
        before = clock()
        while True:
            now = clock()
            self.pipeline.offer(Ticked(lost_s(now - before, self.pipeline.late_s)))
            before = now
            await asyncio.sleep(TICK_S)


def lost_s(passed_s: float, late_s: float) -> float:
    """The `passed_s` seconds since the last tick if the coordinator is late, so that nodes are not to blame; else 0.

    A tick that is late itself shows that this process did nothing for a while, so that messages wait.
    """
    return passed_s if max(passed_s - TICK_S, late_s) >= LATE_S else 0.0


def _write_log(command: LogLoad | LogNotBegun | LogResumedByHand) -> None:
    match command:
        case LogResumedByHand(node=node, actor=actor, text=text):
            log.warning("resumed_by_hand", node=node, actor=actor, text=text)
        case LogNotBegun(origin, reason):
            log.warning("sweep_not_begun", origin=origin, reason=reason)
        case LogLoad(load) if load.is_overloaded:
            log.warning("coordinator_overloaded", lag_s=round(load.lag_s, 1), advice=load.advice)
        case LogLoad():
            log.info("coordinator_keeps_up")


async def ended(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels until all tasks end. Before Python 3.12, a wait in aiomqtt may lose a cancellation.

    It loses a cancellation that arrives together with the answer that it waits for.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=ENDING_S)
