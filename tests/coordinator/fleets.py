"""Fleets, the messages of their nodes, and what they do about these in short."""

from typing import Any

from muster.check import CheckInfo, Needs, Scope
from muster.model import Action, Finding, Inventory, Run, Severity, Topology, Verdict
from muster.wire.codec import encode
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    Announce,
    AppendStory,
    FleetCommand,
    InventorySeen,
    PresenceSeen,
    ReportSeen,
    SendCommand,
    SweepRequested,
)
from muster_coordinator.model.nodes import NodeView
from muster_coordinator.model.quarantine_events import SaveRecord, SaveTransition
from muster_coordinator.model.sweep_records import SweepRequest


def check(name: str, scope: Scope, **params: Any) -> CheckInfo:
    return CheckInfo(
        name=name,
        summary=name,
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=20.0,
        objective=None,
        params={"type": "object", "properties": params, "additionalProperties": False},
    )


CHECKS = (check("gemm", Scope.NODE, size={"type": "integer", "minimum": 1}), check("collective", Scope.GROUP))


def head(node: str) -> dict[str, Any]:
    return {"id": f"m-{node}", "sent_at": 1.0, "node": node}


def inventory(node: str, rack: str | None = None, **more: Any) -> InventorySeen:
    made = Inventory(topology=Topology(rack=rack))
    return InventorySeen(InventoryReport(**head(node), inventory=made, checks=CHECKS, **more))


def presence(node: str, *, online: bool = True) -> PresenceSeen:
    return PresenceSeen(Presence(**head(node), online=online, goodbye=not online, outbox=3))


def run(seq: int, verdict: Verdict = Verdict.PASS, node: str = "a") -> Run:
    finding = Finding(code="gemm.slow", summary="slow", severity=Severity.ERROR, action=Action.REPLACE)
    findings = (finding,) if verdict is Verdict.FAIL else ()
    return Run(
        id=f"r{seq}",
        node=node,
        check="gemm",
        verdict=verdict,
        findings=findings,
        started_at=float(seq),
        duration_s=0.1,
        seq=seq,
    )


def report(*runs: Run, after: int = 0) -> ReportSeen:
    message = Report(**head(runs[0].node), stream="s", after=after, runs=runs)
    return ReportSeen(message, len(encode(message)))


def sweep(name: str, *, check: str = "collective", **asked: Any) -> SweepRequested:
    return SweepRequested(name, SweepRequest(check=check, **asked))


def fleet(*nodes: str) -> Fleet:
    made = Fleet(name="test", epoch=7)
    for node in nodes:
        made.handle(inventory(node), 0.0)
    return made


def views(made: Fleet, now: float) -> list[NodeView]:
    """All nodes as they are served."""
    found = (made.node(name, now) for name in made.names)
    return [view for view in found if view is not None]


def kinds(commands: list[FleetCommand]) -> list[str]:
    """The commands in short: their names, with the kind of what they tell, announce or send.

    What the quarantine writes down and announces comes with nearly all of them, and is left out.
    """
    words = []
    for command in commands:
        match command:
            case SaveRecord() | SaveTransition() | Announce("case"):
                pass
            case AppendStory(entry):
                words.append(f"tell {entry.kind}")
            case Announce(kind):
                words.append(f"announce {kind}")
            case SendCommand(node, order):
                words.append(f"{order.kind} {node}")
            case _:
                words.append(type(command).__name__)
    return words
