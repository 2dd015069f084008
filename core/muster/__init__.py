"""muster tests a fleet of GPU nodes, finds the faulty ones and keeps work off them.

This package is the contract: everything that an agent, the coordinator or a plugin imports from another part is here. A
plugin needs only the names that this module exports. Each name is imported at its first use, because importing all of
them takes longer than a command such as `muster node list` takes to run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.alarm import Alarm, AlarmKind
    from muster.artifact import Artifact
    from muster.check import (
        Check,
        Context,
        DepartureProbe,
        Idleness,
        IdleProbe,
        Needs,
        Params,
        Rendezvous,
        Reservation,
        Scope,
        Skip,
        Worse,
    )
    from muster.config import Config
    from muster.hookspecs import hookimpl
    from muster.model import (
        Action,
        Device,
        Finding,
        Inventory,
        MachineType,
        MachineTypeSource,
        Measurement,
        Severity,
        Topology,
        Verdict,
    )
    from muster.node_health import HealthFinding, NodeHealthReport
    from muster.references import Reference, judge_value
    from muster.section import Section
    from muster.transition import (
        ActionOutcome,
        Cause,
        Effect,
        Mark,
        SchedulerNode,
        Survey,
        Transition,
        cause_text,
        describe_causes,
    )
    from muster.version import __version__

_EXPORTS = {
    "alarm": "Alarm AlarmKind",
    "artifact": "Artifact",
    "check": "Check Context DepartureProbe IdleProbe Idleness Needs Params Rendezvous Reservation Scope Skip Worse",
    "config": "Config",
    "hookspecs": "hookimpl",
    "model": "Action Device Finding Inventory MachineType MachineTypeSource Measurement Severity Topology Verdict",
    "node_health": "HealthFinding NodeHealthReport",
    "references": "Reference judge_value",
    "section": "Section",
    "transition": "ActionOutcome Cause Effect Mark SchedulerNode Survey Transition cause_text describe_causes",
    "version": "__version__",
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """The exported object of this name, imported now (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    return getattr(import_module(f"muster.{_MODULES[name]}"), name)


__all__ = [
    "Action",
    "ActionOutcome",
    "Alarm",
    "AlarmKind",
    "Artifact",
    "Cause",
    "Check",
    "Config",
    "Context",
    "DepartureProbe",
    "Device",
    "Effect",
    "Finding",
    "HealthFinding",
    "IdleProbe",
    "Idleness",
    "Inventory",
    "MachineType",
    "MachineTypeSource",
    "Mark",
    "Measurement",
    "Needs",
    "NodeHealthReport",
    "Params",
    "Reference",
    "Rendezvous",
    "Reservation",
    "SchedulerNode",
    "Scope",
    "Section",
    "Severity",
    "Skip",
    "Survey",
    "Topology",
    "Transition",
    "Verdict",
    "Worse",
    "__version__",
    "cause_text",
    "describe_causes",
    "hookimpl",
    "judge_value",
]
