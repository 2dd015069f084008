"""What leads the fleet: the store, the fleet, and around them broker, link, API and pipeline.

It starts from the inside out, so that no event arrives before the fleet is restored. It stops from the outside in, so
that every decision is stored.
"""

import asyncio
import gc
import hashlib
import secrets
import socket
import time
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext

import structlog

from muster.config import Settings
from muster.garbage import no_collection
from muster.http_server import serving
from muster.model import Json
from muster.plugins import Plugins
from muster.systemd import READY, STOPPING, notify
from muster.version import __version__
from muster.wire.messages import new_id
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.audit import AppendAudit, AuditEntry
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.alarm_notifier import AlarmNotifier
from muster_coordinator.runtime.artifact_sender import ArtifactSender
from muster_coordinator.runtime.changes import ChangeStream
from muster_coordinator.runtime.fleet_numbers import fleet_numbers
from muster_coordinator.runtime.health_publisher import HEARTBEAT_S, HealthPublisher
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.runtime.run_notifier import RunNotifier
from muster_coordinator.runtime.settings.timetable import timetable_of
from muster_coordinator.runtime.settings.topology_file import read_topology
from muster_coordinator.runtime.stream import Stream
from muster_coordinator.runtime.transition_dispatcher import TransitionDispatcher
from muster_coordinator.shell import Shell, ended
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store
from muster_coordinator.sweeps.recovery import AfterRestart
from muster_coordinator.sweeps.timetable import REMEMBERED_S
from muster_coordinator.web.guard import access_of
from muster_coordinator.web.server import application

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
        health = _health_publisher(plugins, pipeline)
        notifiers = RunNotifier(plugins), ArtifactSender(plugins, store.sweep), AlarmNotifier(plugins, pipeline.feed)
        changes = change_stream(epoch, pipeline, link, poller)
        shell = Shell(pipeline, link, Stream(epoch), changes, dispatcher, *notifiers, poller, health, retention)
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
    with no_collection():
        pipeline.submit(fleet.restore(await store.saved(), pipeline.clock(), past))
        gc.freeze()  # of what was restored nothing is garbage, until this coordinator no longer leads
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
        secret_key=secrets.token_bytes(32),
        declared=read_topology(settings.topology_file),
        topology_labels=settings.topology_labels,
        bytes_a_day=settings.store.node_mb_per_day * 1e6,
        after_restart=AfterRestart(settings.sweeps.after_restart),
        timetable=timetable_of(settings),
        rules=settings.quarantine,
        policy=policy,
    )


def _health_publisher(plugins: Plugins, pipeline: Pipeline) -> HealthPublisher:
    return HealthPublisher(
        plugins,
        HEARTBEAT_S,
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
        numbers=lambda: fleet_numbers(pipeline, link, poller),
        clock=pipeline.clock,
    )


async def _ended_before(stop: asyncio.Event, beginning: Coroutine[None, None, None]) -> bool:
    """Runs `beginning` to its end, unless `stop` is set first. Returns whether it has finished."""
    begun, stopped = asyncio.create_task(beginning), asyncio.create_task(stop.wait())
    await asyncio.wait((begun, stopped), return_when=asyncio.FIRST_COMPLETED)
    await ended((begun, stopped))
    if begun.cancelled():
        return False
    await begun
    return True
