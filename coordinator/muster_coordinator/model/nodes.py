"""Records of nodes, as stored and served: state, findings and story."""

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
    MachineType,
    Name,
    ServiceState,
    Severity,
    Topology,
    Verdict,
)
from muster.wire.messages import PluginInfo
from muster_coordinator.model.baselines import FleetFinding
from muster_coordinator.model.load import CoordinatorLoad


class NodeFinding(Finding):
    """A finding that stands against a node.

    `run` is the run that found it last, and `seen` is when that run began. `since` is when it was found first, and
    `runs` is the number of runs that have found it since. `uuid` is that of the device when that run was taken; after a
    reboot, another device may have its index.
    """

    check: str
    run: str
    since: Instant
    seen: Instant = 0.0
    runs: int = 1
    uuid: str = ""


class NodeRecord(Data):
    """A node as it is stored. Its health is not stored: it follows from the evidence about it.

    `convictions` are the findings of sweeps; their `run` is the id of the sweep. `learned_leaf` is the leaf that sweeps
    have shown. `inventory_digest` is the digest of the message with the inventory. The name belongs to
    the `machine` with this id, if there is one. `scheduler_labels` are by actor.
    `clock_ahead_s` is set while the clock of the node is wrong. A forgotten node is `gone` until it is heard again, and
    measurements from before `forgotten_at` do not count.
    """

    name: str
    online: bool
    first_seen: Instant
    last_seen: Instant
    service: ServiceState
    inventory: Inventory = Inventory()
    inventory_digest: str = ""
    machine: str = ""
    scheduler_labels: dict[str, dict[str, str]] = {}
    learned_leaf: str | None = None
    clock_ahead_s: float | None = None
    checks: tuple[CheckInfo, ...] = ()
    plugins: tuple[PluginInfo, ...] = ()
    convictions: tuple[NodeFinding, ...] = ()
    gone: bool = False
    forgotten_at: Instant = 0.0


ANNOUNCED = {"checks", "plugins"}
"""The fields of a record that are stored apart from it, as `Announced`."""


class Announced(Data):
    """What a node announces that it can do."""

    checks: tuple[CheckInfo, ...] = ()
    plugins: tuple[PluginInfo, ...] = ()


def read_announced(text: str) -> Announced:
    """What a node has announced; nothing if it is no longer valid. The node announces it again."""
    try:
        return Announced.model_validate_json(text)
    except ValidationError:
        return Announced()


_FROM_NODE = {"inventory", "inventory_digest", *ANNOUNCED}
"""The fields that the node itself has reported."""


def read_node(body: str) -> NodeRecord:
    """The stored record of a node; ValidationError when it is damaged.

    A record whose inventory, checks or plugins are no longer valid is read without them. An earlier release may have
    accepted them, and the node reports them again. Prevents: one such record keeps the coordinator from starting.
    """
    try:
        return NodeRecord.model_validate_json(body)
    except ValidationError:
        stored = from_json(body)
        if not isinstance(stored, dict):
            raise
        return NodeRecord.model_validate({key: value for key, value in stored.items() if key not in _FROM_NODE})


class NodeState(Data):
    """What both the API's node and its summary say about the state of a node.

    `lost` says only that its heartbeat has stopped. The `health` of a lost node is UNKNOWN, or its fault if it has one.
    `last_health` is its health when it last reported. A node that has `left` the fleet is silent and no scheduler lists
    it, or another node has its name. In a `dry_run` the service state is what it would be.
    """

    name: str
    health: Health
    last_health: Health | None = None
    service: ServiceState
    dry_run: bool = False
    lost: bool
    left: bool = False
    last_seen: Instant


class NodeView(NodeState):
    """A node as the API serves it.

    `lost` says only that its heartbeat has stopped. The `health` of a lost node is UNKNOWN, or its fault if it has one.
    `last_health` is its health when it last reported. A node that has `left` the fleet is silent and no scheduler lists
    it, or another node has its name.

    In a `dry_run` the service state is what it would be. `clock_ahead_s` is how many seconds its clock is ahead of the
    coordinator's; negative if it is behind, None if it is right. `machine_types` has what each source says, and the
    first is the `machine_type`. Findings of the check `node` are about its setup; they do not change its health.
    """

    clock_ahead_s: float | None = None
    devices: tuple[Device, ...]
    findings: tuple[NodeFinding, ...]
    reasons: tuple[str, ...] = ()
    topology: Topology = Topology()
    labels: dict[str, str] = {}
    machine_type: str | None = None
    machine_types: tuple[MachineType, ...] = ()
    software: dict[str, str] = {}
    checks: dict[str, Verdict] = {}
    plugins: tuple[PluginInfo, ...] = ()
    outbox: int = 0
    dropped: dict[str, int] = {}


class DeviceCount(Data):
    """How many devices of a model a node has."""

    model: str
    simulated: bool = False
    count: int


class FindingSummary(Data):
    """What a list shows of a finding. `evidence` has the number of the driver's error at most (`xid`, `sxid`)."""

    code: str
    severity: Severity
    device: int | None = None
    evidence: dict[str, int] = {}


class NodeSummary(NodeState):
    """What a list shows of a node: a fifteenth of its `NodeView`, whose fields of the same names it has."""

    devices: tuple[DeviceCount, ...]
    findings: tuple[FindingSummary, ...]


class NodeGone(Data):
    """A node that was forgotten or deleted. If it is heard again, it is a new node."""

    name: str


class StoryEntry(Data):
    """One entry in the story of a node. `cause` is the id of the run, sweep or request behind it."""

    id: str
    at: Instant
    node: str
    kind: str
    text: str
    cause: str | None = None
    data: Json = {}


class DatabaseUse(Data):
    """How much the coordinator's database has of what it may have (`store.max_gb`), in GB of 1e9 bytes.

    `days_left` is when it reaches that at the growth of the last day; None if it does not grow, or not yet known to.
    """

    used_gb: float
    max_gb: float
    days_left: float | None = None


class FleetView(Data):
    """The fleet as a whole: number of nodes, by health and by service state, and findings about many nodes.

    Nodes that have left the fleet are not among the `lost` ones. `load` and `database` are those of the coordinator.
    """

    name: Name
    nodes: int
    health: dict[Health, int]
    service: dict[ServiceState, int]
    lost: tuple[str, ...]
    findings: tuple[FleetFinding, ...]
    load: CoordinatorLoad = CoordinatorLoad()
    database: DatabaseUse | None = None


class Misconduct(StrEnum):
    """What an agent can do wrong. Each value is the code of its finding."""

    FLOODING = "agent.flooding"
    REFUSED = "agent.message_refused"
    FAILED = "agent.message_failed"
    OVER_QUOTA = "agent.over_quota"
    NOT_ANNOUNCED = "agent.check_not_announced"
    NAME_IN_USE = "agent.name_in_use"
