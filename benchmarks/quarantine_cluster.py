"""What both parts of the benchmark need: a cluster of the stand-in, and how a coordinator acts on it."""

import asyncio
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any

from benchmarks.fleet import ROOT
from benchmarks.kubernetes_standin.server import Request, StandIn

from muster.errors import Unavailable

PLUGIN = ROOT / "benchmarks" / "breakable_plugin" / "muster_breakable.py"

PER_MINUTE = 6_000
"""The highest rate that a budget may have."""

POLL_S = 0.002


def node_names(count: int) -> list[str]:
    """The names of this number of nodes, in their order."""
    return [f"node-{number:05}" for number in range(count)]


def cluster(directory: Path, nodes: Iterable[str]) -> StandIn:
    """A stand-in with these nodes; its files go to `directory`."""
    directory.mkdir()
    standin = StandIn(directory)
    for node in nodes:
        standin.add_node(node)
    return standin


def enforcing(standin: StandIn) -> dict[str, Any]:
    """The settings of a coordinator that takes nodes of the stand-in out of service."""
    return {
        "quarantine": {
            "mode": "enforce",
            "budget": {"share": "10%", "per_minute": PER_MINUTE},
            "mass_event": {"share": "100%"},
            "trust_loopback": True,
        },
        "plugins": {"kubernetes": {"actor": {"enabled": True, "kubeconfig": str(standin.kubeconfig())}}},
    }


def cordons(standin: StandIn, before: int) -> list[Request]:
    """The requests to cordon a node that came after the first `before`, without those refused as too late.

    A cordon is refused when the node has changed since it was read, such as its condition, and is sent again.
    """
    patches = [it for it in standin.requests[before:] if it.verb == "patch" and it.code != HTTPStatus.CONFLICT]
    return [it for it in patches if it.body.get("spec", {}).get("unschedulable")]


def node_of(request: Request) -> str:
    """The node that a patch is of."""
    return request.path.rsplit("/", 1)[-1]


def is_in_service(standin: StandIn, node: str) -> bool:
    """Whether the node may get work, and muster has said that it is in service."""
    known = standin.node(node)
    labels = known["metadata"].get("labels") or {}
    return not known["spec"].get("unschedulable") and labels.get("muster.dev/service-state") == "in-service"


async def until(condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Returns when the condition holds; Unavailable, with what it is about, when it does not within this time."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise Unavailable(f"not within {within_s:g} s: {what}")
        await asyncio.sleep(POLL_S)
