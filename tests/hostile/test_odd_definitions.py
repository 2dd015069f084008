"""What one node announces about a check does not change the check for other nodes."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.hostile.world import HONEST, HOSTILE, Attacker, World

from muster.check import CheckInfo, Needs, Scope
from muster.model import Inventory
from muster.wire.codec import encode
from muster.wire.messages import InventoryReport, PluginInfo

LIES: dict[str, dict[str, Any]] = {
    "of one node": {"scope": Scope.NODE},
    "by another metric": {"objective": "latency_s"},
    "with other parameters": {"params": {"properties": {"made_up": {"type": "integer"}}}},
    "for ever": {"timeout_s": 30_000_000.0, "cost_s": 30_000_000.0},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_sweep_is_what_it_is_for_most_nodes(
    world: World, attacker: Attacker, tmp_path: Path, lie: dict[str, Any]
) -> None:
    """The other nodes finish it in time, and it names the node that it left out, with the reason."""
    honest: dict[str, Any] = {
        "name": "meeting",
        "summary": "",
        "scope": Scope.GROUP,
        "needs": Needs.NOTHING,
        "cadence_s": None,
        "timeout_s": 20.0,
        "objective": None,
        "params": {},
    }
    plugin = PluginInfo(name=f"lie-{time.time()}", distribution=None, version=None, status="loaded")
    report = InventoryReport(
        sent_at=time.time(),
        node=HOSTILE,
        inventory=Inventory(),
        checks=(CheckInfo(**{**honest, **lie}),),
        plugins=(plugin,),
    )
    world.announce(attacker, encode(report))
    begun = time.monotonic()
    params = {"book": str(tmp_path)}
    body = {"check": "meeting", "strategy": "whole", "params": params, "nodes": [HOSTILE, *HONEST]}
    assert world.api.post("sweeps", "plan", body=body)["timeout_s"] < 1000
    sweep = world.ended_sweep(world.api.post("sweeps", body=body)["id"])
    assert time.monotonic() - begun < 60
    reason = "its definition of check meeting differs from that of most nodes"
    assert (sweep["verdict"], sweep["absent"]) == ("PASS", {HOSTILE: reason})
    assert sorted(sweep["cleared_nodes"]) == sorted(HONEST)
