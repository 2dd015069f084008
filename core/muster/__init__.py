"""muster keeps a fleet of GPU nodes fit for duty.

This package is the contract: whatever an agent, the coordinator or a plugin imports from another part lives here.
A plugin needs only the names that this module exports.
"""

from importlib.metadata import version

from muster.alarm import Alarm, AlarmKind
from muster.check import (
    Check,
    Context,
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
from muster.model import Action, Device, Finding, Inventory, Measurement, Severity, Topology, Verdict
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

__version__ = version("gpu-muster")

__all__ = [
    "Action",
    "ActionOutcome",
    "Alarm",
    "AlarmKind",
    "Cause",
    "Check",
    "Config",
    "Context",
    "Device",
    "Effect",
    "Finding",
    "HealthFinding",
    "IdleProbe",
    "Idleness",
    "Inventory",
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
