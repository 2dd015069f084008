"""The fleet of the demo, its faults, and the nodes that muster named."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.errors import Refused
from muster.model import Health, Json, Severity
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.model.sweep_records import SweepRecord

LEAST_NODES = 2
LEAST_NODES_WITH_FAULTS = 6
MOST_NODES = 64
"""With fewer than six nodes, two faulty ones may leave no pair that passes, and nothing to compare with."""

BACKGROUND_CHECKS = ("simulated", "gemm", "training")
SWEEP_CHECK = "collective"
SWEEP_PARAMS: Json = {"size_bytes": 4 << 20, "iterations": 20}
"""Smaller and more messages than by default, because all pairs share the few cores of one host."""

LEAST_AT_ONCE = 2
"""Number of nodes in a pair."""

FAULTS: dict[str, list[Json]] = {
    "gpu": [{"kind": "ecc", "device": 0}, {"kind": "corrupt", "device": 0}],
    "slow_link": [{"kind": "slow_link", "factor": 20}],
}
"""The settings of the simulated devices that cause a fault, by its name."""

FAULT_TEXTS = {"gpu": "a GPU fault", "slow_link": "a slow link"}


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """The names of the nodes, and the fault of each faulty one."""

    nodes: tuple[str, ...]
    injected: dict[str, str]


_OWN = ("fleet", "node", "data_dir", "broker", "store.url", "agent.listen")
"""Settings that the demo makes itself.

With those of a file, it would write into the data of a real fleet, or all its agents would listen at one port.
"""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses at which the parts of the demo listen, all on loopback."""

    broker: str
    http: str


def plan(count: int, with_faults: bool) -> DemoPlan:
    """A fleet of `count` nodes. Raises Refused for too few to tell the faults apart, or too many for one host."""
    least = LEAST_NODES_WITH_FAULTS if with_faults else LEAST_NODES
    if not least <= count <= MOST_NODES:
        raise Refused(f"--nodes {count}: the demo needs {least} to {MOST_NODES} nodes")
    nodes = tuple(f"node-{number}" for number in range(1, count + 1))
    injected = {nodes[count // 3]: "gpu", nodes[2 * count // 3]: "slow_link"} if with_faults else {}
    return DemoPlan(nodes, injected)


def require_usable(table: Mapping[str, Any], file: Path) -> None:
    """Raises Refused if the settings `table` in `file` has settings that the demo makes itself."""
    if found := [name for name in _OWN if _is_set(table, name)]:
        raise Refused(
            f"--config {file}: the demo makes its own {', '.join(found)}; use a file without them, or no --config"
        )


def _is_set(table: Mapping[str, Any], name: str) -> bool:
    first, _, rest = name.partition(".")
    return first in table and (not rest or _is_set(table[first], rest))


def coordinator_directory(directory: Path) -> Path:
    """The coordinator's `data_dir` in the demo's directory."""
    return directory / "coordinator"


def coordinator_settings(addresses: Addresses, directory: Path) -> dict[str, Any]:
    """The coordinator's settings: embedded broker, SQLite in the demo's directory."""
    return {
        "fleet": "demo",
        "data_dir": str(coordinator_directory(directory)),
        "broker": {"listen": addresses.broker},
        "http": {"listen": addresses.http},
    }


def agent_settings(node: str, fleet: DemoPlan, addresses: Addresses, directory: Path) -> dict[str, Any]:
    """One agent's settings: a simulated device with the node's fault, and background checks at the pace of a demo.

    Only the cheap check runs often. The others run once: their interval is longer than the demo. `memory` does not run:
    on a CPU it measures the memory that all nodes share, and would take their cores for a second each.
    """
    fault = fleet.injected.get(node)
    return {
        "fleet": "demo",
        "node": node,
        "data_dir": str(directory / node),
        "expected_gpus": 1,
        "broker": {"url": f"mqtt://{addresses.broker}"},
        "agent": {"listen": "127.0.0.1:0", "heartbeat_s": 2, "spread_s": 5},
        "checks": {"simulated": {"interval_s": 2}, "memory": {"enabled": False}},
        "plugins": {
            "disabled": ["nvml"],
            "simulated": {"enabled": True, "devices": 1, "faults": FAULTS[fault] if fault else []},
        },
    }


def at_once(cores: int) -> str:
    """The number of nodes that the sweep measures at once. Each needs a core, or healthy nodes look slow by chance."""
    return str(max(LEAST_AT_ONCE, cores))


def named(nodes: list[NodeView], sweep: SweepRecord) -> dict[str, list[str]]:
    """The codes of the errors that stand against the nodes that muster names as faulty, by node.

    A node is named if it is FAILED or the sweep convicted it.
    """
    convicted = {failed.node for failed in sweep.failed_nodes}
    return {
        node.name: sorted({finding.code for finding in node.findings if finding.severity is Severity.ERROR})
        for node in nodes
        if node.health is Health.FAILED or node.name in convicted
    }
