"""The agent's metrics for Prometheus."""

import platform
from collections.abc import Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from muster.agent_settings import DeviceFigures
from muster.model import Run
from muster.version import __version__
from muster_agent.wire.device_metrics import DeviceMetrics

_DURATION_BUCKETS_S = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600)


class AgentMetrics:
    """The agent's metrics, in a registry of their own. `devices` are the groups of figures of devices to export."""

    def __init__(self, node: str, devices: Collection[DeviceFigures] = ()) -> None:
        self.registry = CollectorRegistry()
        about = Info("muster_agent", "1, with the node and the versions of agent and Python", registry=self.registry)
        about.info({"node": node, "version": __version__, "python": platform.python_version()})
        self._runs = self._counter("runs", "Runs that ended", "check", "verdict")
        self._refused = self._counter("refused_messages", "Messages from the broker that were dropped", "kind")
        self._durations = Histogram(
            "muster_agent_run_duration_seconds",
            "Duration of runs",
            ("check",),
            buckets=_DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self.reconnects = self._counter("reconnects", "Connections to the broker that were lost or refused")
        self.connected = self._gauge("broker_connected", "1 while the broker is connected")
        self.outbox_depth = self._gauge("outbox_depth", "Runs that wait to be stored")
        what = "How long ago the oldest run that waits to be stored began; 0 if none waits"
        self.outbox_age = self._gauge("outbox_age_seconds", what)
        self.running = self._gauge("running", "Runs in progress")
        self.lease_held = self._gauge("lease_held", "1 while a run holds the node")
        self._dropped = self._gauge("outbox_dropped", "Runs that were dropped", "check")
        self._devices = DeviceMetrics(node, devices)
        self.registry.register(self._devices)

    def run_ended(self, run: Run) -> None:
        self._runs.labels(run.check, run.verdict).inc()
        self._durations.labels(run.check).observe(run.duration_s)
        self._devices.run_ended(run)

    def refused(self, kind: str) -> None:
        self._refused.labels(kind).inc()

    def dropped(self, counts: dict[str, int]) -> None:
        for check, count in counts.items():
            self._dropped.labels(check).set(count)

    def expose(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"muster_agent_{name}", about, labels, registry=self.registry)

    def _gauge(self, name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"muster_agent_{name}", about, labels, registry=self.registry)
