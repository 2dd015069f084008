"""muster in a cluster as an operator meets it: a coordinator that acts, agents on its nodes, and kubectl.

Coordinator, agents and Mosquitto are processes of their own, the API is the stand-in's, in a thread beside the tests.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from benchmarks.kubernetes_standin.access import BASIC_USER, Role
from benchmarks.kubernetes_standin.kubectl import Kubectl
from benchmarks.kubernetes_standin.resources import EVENTS
from benchmarks.kubernetes_standin.server import Request, StandIn
from tests.muster_process import MusterProcess
from tests.waiting import PATIENCE_S, wait_for

from muster.client import Client
from muster.errors import Refused
from muster_coordinator.local import processes
from muster_plugins.schedulers.kubernetes.rbac import coordinator_manifests

USER = "system:serviceaccount:muster:muster-coordinator"
ECC = {"kind": "ecc", "device": 0}
OTHER_CHECKS = ("fabric", "gemm", "host", "kernel_log", "memory", "nvml", "training")
"""The plugins that check something by themselves, besides the simulated devices."""

T = TypeVar("T")


class Cluster:
    """The stand-in and its administrator, for whoever does not live in its event loop."""

    def __init__(self, directory: Path) -> None:
        self.standin = StandIn(directory)
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)  # the tests' own loop stays the current one
        self._loop = self._runner.get_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.start()
        self._kubectl = Kubectl(self.standin.kubeconfig())
        self._do(self._kubectl.__aenter__())

    def end(self) -> None:
        self._do(self._kubectl.__aexit__())
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._runner.close()

    def start(self) -> None:
        self._do(self.standin.start())

    def stop(self) -> None:
        self._do(self.standin.stop())

    @contextmanager
    def without_power(self) -> Iterator[None]:
        """The API server is gone while the context lasts; it comes back with what it had stored."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def add_user(self, name: str, *roles: Role) -> None:
        """A user with these roles and what Kubernetes lets everybody do."""
        self.standin.add_user(name, BASIC_USER, *roles)

    def kubectl(self, command: str, *arguments: Any) -> Any:
        """What the operator does; see `Kubectl`."""
        return self._do(getattr(self._kubectl, command)(*arguments))

    def register(self, name: str, **more: Any) -> None:
        """A kubelet registers its node; `more` are the arguments of `objects.node`."""
        self.run(lambda: self.standin.add_node(name, **more))

    def run(self, change: Callable[[], T]) -> T:
        """What `change` returns, called in the event loop of the stand-in."""

        async def call() -> T:
            return change()

        return self._do(call())

    def node(self, name: str) -> "NodeInKubernetes":
        return NodeInKubernetes(self.standin.node(name))

    def events(self, node: str) -> list[tuple[str, str]]:
        """Type and reason of the node's Events, in the order in which they came."""
        items = [stored.item for _, stored in self.standin.store.all(EVENTS)]
        items.sort(key=lambda item: int(item["metadata"]["resourceVersion"]))
        return [(item["type"], item["reason"]) for item in items if item["involvedObject"]["name"] == node]

    def patches(self, node: str) -> list[Request]:
        """By which the coordinator wanted to change the node; its conditions are not among them."""
        path = f"/api/v1/nodes/{node}"
        return [it for it in self.standin.requests if (it.verb, it.user, it.path) == ("patch", USER, path)]

    def cordons(self, node: str) -> list[Request]:
        """Those of the patches that were to cordon the node, without those that were refused as too late."""
        patches = [it for it in self.patches(node) if it.code != HTTPStatus.CONFLICT]
        return [it for it in patches if it.body.get("spec", {}).get("unschedulable")]

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)


class NodeInKubernetes:
    """A node as `kubectl describe` would show it."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.cordoned: bool = item["spec"].get("unschedulable", False)
        self.taints = sorted(taint["key"] for taint in item["spec"].get("taints", []))
        self.state = item["metadata"]["labels"].get("muster.dev/service-state")
        self.mark = item["metadata"]["annotations"].get("muster.dev/quarantine")
        conditions = [it for it in item["status"]["conditions"] if it["type"] == "MusterHealthy"]
        self.condition = [(it["status"], it["reason"]) for it in conditions]

    @property
    def is_quarantined(self) -> bool:
        """Whether all of our marks are there."""
        return self.cordoned and "muster.dev/quarantine" in self.taints and self.mark is not None

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is there that says that muster cordoned or uncordoned it."""
        return not self.mark and not self.state and "muster.dev/quarantine" not in self.taints


class Part:
    """A program of muster as a process; its log starts anew each time that it is started."""

    def __init__(self, command: str, directory: Path, settings: dict[str, Any]) -> None:
        self.settings = settings
        self._command = command
        self._directory = directory
        self._log = directory.with_suffix(".log")
        self._process: MusterProcess | None = None

    def start(self) -> None:
        settings = {**self.settings, "data_dir": str(self._directory), "log": {"format": "json"}}
        with self._log.open("wb") as log:
            self._process = MusterProcess(self._command, env=processes.environment(settings), stderr=log)

    def logged(self, event: str) -> dict[str, Any]:
        """The first line of that event, once it is there."""
        lines = wait_for(partial(self._lines, event), f"{event} of {self._command}")
        return lines[0]

    def stop(self) -> tuple[int, str]:
        """Asks it to end; what `ended` gives."""
        assert self._process is not None
        self._process.terminate()
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Its exit code and all that it has logged, once it has ended."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S), self._log.read_text(encoding="utf-8")

    def kill(self) -> None:
        """As if its power went."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _lines(self, event: str) -> list[dict[str, Any]]:
        text = self._log.read_text(encoding="utf-8")
        assert self._process is not None
        assert self._process.poll() is None, text
        whole = text[: text.rfind("\n") + 1].splitlines()
        lines = [json.loads(line) for line in whole if line.startswith("{")]
        return [line for line in lines if line.get("event") == event]


class Fleet:
    """A coordinator in some mode, and agents on nodes of the cluster, each with one simulated device."""

    def __init__(self, directory: Path, cluster: Cluster, broker: str, *, mode: str, kubeconfig: Path) -> None:
        self.cluster = cluster
        self.url = ""
        self._directory = directory
        self._common = {"fleet": directory.name, "broker": {"url": broker}}
        self._agents: dict[str, Part] = {}
        settings = {**self._common, **acting(mode, kubeconfig)}
        self.coordinator = Part("coordinator", directory / "coordinator", settings)

    def start_coordinator(self) -> None:
        """Starts it and waits until it answers; it keeps its port."""
        self.coordinator.start()
        self.url = self.coordinator.logged("coordinator_ready")["api"]
        self.coordinator.settings["http"] = {"listen": urlsplit(self.url).netloc}
        self.api = Client(self.url)

    def start_agent(self, node: str, *faults: dict[str, Any], interval_s: float = 1.0) -> None:
        """Starts the agent of a node, or another in its place, whose device has these faults.

        The device is examined within the first `interval_s` seconds, and then again and again.
        """
        simulated = {"enabled": True, "devices": 1, "faults": list(faults)}
        settings = {
            **self._common,
            "node": node,
            "agent": {"listen": "127.0.0.1:0", "heartbeat_s": 1.0, "spread_s": 3600.0},
            "checks": {"simulated": {"interval_s": interval_s}},
            "plugins": {"disabled": OTHER_CHECKS, "simulated": simulated},
        }
        self.stop_agent(node)
        self._agents[node] = Part("agent", self._directory / node, settings)
        self._agents[node].start()

    def stop_agent(self, node: str) -> None:
        if node in self._agents:
            self._agents.pop(node).kill()

    def join(self, *nodes: str, faults: tuple[dict[str, Any], ...] = (), **registered: Any) -> None:
        """Nodes that are new to the cluster and to muster; `registered` is what `objects.node` takes."""
        for node in nodes:
            self.cluster.register(node, **registered)
            self.start_agent(node, *faults)

    def leave(self, *nodes: str) -> None:
        """The nodes are gone, as after a scale-down."""
        for node in nodes:
            self.stop_agent(node)
            self.cluster.kubectl("delete", node)

    def end(self) -> None:
        for part in (self.coordinator, *self._agents.values()):
            part.kill()

    # What it says

    def case(self, node: str) -> dict[str, Any]:
        """The node's case, once the coordinator has heard of the node."""
        return wait_for(partial(self._case, node), f"{node} to be known")

    def becomes(self, state: str, *nodes: str, effect: str = "DONE") -> None:
        """Waits until the nodes are in that state, and the actor has answered so."""
        for node in nodes:
            wait_for(partial(self._is, node, state, effect), f"{node} to be {state} and the action {effect}")

    def view(self, node: str) -> dict[str, Any]:
        """How the cluster had the node at the last survey, once there was one."""
        return wait_for(lambda: self.case(node)["observed"].get("kubernetes"), f"a survey with {node}")

    def unheard(self) -> list[str]:
        """Who is kept out and has no agent, as far as the coordinator knows."""
        names: list[str] = self.api.get("quarantine", "budget")["unheard"]
        return names

    def story(self, node: str, kind: str | None = None) -> list[str]:
        """The texts of the node's story, the oldest first, or those of one kind."""
        items = reversed(self.api.pages("nodes", node, "story")["items"])
        return [item["text"] for item in items if kind in (None, item["kind"])]

    def _is(self, node: str, state: str, effect: str) -> bool:
        case = self.case(node)
        outcome = case["outcomes"].get("kubernetes", {})
        return (case["state"], outcome.get("effect")) == (state, effect)

    def _case(self, node: str) -> dict[str, Any]:
        with suppress(Refused):
            case: dict[str, Any] = self.api.get("nodes", node, "case")
            return case
        return {}


def acting(mode: str, kubeconfig: Path) -> dict[str, Any]:
    """The settings of a coordinator that acts on the cluster quickly, and on as many nodes as there are."""
    return {
        "http": {"listen": "127.0.0.1:0"},
        "quarantine": {
            "mode": mode,
            "budget": {"share": "100%", "domain_share": "100%", "per_minute": 6000},
            "mass_event": {"nodes": 1000},
            "returning": {"wait_s": 0, "pause_s": 0.1, "passes": 2, "times": 1000},
            "resync_s": 5,
            "trust_loopback": True,
        },
        "plugins": {"kubernetes": {"actor": {"enabled": True, "kubeconfig": str(kubeconfig), "timeout_s": 10}}},
    }


@pytest.fixture(scope="package")
def cluster(live: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without nodes, in which the coordinator may do what the generated RBAC says."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    cluster.add_user(USER, *(it for it in coordinator_manifests() if it["kind"] in {"Role", "ClusterRole"}))
    yield cluster
    cluster.end()


@pytest.fixture(scope="package")
def new_fleet(
    tmp_path_factory: pytest.TempPathFactory, cluster: Cluster, new_mosquitto: Callable[..., Any]
) -> Iterator[Callable[..., Any]]:
    """Makes fleets, each for as long as its context lasts: `new_fleet("dry-run", user="somebody")`."""

    @contextmanager
    def make(mode: str, user: str = USER) -> Iterator[Fleet]:
        directory, kubeconfig = tmp_path_factory.mktemp("fleet"), cluster.standin.kubeconfig(user)
        fleet = Fleet(directory, cluster, broker.url, mode=mode, kubeconfig=kubeconfig)
        try:
            yield fleet
        finally:
            fleet.end()

    with new_mosquitto() as broker:
        yield make


@pytest.fixture(scope="package")
def fleet(new_fleet: Callable[..., Any]) -> Iterator[Fleet]:
    """The one that enforces, with two good nodes that stay out of all trouble: the last ones in service never go."""
    with new_fleet("enforce") as fleet:
        fleet.start_coordinator()
        fleet.join("good-1", "good-2")
        fleet.becomes("IN_SERVICE", "good-1", "good-2")
        yield fleet
        code, said = fleet.coordinator.stop()
        assert (code, "Traceback" in said, "Unclosed" in said) == (0, False, False), said


@pytest.fixture
def ecc() -> dict[str, Any]:
    """A fault of the simulated device."""
    return ECC
