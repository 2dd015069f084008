"""The example of a Ray cluster on flex-start nodes, played through: its workers land on accepted nodes only.

The API server is the stand-in's, with a scheduler that honours taints. The test plays Kueue, KubeRay and GKE: it makes
the pods of the example with the tolerations of their queue, and nodes with the taints of their pool.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.kubernetes_standin.ownership import Writer
from benchmarks.kubernetes_standin.resources import PODS
from benchmarks.kubernetes_standin.scheduler import Scheduler

EXAMPLES = Path(__file__).parents[5] / "docs" / "examples" / "gke"
STARTUP_TAINT = "startup-taint.cluster-autoscaler.kubernetes.io/muster"
TAINTS = [
    {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"},
    {"key": STARTUP_TAINT, "value": "true", "effect": "NoSchedule"},
]
LABELS = {"cloud.google.com/gke-accelerator": "nvidia-h200-141gb", "cloud.google.com/gke-nodepool": "h200-queued"}
USUAL = ["cloud.google.com/gke-queued", "nvidia.com/gpu"]
"""The taints of a node of the pool that gets work."""


def example(name: str, kind: str) -> Any:
    """The first object of a kind in a file of the example."""
    objects = yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8"))
    return next(each for each in objects if each["kind"] == kind)


def worker(number: int) -> dict[str, Any]:
    """A worker of the RayCluster, as KubeRay makes it after Kueue has admitted it."""
    (group,) = example("ray-cluster.yaml", "RayCluster")["spec"]["workerGroupSpecs"]
    flavor = example("queues.yaml", "ResourceFlavor")["spec"]
    spec = group["template"]["spec"]
    admitted = {
        "nodeSelector": spec["nodeSelector"] | flavor["nodeLabels"],
        "tolerations": spec["tolerations"] + flavor["tolerations"],
    }
    metadata = group["template"]["metadata"] | {"name": f"ray-worker-{number}", "namespace": "default"}
    return {"metadata": metadata, "spec": spec | admitted, "status": {"phase": "Pending"}}


class Work:
    """The pods of the RayCluster."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._scheduler = cluster.run(lambda: Scheduler(cluster.standin.store))

    def start(self, number: int) -> None:
        """Creates a worker; returns after the scheduler has looked at it, which it does next in the same event loop."""
        self._cluster.run(lambda: self._store.create(PODS, "default", worker(number), Writer("kuberay", "Update")))
        self._cluster.run(lambda: None)

    def node_of(self, number: int) -> str | None:
        """Where a worker runs; None while it waits."""
        node: str | None = self._store.get(PODS, "default", f"ray-worker-{number}").item["spec"].get("nodeName")
        return node

    def end(self) -> None:
        self._scheduler.end()
        for (namespace, name), _ in list(self._store.all(PODS)):
            self._cluster.run(lambda namespace=namespace, name=name: self._store.delete(PODS, namespace, name))

    @property
    def _store(self) -> Any:
        return self._cluster.standin.store


@pytest.fixture
def work(cluster):
    work = Work(cluster)
    yield work
    work.end()


@pytest.fixture
def flex_fleet(new_fleet):
    """The fleet of the example: it enforces, and removes the startup taint of its nodes."""
    with new_fleet("enforce") as fleet:
        fleet.coordinator.settings["plugins"]["kubernetes"]["actor"] |= {
            "startup_taint": STARTUP_TAINT,
            "ordinary_taints": USUAL,
        }
        fleet.start_coordinator()
        yield fleet


def test_workers_land_on_accepted_nodes_only(flex_fleet, cluster, work, eventually, ecc):
    """A bad node never gets one; its replacement does. A node that breaks later gets no more, and all may leave."""
    fleet, new = flex_fleet, {"labels": LABELS, "taints": TAINTS}
    work.start(1)
    work.start(2)
    cluster.register("flex-1", **new)
    cluster.register("flex-2", **new)
    eventually(lambda: set(fleet.unheard()) >= {"flex-1", "flex-2"}, "the survey to see the nodes of the pool")
    assert (work.node_of(1), work.node_of(2)) == (None, None)

    fleet.start_agent("flex-1")
    fleet.start_agent("flex-2", ecc)
    fleet.becomes("IN_SERVICE", "flex-1")
    eventually(lambda: "flex-1" in (work.node_of(1), work.node_of(2)), "a worker on the accepted node")
    assert cluster.node("flex-1").taints == USUAL
    eventually(lambda: fleet.case("flex-2")["requirement"], "the fault of the other node to be proven")
    assert STARTUP_TAINT in cluster.node("flex-2").taints
    assert None in (work.node_of(1), work.node_of(2))

    fleet.leave("flex-2")
    fleet.join("flex-3", **new)
    fleet.becomes("IN_SERVICE", "flex-3")
    eventually(lambda: {work.node_of(1), work.node_of(2)} == {"flex-1", "flex-3"}, "both workers to run")

    fleet.leave("flex-3")
    fleet.start_agent("flex-1", ecc)
    fleet.becomes("CORDONED", "flex-1")
    work.start(3)
    assert work.node_of(3) is None
    fleet.leave("flex-1")
    gone = fleet.api.get("nodes", "flex-3")
    assert (gone["findings"], fleet.case("flex-3")["requirement"]) == ([], None)
