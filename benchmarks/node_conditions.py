"""What it costs to keep the health of a fleet in conditions of Kubernetes, as node-problem-detector and muster do.

Method: `--nodes` nodes are registered at an API server. Then their conditions are written for `--window-s` each, in
turn and at the pace of the writer's heartbeat, the way node-problem-detector does (a strategic merge patch with all of
its conditions, from every node) and the way the coordinator does (its own plugin, one condition). What the server and
its database take without any write is measured first. With `--node-problem-detector`, a real one then runs for one
node, with a rule for a log file; the time is taken from a line in that file until the API server shows the condition.

Without `--kubeconfig` the server is the stand-in of the tests, whose figures say nothing about Kubernetes. With it, the
server should have no nodes; `--servers` names the processes whose processor time and writing is measured, usually
kube-apiserver and etcd.

Limits: the writes come from one process over few connections; in a cluster, node-problem-detector keeps a connection
for each node. Nothing watches the nodes, while each controller, scheduler and kubelet of a cluster gets every write.
"""

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from benchmarks.agent_at_rest import cpu_s, rollup_mib
from benchmarks.figures import Figure, Target, arguments, median_of, publish
from benchmarks.kubernetes_standin.child import Child
from benchmarks.kubernetes_standin.objects import node as registered
from benchmarks.scale_agents import node_name
from benchmarks.scale_parts import until

from muster import Config, NodeHealthReport
from muster.config import Settings
from muster.model import Health
from muster_coordinator.runtime.health_publisher import HEARTBEAT_S
from muster_plugins.schedulers.kubernetes import plugin
from muster_plugins.schedulers.kubernetes.calls import PATCH_STATUS, READ_NODE, Call
from muster_plugins.schedulers.kubernetes.connection import Connection
from muster_plugins.schedulers.kubernetes.session import Question
from muster_plugins.schedulers.kubernetes.settings import KubernetesSettings

THEIR_HEARTBEAT_S = 300.0
"""The default of node-problem-detector's --k8s-exporter-heartbeat-period."""

OF_NODE_PROBLEM_DETECTOR = ("KernelDeadlock", "XfsShutdown", "CperHardwareErrorFatal", "ReadonlyFilesystem")
"""The conditions of its kernel-monitor.json and readonly-monitor.json, version 1.36."""

STRATEGIC = "application/strategic-merge-patch+json"
CREATE_NODE = Call(method="POST", path="/api/v1/nodes", verb="create", resource="nodes")

AT_ONCE = 32
DAY_S = 86_400.0
GB = 1e9
LOOK_S = 0.005
SEEN_WITHIN_S = 30.0

WITHIN_A_SECOND: Target = ("<=", 1000.0)


class Cluster:
    """An API server, as its administrator sees it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.table = {"actor": {"enabled": True, "kubeconfig": str(kubeconfig), "requests_per_s": 1000}}
        self._connection = Connection(KubernetesSettings.model_validate(self.table))

    async def close(self) -> None:
        """Closes the connection."""
        await self._connection.close()

    async def register(self, nodes: int) -> None:
        """Creates the nodes, with the status that their kubelets report."""
        await _in_parallel(self._register, [node_name(number) for number in range(nodes)])

    async def _register(self, name: str) -> None:
        item = {"apiVersion": "v1", "kind": "Node", **registered(name)}
        status = {"status": item.pop("status")}
        await self._connection.ask(Question(call=CREATE_NODE, body=item))
        await self.patch_status(name, status)

    async def patch_status(self, name: str, status: dict[str, Any]) -> None:
        """Changes a node's status by a strategic merge patch."""
        await self._connection.ask(Question(call=PATCH_STATUS, name=name, body=status, form=STRATEGIC))

    async def condition(self, name: str, kind: str) -> dict[str, str]:
        """One condition of a node; empty if it has none of this type."""
        node = json.loads(await self._connection.ask(Question(call=READ_NODE, name=name)))
        return next((it for it in node["status"]["conditions"] if it["type"] == kind), {})


class Load:
    """Processor time of processes, and how much they have written to the disk."""

    def __init__(self, processes: list[psutil.Process]) -> None:
        self._processes = processes
        self._began = time.monotonic()
        self._before = self._now()

    def figures(self, what: str) -> list[Figure]:
        """The share of a core and the bytes of a day, since the object was made."""
        lasted_s = time.monotonic() - self._began
        busy_s, written = (now - before for now, before in zip(self._now(), self._before, strict=True))
        return [
            Figure(what=f"{what}: processor time", unit="% of a core", value=100 * busy_s / lasted_s),
            Figure(what=f"{what}: written to disk", unit="GB a day", value=written / lasted_s * DAY_S / GB),
        ]

    def _now(self) -> tuple[float, float]:
        return cpu_s(self._processes), sum(process.io_counters().write_bytes for process in self._processes)


async def measure(options: argparse.Namespace, cluster: Cluster, directory: Path) -> list[Figure]:
    """All figures."""
    servers = [psutil.Process(pid) for pid in options.servers]
    await cluster.register(options.nodes)
    idle = Load(servers)
    await asyncio.sleep(options.window_s)
    figures = idle.figures("no conditions")
    ways = (
        ("node-problem-detector's way", _their_way, THEIR_HEARTBEAT_S),
        ("muster's way", _our_way, HEARTBEAT_S),
    )
    for what, writer, heartbeat_s in ways:
        async with writer(cluster) as write:
            load = Load(servers)
            took_ms = await _paced(write, options, heartbeat_s)
        figures += [median_of(f"{what}: one write", "ms", took_ms, WITHIN_A_SECOND), *load.figures(what)]
    if options.node_problem_detector:
        figures += await _real(options, cluster, directory)
    return figures


@asynccontextmanager
async def _their_way(cluster: Cluster) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    async def write(name: str) -> None:
        await cluster.patch_status(name, {"status": {"conditions": [_healthy(it) for it in OF_NODE_PROBLEM_DETECTOR]}})

    yield write


def _healthy(kind: str) -> dict[str, str]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = {"lastHeartbeatTime": now, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": kind, "status": "False", **times, "reason": f"No{kind}", "message": f"no {kind}"}


@asynccontextmanager
async def _our_way(cluster: Cluster) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    config = Config(Settings.model_validate({"plugins": {"kubernetes": cluster.table}}))
    await plugin.muster_survey(config)

    async def write(name: str) -> None:
        report = NodeHealthReport(node=name, at=time.time(), health=Health.HEALTHY)
        await plugin.muster_node_health(config, (report,))

    yield write
    await plugin.muster_close(config)


async def _paced(
    write: Callable[[str], Awaitable[None]], options: argparse.Namespace, heartbeat_s: float
) -> list[float]:
    """Writes the nodes' conditions in turn, each once in a heartbeat; how long each write took (ms)."""
    begun, took_ms, pause_s = time.monotonic(), [], heartbeat_s / options.nodes
    for number in range(max(1, round(options.window_s / pause_s))):
        await asyncio.sleep(begun + number * pause_s - time.monotonic())
        asked = time.monotonic()
        await write(node_name(number % options.nodes))
        took_ms.append(1000 * (time.monotonic() - asked))
    return took_ms


async def _real(options: argparse.Namespace, cluster: Cluster, directory: Path) -> list[Figure]:
    """How long a real node-problem-detector takes to tell the API server of a line in a log, and its memory."""
    log = directory / "kernel.log"
    log.touch()
    detector = await asyncio.create_subprocess_exec(*_command(options, log, directory), stderr=subprocess.DEVNULL)
    try:
        await _until(cluster, "no fault yet")
        took_ms = [await _fault(cluster, log, f"fault {number}") for number in range(options.faults)]
        mib = rollup_mib(psutil.Process(detector.pid), "Pss")
    finally:
        detector.terminate()
        await detector.wait()
    return [
        median_of("node-problem-detector: from a line in a log to the API", "ms", took_ms, WITHIN_A_SECOND),
        Figure(what="node-problem-detector: memory, PSS", unit="MiB", value=mib),
    ]


def _command(options: argparse.Namespace, log: Path, directory: Path) -> list[str]:
    """A node-problem-detector that makes a condition of each line `kernel: fault N` of the log.

    It tells of a new line for a condition that is True already only if the reason is another.
    """
    reasons = {"EvenFault": "fault [0-9]*[02468]", "OddFault": "fault [0-9]*[13579]"}
    rule = {"type": "permanent", "condition": "GpuProblem"}
    monitor = {
        "plugin": "filelog",
        "pluginConfig": {"timestamp": "^.{15}", "message": "kernel: (.*)", "timestampFormat": "Jan _2 15:04:05"},
        "logPath": str(log),
        "lookback": "5m",
        "bufferSize": 10,
        "source": "kernel-monitor",
        "conditions": [{"type": "GpuProblem", "reason": "NoFault", "message": "no fault yet"}],
        "rules": [{**rule, "reason": reason, "pattern": pattern} for reason, pattern in reasons.items()],
    }
    path = directory / "monitor.json"
    path.write_text(json.dumps(monitor), encoding="utf-8")
    return [
        str(options.node_problem_detector),
        f"--config.system-log-monitor={path}",
        f"--apiserver-override=https://unused?inClusterConfig=false&auth={options.kubeconfig.absolute()}",
        f"--hostname-override={node_name(0)}",
        "--prometheus-port=0",
        "--port=0",
    ]


async def _fault(cluster: Cluster, log: Path, text: str) -> float:
    """Writes a line; the milliseconds until the API server shows it."""
    await asyncio.sleep(1.3)  # no multiple of the second in which node-problem-detector looks for changes
    begun = time.monotonic()
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{datetime.now().strftime('%b %e %H:%M:%S')} host kernel: {text}\n")
    await _until(cluster, text)
    return 1000 * (time.monotonic() - begun)


async def _until(cluster: Cluster, message: str) -> None:
    """Waits until the condition has this message."""

    async def is_there() -> bool:
        return (await cluster.condition(node_name(0), "GpuProblem")).get("message") == message

    await until(is_there, SEEN_WITHIN_S, LOOK_S)


async def _in_parallel(do: Callable[[str], Awaitable[None]], names: list[str]) -> None:
    """Does it for each name, a few at a time."""
    waiting = iter(names)

    async def work() -> None:
        for name in waiting:
            await do(name)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work(), name="nodes that register")


async def _run(options: argparse.Namespace, directory: Path) -> list[Figure]:
    with ExitStack() as running:
        kubeconfig = options.kubeconfig or running.enter_context(Child(directory)).kubeconfig
        cluster = Cluster(kubeconfig)
        try:
            return await measure(options, cluster, directory)
        finally:
            await cluster.close()


def main() -> None:
    """Measures and publishes."""
    parser = arguments(__doc__)
    parser.add_argument("--kubeconfig", type=Path, help="of the administrator of an API server; unset: the stand-in")
    parser.add_argument("--servers", type=int, nargs="*", default=[], metavar="PID", help="processes to measure")
    parser.add_argument("--nodes", type=int, default=10_000, help="how many nodes there are")
    parser.add_argument("--window-s", type=float, default=60.0, help="seconds for which each way is measured")
    parser.add_argument("--node-problem-detector", type=Path, metavar="FILE", help="its program; needs --kubeconfig")
    parser.add_argument("--faults", type=int, default=20, help="how many faults it is shown")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        figures = asyncio.run(_run(options, Path(directory)))
    publish(options, figures)


if __name__ == "__main__":
    main()
