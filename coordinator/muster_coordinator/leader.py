"""What leads the fleet: the store, the fleet, and around them broker, link, API and pipeline.

It starts from the inside out, so that no event arrives before the fleet is restored. It stops from the outside in, so
that every decision is stored.
"""

import asyncio
import hashlib
import socket
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import structlog
from aiohttp import web

from muster.config import Settings
from muster.http_server import serving
from muster.model import Json, Run
from muster.plugins import Plugins
from muster.systemd import READY, STOPPING, keep_watchdog_quiet, notify
from muster.version import __version__
from muster.wire.messages import new_id
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.audit import AppendAudit, AuditEntry
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
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.alarm_notifier import AlarmNotifier
from muster_coordinator.runtime.changes import ChangeStream
from muster_coordinator.runtime.fleet_numbers import fleet_numbers
from muster_coordinator.runtime.health_publisher import HealthPublisher
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.metrics import CoordinatorMetrics
from muster_coordinator.runtime.pipeline import OutgoingCommand, Pipeline
from muster_coordinator.runtime.run_notifier import RunNotifier
from muster_coordinator.runtime.settings.timetable import timetable_of
from muster_coordinator.runtime.settings.topology_file import read_topology
from muster_coordinator.runtime.stream import Stream
from muster_coordinator.runtime.transition_dispatcher import TransitionDispatcher
from muster_coordinator.store.acceptance_reports import AcceptanceReports
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store
from muster_coordinator.sweeps.recovery import AfterRestart
from muster_coordinator.sweeps.timetable import REMEMBERED_S
from muster_coordinator.web.acceptance import AcceptanceApi
from muster_coordinator.web.acceptance_routes import ACCEPTANCE_ROUTES
from muster_coordinator.web.guard import access_of
from muster_coordinator.web.handlers import Api
from muster_coordinator.web.node_lists import NodeListApi
from muster_coordinator.web.pages.fleet_reader import FleetReader
from muster_coordinator.web.pages.page_routes import Pages
from muster_coordinator.web.pages.seen_version import with_seen_version
from muster_coordinator.web.quarantine import QuarantineApi
from muster_coordinator.web.readiness import Readiness
from muster_coordinator.web.route_table import FLEET_ROUTES, QUARANTINE_ROUTES, openapi_text
from muster_coordinator.web.server import application
from muster_coordinator.web.viewer_routes import NODE_LIST_ROUTES, VIEWER_ROUTES
from muster_coordinator.web.viewers import ViewerApi

TICK_S = 0.25

ENDING_S = 1.5
"""How long a part may take to end before it is cancelled again; the farewell to the broker takes up to a second."""

log = structlog.get_logger()


async def lead(
    settings: Settings, plugins: Plugins, policy: Policy, api: tuple[socket.socket, str], stop: asyncio.Event
) -> None:
    """Leads the fleet until `stop` is set. `api` is the socket of the API, which it closes, and its URL.

    Errors as in `run`; LeadershipLost when another coordinator leads, DatabaseAway when nothing can be stored or read.
    """
    listener, api_url = api
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        store = await Store.open(settings)
        stack.push_async_callback(store.close)
        # After the database is locked, so that no other coordinator writes its token to data_dir.
        access = access_of(settings)
        epoch = await store.begin_epoch(time.time(), settings.leader.url or api_url)
        pipeline = await _restored(_fleet(settings, epoch, policy), store)
        pipeline.submit((AppendAudit(_leads(settings, policy, api_url, epoch, pipeline.clock())),))
        broker_url = await stack.enter_async_context(_broker(settings))
        link = CoordinatorLink(
            settings,
            broker_url=broker_url,
            api_url=api_url,
            epoch=epoch,
            deliver=pipeline.take,
            known=lambda: pipeline.fleet.names,
            is_known=pipeline.fleet.is_known,
            has_inventory=pipeline.fleet.inventories.is_known,
            clock=pipeline.clock,
        )
        retention = Retention(store.database, settings.store, pipeline.clock, pipeline.feed)
        dispatcher = TransitionDispatcher(plugins, pipeline.feed, pipeline.calm)
        poller = ActorPoller(plugins, settings.quarantine.resync_s, pipeline.take, pipeline.fleet.listed())
        health = _health_publisher(settings, plugins, pipeline)
        notifier, alarms = RunNotifier(plugins), AlarmNotifier(plugins, pipeline.feed)
        changes = change_stream(epoch, pipeline, link, poller)
        shell = Shell(pipeline, link, Stream(epoch), changes, notifier, dispatcher, alarms, poller, health, retention)
        app = application(shell.routes(store), access)
        async with shell.running(), serving(app, listener):
            log.info("coordinator_ready", api=api_url, broker=broker_url, epoch=epoch)
            notify(READY)
            if settings.quarantine.mode != "enforce" or await _ended_before(stop, poller.require_an_actor()):
                await stop.wait()
            notify(STOPPING)
            shell.stream.close()  # the server waits for its listeners
            shell.changes.close()


def _leads(settings: Settings, policy: Policy, api_url: str, epoch: int, now: float) -> AuditEntry:
    """The entry of the audit log: settings and policy may be other ones than before.

    The digest of the policy changes with any of its rows.
    """
    changed = settings.quarantine.model_dump(mode="json", exclude_defaults=True)
    details: Json = {
        "epoch": epoch,
        "muster": __version__,
        "quarantine": {"mode": settings.quarantine.mode, **changed},
        "policy": hashlib.sha256(repr(policy.rows).encode()).hexdigest()[:16],
    }
    return AuditEntry(id=new_id(), at=now, action="lead", subject=api_url, details=details)


async def _restored(fleet: Fleet, store: Store) -> Pipeline:
    """The pipeline of the fleet, which has taken what is stored."""
    pipeline = Pipeline(fleet, store)
    past = await store.sweeps_since(pipeline.clock() - REMEMBERED_S)
    pipeline.submit(fleet.restore(await store.saved(), pipeline.clock(), past))
    return pipeline


def _broker(settings: Settings) -> AbstractAsyncContextManager[str]:
    """The URL of the broker in the settings; without one, starts a broker and stops it at the end."""
    if settings.broker.url is not None:
        return nullcontext(settings.broker.url)
    # Imported only here: amqtt takes 0.1 s, and a fleet of several hosts has a broker of its own.
    from muster_coordinator.runtime.broker import embedded_broker  # noqa: PLC0415

    return embedded_broker(settings.broker.listen)


def _fleet(settings: Settings, epoch: int, policy: Policy) -> Fleet:
    return Fleet(
        name=settings.fleet,
        epoch=epoch,
        declared=read_topology(settings.topology_file),
        topology_labels=settings.topology_labels,
        bytes_a_day=settings.store.node_mb_per_day * 1e6,
        after_restart=AfterRestart(settings.sweeps.after_restart),
        timetable=timetable_of(settings),
        rules=settings.quarantine,
        policy=policy,
    )


def _health_publisher(settings: Settings, plugins: Plugins, pipeline: Pipeline) -> HealthPublisher:
    return HealthPublisher(
        plugins,
        settings.quarantine.resync_s,
        names=lambda: pipeline.fleet.names,
        view=lambda name: pipeline.fleet.node(name, pipeline.clock()),
        clock=pipeline.clock,
    )


def change_stream(epoch: int, pipeline: Pipeline, link: CoordinatorLink, poller: ActorPoller) -> ChangeStream:
    """The fleet of this pipeline for viewers."""
    return ChangeStream(
        epoch,
        names=lambda: pipeline.fleet.names,
        view=lambda name: pipeline.fleet.node(name, pipeline.clock()),
        numbers=lambda: fleet_numbers(pipeline.fleet, link, poller, pipeline.clock()),
        clock=pipeline.clock,
    )


@dataclass(frozen=True, slots=True)
class Shell:
    """The parts that run concurrently around the fleet."""

    pipeline: Pipeline
    link: CoordinatorLink
    stream: Stream
    changes: ChangeStream
    notifier: RunNotifier
    dispatcher: TransitionDispatcher
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
        acceptance = AcceptanceApi(pipeline=self.pipeline, reports=reports)
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
                await _end(sources)
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
                if isinstance(payload, Run):
                    self.notifier.enqueue(payload)
                elif isinstance(payload, NodeView):
                    self.health.note(payload)
                    self.changes.note(payload)
                elif isinstance(payload, NodeGone):
                    self.changes.drop(payload.name)
            case DispatchTransition():
                self.dispatcher.act(command)
            case SendAlarm(alarm=alarm):
                self.alarms.send(alarm)
            case ResendAlarm(alarm=alarm, taken_by=taken_by):
                self.alarms.enqueue(alarm, taken_by)
            case LogLoad() | LogNotBegun() | LogResumedByHand():
                _write_log(command)

    async def _lead(self, leading: Sequence[asyncio.Task[None]]) -> None:
        """Runs the link until a newer coordinator leads the fleet, then ends the parts that only the leader may run.

        The watchdog goes on: without its messages, a supervisor would restart this coordinator, which would lead again.
        """
        await self.link.run()
        await _end(leading)

    async def _tick(self) -> None:
        while True:
            self.pipeline.offer(Ticked())
            await asyncio.sleep(TICK_S)


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


async def _ended_before(stop: asyncio.Event, beginning: Coroutine[None, None, None]) -> bool:
    """Runs `beginning` to its end, unless `stop` is set first. Returns whether it has finished."""
    begun, stopped = asyncio.create_task(beginning), asyncio.create_task(stop.wait())
    await asyncio.wait((begun, stopped), return_when=asyncio.FIRST_COMPLETED)
    await _end((begun, stopped))
    if begun.cancelled():
        return False
    await begun
    return True


async def _end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels until all tasks end. Before Python 3.12, a wait in aiomqtt may lose a cancellation.

    It loses a cancellation that arrives together with the answer that it waits for.
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=ENDING_S)
