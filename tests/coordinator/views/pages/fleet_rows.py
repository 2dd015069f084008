"""Rows and facts of fleets for tests of pages, made in short."""

from muster.model import Action, Health, ServiceState, Severity, Topology
from muster_coordinator.model.nodes import FleetView, NodeFinding, NodeView
from muster_coordinator.model.quarantine_views import ActorView, QuarantineView
from muster_coordinator.views.pages.fleet_facts import FleetFacts
from muster_coordinator.views.pages.page_row import row_of_view

NOW = 1_800_000_000.0
SLURM = ActorView(name="slurm", summary="acts", can_cordon=True)


def found(code="gemm.slow", severity=Severity.ERROR, *, since=NOW - 600, **more):
    common = {"summary": "slow", "check": "gemm", "run": "r1", "seen": since, "action": Action.REPLACE}
    return NodeFinding(code=code, severity=severity, since=since, **{**common, **more})


def view(name, health=Health.HEALTHY, service=ServiceState.IN_SERVICE, *, place=None, findings=(), **more):
    common = {"lost": False, "last_seen": NOW - 5, "devices": ()}
    topology = Topology(**(place or {}))
    return NodeView(
        name=name, health=health, service=service, topology=topology, findings=findings, **{**common, **more}
    )


def row(name, *args, is_away=False, out_since=None, **more):
    return row_of_view(view(name, *args, **more), is_away=is_away, out_since=out_since)


def facts(*rows, quarantine=None, findings=(), **more):
    away = sum(each.is_away for each in rows)
    common = {"mode": "enforce", "nodes": len(rows), "away": away, "limit": 2, "per_minute": 6.0, "held": ()}
    whole = QuarantineView(**{**common, "frozen": (), "domains": (), **(quarantine or {})})
    fleet = FleetView(name="f", nodes=len(rows), health={}, service={}, lost=(), findings=findings)
    return FleetFacts(**{"at": NOW, "fleet": fleet, "rows": rows, "quarantine": whole, "actors": (SLURM,), **more})
