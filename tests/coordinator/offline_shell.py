"""The parts of a coordinator around its fleet, with a broker that is away."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from muster.config import Settings
from muster.plugins import Plugins
from muster_coordinator.leader import change_stream
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.alarm_notifier import AlarmNotifier
from muster_coordinator.runtime.artifact_sender import ArtifactSender
from muster_coordinator.runtime.health_publisher import HealthPublisher
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.runtime.run_notifier import RunNotifier
from muster_coordinator.runtime.stream import Stream
from muster_coordinator.runtime.transition_dispatcher import TransitionDispatcher
from muster_coordinator.shell import Shell
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.store import Store

EPOCH = 3
RARELY_S = 3600.0


def offline_shell(settings: Settings, pipeline: Pipeline, store: Store, plugins: Plugins, epoch: int = EPOCH) -> Shell:
    """The shell of a coordinator of this epoch that no broker disturbs: events come from the test alone."""
    link = CoordinatorLink(
        settings,
        broker_url="mqtt://127.0.0.1:1",
        api_url="",
        epoch=epoch,
        deliver=pipeline.take,
        known=tuple,
        is_known=lambda _node, _head: False,
        has_inventory=lambda _node, _digest: False,
        clock=time.time,
    )
    poller = ActorPoller(plugins, RARELY_S, pipeline.take)
    return Shell(
        pipeline,
        link,
        Stream(epoch),
        change_stream(epoch, pipeline, link, poller),
        TransitionDispatcher(plugins, pipeline.feed, pipeline.calm),
        RunNotifier(plugins),
        ArtifactSender(plugins, store.sweep),
        AlarmNotifier(plugins, pipeline.feed),
        poller,
        HealthPublisher(plugins, RARELY_S, names=tuple, view=lambda _: None, clock=pipeline.clock),
        Retention(store.database, settings.store, pipeline.clock, pipeline.feed),
    )


@asynccontextmanager
async def running(shell: Shell) -> AsyncIterator[None]:
    """Runs a shell whose first search for what is past retention has ended: these tests report very old runs."""
    async with shell.running():
        async with asyncio.timeout(20):
            while not shell.retention.budget.use.used_bytes:
                await asyncio.sleep(0.002)
        yield
