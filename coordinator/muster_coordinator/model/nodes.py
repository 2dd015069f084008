"""What the coordinator stores and serves: nodes, the story of how each came to its state, and what is normal."""

from enum import StrEnum

from pydantic import ValidationError
from pydantic_core import from_json

from muster.check import CheckInfo
from muster.model import (
    Data,
    Device,
    Finding,
    Health,
    Instant,
    Inventory,
    Json,
    Name,
    ServiceState,
    Topology,
    Verdict,
)
from muster.wire.messages import PluginInfo
from muster_coordinator.model.baselines import FleetFinding


class NodeFinding(Finding):
    """A finding that stands against a node.

    `run` is the run that found it last, which began at `seen`; `since` is when it was found first, and `runs` how many
    have found it from then on.
    """

    check: str
    run: str
    since: Instant
    seen: Instant = 0.0
    runs: int = 1


class NodeRecord(Data):
    """A node as it is stored. Health is not: it is folded from the runs again after a restart.

    `convictions` are what sweeps have found against the node, by check; `run` in them is the sweep's id. At which leaf
    it stands, sweeps may have shown as well. `scheduler_labels` are by actor. `clock_ahead_s` is set when its clock is
    wrong. A node that was forgotten is `gone` until it is heard of again, and what was measured before `forgotten_at`
    counts no more.
    """

    name: str
    online: bool
    first_seen: Instant
    last_seen: Instant
    service: ServiceState
    inventory: Inventory = Inventory()
    scheduler_labels: dict[str, dict[str, str]] = {}
    learned_leaf: str | None = None
    clock_ahead_s: float | None = None
    checks: tuple[CheckInfo, ...] = ()
    plugins: tuple[PluginInfo, ...] = ()
    convictions: tuple[NodeFinding, ...] = ()
    gone: bool = False
    forgotten_at: Instant = 0.0


_FROM_NODE = {"inventory", "checks", "plugins"}
"""The fields that hold what the node has reported about itself."""


def read_node(body: str) -> NodeRecord:
    """The stored record of a node; ValidationError when it is damaged.

    A record whose inventory, checks or plugins are not valid any more is read without them: an earlier release may have
    accepted them, the node reports them again, and no node may keep the coordinator from starting.
    """
    try:
        return NodeRecord.model_validate_json(body)
    except ValidationError:
        stored = from_json(body)
        if not isinstance(stored, dict):
            raise
        return NodeRecord.model_validate({key: value for key, value in stored.items() if key not in _FROM_NODE})


class NodeView(Data):
    """A node as the API serves it.

    `lost` says only that its heartbeat has stopped. One that has `left` the fleet is silent and listed by no scheduler
    any more, or another one is under its name.

    In a `dry_run` the service state is what it would be. `clock_ahead_s` is how far its clock is ahead of the
    coordinator's, or behind when it is negative; None while it is right.
    """

    name: str
    health: Health
    service: ServiceState
    dry_run: bool = False
    lost: bool
    left: bool = False
    last_seen: Instant
    clock_ahead_s: float | None = None
    devices: tuple[Device, ...]
    findings: tuple[NodeFinding, ...]
    reasons: tuple[str, ...] = ()
    topology: Topology = Topology()
    labels: dict[str, str] = {}
    machine_type: str | None = None
    software: dict[str, str] = {}
    checks: dict[str, Verdict] = {}
    plugins: tuple[PluginInfo, ...] = ()
    outbox: int = 0
    dropped: dict[str, int] = {}


class StoryEntry(Data):
    """One step in a node's story; `cause` is the id of the run, sweep or request that led to it."""

    id: str
    at: Instant
    node: str
    kind: str
    text: str
    cause: str | None = None
    data: Json = {}


class FleetView(Data):
    """The fleet as a whole: how many nodes, by health and by service state, and what is wrong with many.

    Those that are `lost` do not count those that have left.
    """

    name: Name
    nodes: int
    health: dict[Health, int]
    service: dict[ServiceState, int]
    lost: tuple[str, ...]
    findings: tuple[FleetFinding, ...]


class Misconduct(StrEnum):
    """What an agent can do wrong. Each value is the code of its finding."""

    FLOODING = "agent.flooding"
    REFUSED = "agent.message_refused"
    FAILED = "agent.message_failed"
    OVER_QUOTA = "agent.over_quota"
    NOT_ANNOUNCED = "agent.check_not_announced"


class HistoryPoint(Data):
    """What one run measured, or several in the same hour: `run` names the only one.

    `values`, of several runs their medians, are by device index, or under "" for the node; `least` and `most` are what
    several runs measured.
    """

    at: Instant
    check: Name
    verdicts: dict[Verdict, int]
    run: Name | None = None
    values: dict[str, float]
    least: dict[str, float] | None = None
    most: dict[str, float] | None = None
