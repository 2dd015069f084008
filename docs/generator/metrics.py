"""The page of all figures for Prometheus."""

from generator.markdown import NOTE, page, table
from prometheus_client import Metric
from prometheus_client.registry import Collector

from muster import plugins
from muster.config import Config, Settings
from muster_agent.wire.device_metrics import FIGURES
from muster_agent.wire.metrics import AgentMetrics
from muster_coordinator.fleet import Fleet
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.artifact_sender import ArtifactSender
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.metrics import CoordinatorMetrics
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.runtime.run_notifier import RunNotifier
from muster_coordinator.runtime.stream import Stream
from muster_coordinator.store.database import Database
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.rows import Unread
from muster_coordinator.store.store import Store

DEVICES = (
    "An agent exports these if `agent.device_metrics` names their group, from what the check `nvml` has measured last. "
    "The names, and the labels `gpu`, `UUID`, `modelName` and `Hostname`, are those of NVIDIA's DCGM exporter. "
    "`Hostname` is the name of the node. A value that a device does not report has no series."
)


def metrics() -> str:
    """Every figure that agent and coordinator give to Prometheus."""
    pipeline = Pipeline(Fleet(name="docs", epoch=1), object.__new__(Store))  # the store is not asked for figures
    link = CoordinatorLink(
        Settings(),
        broker_url="mqtt://localhost",
        api_url="",
        epoch=1,
        deliver=pipeline.take,
        known=tuple,
        is_known=pipeline.fleet.is_known,
        has_inventory=pipeline.fleet.inventories.is_known,
        clock=pipeline.clock,
    )
    database = object.__new__(Database)  # only the counts of retention are asked for
    retention = Retention(database, Settings().store, lambda: 0.0, lambda _: None)
    none = plugins.Plugins(Config(Settings()))
    poller = ActorPoller(none, 3600.0, pipeline.take)
    figures = CoordinatorMetrics(
        pipeline=pipeline,
        link=link,
        stream=Stream(1),
        notifier=RunNotifier(none),
        artifacts=ArtifactSender(none, _no_sweep),
        retention=retention,
        poller=poller,
        unread=Unread(),
    )
    lines = [NOTE, "# Metrics", "In Prometheus' text format, at `/metrics` of the coordinator and of every agent."]
    lines += ["## Coordinator", _table(figures), "## Agent", _table(AgentMetrics("node").registry)]
    lines += ["## Devices", DEVICES]
    for group, listed in FIGURES.items():
        lines += [f"### {group}", table(((f"`{each.name}`", each.text) for each in listed), ("Metric", "Meaning"))]
    return page(lines)


def _table(collected: Collector) -> str:
    rows = ((f"`{_scraped_name(family)}`", family.type, family.documentation) for family in collected.collect())
    return table(rows, ("Metric", "Type", "Meaning"))


def _scraped_name(family: Metric) -> str:
    """The name of a metric in queries."""
    return family.name + {"counter": "_total", "info": "_info"}.get(family.type, "")


async def _no_sweep(_id: str) -> None:
    """No sweep has this id."""
