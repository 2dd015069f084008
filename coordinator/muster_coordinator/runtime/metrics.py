"""The coordinator's metrics for Prometheus, read from the live parts at each scrape."""

import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from muster.alarm import AlarmKind
from muster.model import ServiceState
from muster.version import __version__
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.artifact_sender import ArtifactSender
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.metric_families import LEADS, counter, gauge, info
from muster_coordinator.runtime.node_metrics import node_metrics
from muster_coordinator.runtime.pipeline import Pipeline
from muster_coordinator.runtime.run_notifier import RunNotifier
from muster_coordinator.runtime.stream import Stream
from muster_coordinator.store.retention import Retention
from muster_coordinator.store.rows import Unread

_COUNTED = {
    "reports": "Reports received from agents",
    "runs": "Runs stored",
    "repeats": "Runs stored that came as the numbers in which they differ from an earlier one",
    "duplicates": "Runs received again beside new ones, and dropped",
    "repeated_reports": "Reports received again, and dropped before they were decoded",
    "gaps": "Reports refused because earlier runs are missing; the agent sends these again",
    "over_quota": "Reports refused because their node is over its quota; the agent keeps the runs",
    "not_announced": "Runs of checks that their node has not announced",
    "sweeps": "Sweeps started",
    "sweeps_not_begun": "Scheduled sweeps that did not start",
    "groups": "Groups of sweeps that have ended",
}
"""The help text of each count of the fleet."""


class CoordinatorMetrics(Collector):
    """Collects from the parts of one coordinator."""

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        link: CoordinatorLink,
        stream: Stream,
        notifier: RunNotifier,
        artifacts: ArtifactSender,
        retention: Retention,
        poller: ActorPoller,
        unread: Unread,
    ) -> None:
        self._pipeline = pipeline
        self._link = link
        self._stream = stream
        self._notifier = notifier
        self._artifacts = artifacts
        self._retention = retention
        self._poller = poller
        self._unread = unread
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def exposition(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        what = "1, with the version of the coordinator and of its Python"
        yield info("muster_build_info", what, version=__version__, python=platform.python_version())
        yield gauge(*LEADS, 1)
        yield from self._of_the_fleet()
        yield from self._of_the_quarantine()
        yield gauge(
            "muster_broker_connected", "1 while the coordinator is connected to the broker", self._link.connected
        )
        yield gauge("muster_backlog", "Commands that wait to be stored", self._pipeline.backlog)
        what = "How long the oldest command, such as a report, has waited to be stored"
        yield gauge("muster_backlog_age_seconds", what, self._pipeline.backlog_age_s)
        yield from self._of_the_load()
        yield gauge("muster_event_listeners", "Listeners to the event stream", self._stream.listeners)
        yield counter("muster_messages", "Messages from nodes", self._link.of_nodes.received)
        yield counter(
            "muster_notices_dropped",
            "Results dropped because plugins were too slow to take them",
            self._notifier.dropped,
        )
        what = "Sweeps, acceptances and failed runs whose documents no plugin could store"
        yield counter("muster_artifacts_dropped", what, self._artifacts.dropped)
        retention = self._retention.counts
        yield counter("muster_runs_summarised", "Old runs replaced by hourly summaries", retention.runs)
        yield counter(
            "muster_runs_thinned", "Deprecated: use muster_runs_summarised_total. Removed in 0.3", retention.runs
        )
        yield counter("muster_summaries_removed", "Hourly summaries deleted by retention", retention.summaries)
        use = self._retention.budget.use
        yield gauge("muster_store_bytes", "Bytes that the database uses, measured every hour", use.used_bytes)
        yield gauge("muster_store_max_bytes", "Bytes that the database may use (store.max_gb)", use.most_bytes)
        what = "Days until the database has reached its limit at the growth of the last day"
        yield gauge("muster_store_days_left", what, use.days_left)
        yield counter("muster_runs_packed", "Quiet runs packed into blocks", self._retention.compactor.packed)
        yield counter("muster_rows_unread", "Damaged database rows that were left out", self._unread.count)
        refused = CounterMetricFamily("muster_messages_refused", "Messages that were dropped, by kind", labels=["kind"])
        for kind, count in self._link.of_nodes.refused.items():
            refused.add_metric([kind], count)
        yield refused
        yield gauge("muster_nodes_muted", "Nodes muted because they flood the broker", len(self._link.muted))
        yield counter("muster_messages_failed", "Messages that made the coordinator fail", self._pipeline.failed)

    def _of_the_load(self) -> Iterator[Metric]:
        load = self._pipeline.fleet.load
        yield gauge("muster_overloaded", "1 while agents send more than the coordinator can take", load.is_overloaded)
        yield gauge("muster_lag_seconds", "How long messages of agents wait for the coordinator", load.lag_s)
        what = "How many times less often agents run background checks: 1 unless it is or was overloaded"
        yield gauge("muster_slowdown", what, load.slowdown)
        what = "Reports for which there was no time; their agents send them again later"
        yield counter("muster_reports_deferred", what, self._link.meter.deferred)

    def _of_the_fleet(self) -> Iterator[Metric]:
        fleet, now = self._pipeline.fleet, self._pipeline.clock()
        yield from node_metrics(fleet.tally(now), now)
        yield gauge("muster_baselines", "Baselines and fingerprints", fleet.comparisons)
        yield gauge("muster_fleet_findings", "Findings about the whole fleet", len(fleet.view(now).findings))
        yield gauge("muster_sweeps_running", "Sweeps that are running", fleet.running)
        yield gauge("muster_epoch", "The coordinator's epoch", fleet.epoch)
        for name, count in asdict(fleet.counts).items():
            yield counter(f"muster_{name}", _COUNTED[name], count)

    def _of_the_quarantine(self) -> Iterator[Metric]:
        fleet = self._pipeline.fleet
        view = fleet.quarantine_view()
        yield info("muster_quarantine_info", "1, with the mode of the quarantine", mode=view.mode)
        yield gauge("muster_quarantine_limit", "Nodes that may be away at once", view.limit)
        yield gauge("muster_quarantine_away", "Nodes that are away for any reason", view.away)
        yield gauge("muster_quarantine_held", "Nodes that should be drained and wait for the budget", len(view.held))
        yield gauge(
            "muster_quarantine_frozen",
            "Mass events: causes that many nodes share, for which draining is frozen",
            len(view.frozen),
        )
        alarms = GaugeMetricFamily("muster_quarantine_alarms", "Alarms that stand, by kind", labels=["kind"])
        standing = Counter(alarm.kind for alarm in view.alarms)
        for kind in AlarmKind:
            alarms.add_metric([kind], standing[kind])
        yield alarms
        unheard = self._poller.unheard(fleet.is_present)
        yield gauge(
            "muster_nodes_unheard", "Nodes that a scheduler keeps out and from which no agent reports", len(unheard)
        )
        changes = CounterMetricFamily(
            "muster_service_changes", "Changes of service state, by the new state", labels=["service"]
        )
        for service in ServiceState:
            changes.add_metric([service], fleet.service_changes.get(service, 0))
        yield changes
        works = GaugeMetricFamily("muster_actor_works", "1 if the actor can act, by actor", labels=["actor"])
        for actor in self._poller.actors:
            works.add_metric([actor.name], actor.problem is None)
        yield works
        yield gauge("muster_plugins_failed", "Plugins that the coordinator could not load", self._poller.not_loaded)
        what = "Nodes whose last transition the actors have not all carried out yet"
        yield gauge("muster_actions_pending", what, fleet.pending)
        yield self._failing()

    def _failing(self) -> Metric:
        """The number of nodes for which each actor fails: an actor that works may still fail for some nodes."""
        failed = self._pipeline.fleet.failing
        failing = GaugeMetricFamily(
            "muster_actions_failing", "Nodes whose last transition the actor has failed to carry out", labels=["actor"]
        )
        for actor in {*failed, *(actor.name for actor in self._poller.actors)}:
            failing.add_metric([actor], failed.get(actor, 0))
        return failing
