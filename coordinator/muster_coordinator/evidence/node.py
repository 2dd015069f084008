"""The coordinator's present knowledge about one node."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_core import to_json

from muster.check import PLUGINS_LOADED, CheckInfo
from muster.model import Device, Health, Inventory, MachineType, Run, ServiceState, Severity, Topology
from muster.wire.messages import InventoryReport, PluginInfo, Presence
from muster_coordinator.evidence.announced_checks import AnnouncedChecks
from muster_coordinator.evidence.health import Evidence, present_health
from muster_coordinator.evidence.node_clock import NodeClock
from muster_coordinator.evidence.setup_findings import setup_findings
from muster_coordinator.model.hardware_kind import HardwareKind
from muster_coordinator.model.nodes import NodeFinding, NodeRecord, NodeView
from muster_coordinator.topology.selection_term import Candidate

NOWHERE = Topology()

LATE_S = 60.0
"""A run that arrives this long after its end has waited in the outbox, and other runs may wait after it."""

SOON_S = 10.0
"""A run that starts this long before a late one arrives, or after that, ends the wait for older runs. An overloaded
coordinator takes the runs of every node late, and a new fault within some seconds, with all that waited before it.
"""

_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.UNKNOWN)


class Hardware(NamedTuple):
    """The models of the devices of a node, and whether any of them is simulated."""

    gpu_models: frozenset[str]
    is_simulated: bool

    @classmethod
    def of(cls, devices: Collection[Device]) -> "Hardware":
        return cls(frozenset(device.model for device in devices), any(device.simulated for device in devices))


@dataclass(slots=True)
class Node:
    """One node. `last_seen` is when it was heard last; `health` is that of its evidence.

    In a `dry_run` the service state is only what it would be. A node that has `left` the fleet keeps its state.
    Measurements from before `forgotten_at` do not count. `tested_at` is when a sweep has cleared or convicted it last.

    `is_heard` is false until the first message after the coordinator's start, or after the broker was away. Runs from
    before `backlog_before` may wait in its outbox; None when no older runs do. `process` is an id of its agent's
    process, and `machine` one of the machine to which its name belongs; both are empty while they are not known.
    `inventory_digest` is the digest of the message with its inventory, which was sent at `inventory_at`.

    Its position comes from four sources, the first that names a level counts: the topology file (`declared`), its own
    inventory, the labels at its schedulers (`scheduled`, from `scheduler_labels` by actor), and `learned_leaf`, which
    sweeps have shown. `labelled_machine_type` is from the labels at its schedulers, too.
    """

    name: str
    first_seen: float
    last_seen: float
    online: bool = True
    service: ServiceState = ServiceState.ACCEPTING
    dry_run: bool = False
    left: bool = False
    health: Health = Health.UNKNOWN
    evidence: Evidence = field(default_factory=Evidence)
    inventory: Inventory = field(default_factory=Inventory)
    inventory_at: float = 0.0
    announced: AnnouncedChecks = field(default_factory=lambda: AnnouncedChecks.of(()))
    plugins: tuple[PluginInfo, ...] = ()
    outbox: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    declared: Topology = NOWHERE
    scheduler_labels: dict[str, dict[str, str]] = field(default_factory=dict)
    scheduled: Topology = NOWHERE
    labelled_machine_type: MachineType | None = None
    learned_leaf: str | None = None
    clock: NodeClock = field(default_factory=NodeClock)
    forgotten_at: float = 0.0
    tested_at: float = 0.0
    is_heard: bool = True
    process: str = ""
    machine: str = ""
    inventory_digest: str = ""
    backlog_before: float | None = None
    _inventory_bytes: int | None = None
    _hardware: Hardware | None = None

    @classmethod
    def from_record(cls, record: NodeRecord, tested_at: float = 0.0) -> "Node":
        node = cls(record.name, record.first_seen, record.last_seen, record.online, record.service)
        node.inventory, node.plugins, node.learned_leaf = record.inventory, record.plugins, record.learned_leaf
        node.scheduler_labels, node.forgotten_at = dict(record.scheduler_labels), record.forgotten_at
        node.clock, node.inventory_digest = NodeClock(record.clock_ahead_s), record.inventory_digest
        node.machine, node.inventory_at = record.machine, record.first_seen
        node.announced = AnnouncedChecks.of(record.checks)
        node.evidence.convictions = {finding.check: finding for finding in record.convictions}
        node.is_heard, node.tested_at = False, tested_at
        return node

    @property
    def checks(self) -> Mapping[str, CheckInfo]:
        """The checks that it has announced, by name."""
        return self.announced.by_name

    @property
    def topology(self) -> Topology:
        """Its position in the fleet, level by level from the first source that names it."""
        where = self.inventory.topology
        if self.declared is not NOWHERE:
            where = self.declared.or_else(where)
        if self.scheduled is not NOWHERE:
            where = where.or_else(self.scheduled)
        return where if self.learned_leaf is None else where.or_else(Topology(leaf=self.learned_leaf))

    @property
    def candidate(self) -> Candidate:
        """The properties that a selection of nodes compares."""
        return Candidate(
            name=self.name,
            topology=self.topology,
            labels=self.labels,
            health=present_health(self.health, lost=not self.online),
            service=self.service,
            machine_type=self.machine_type,
            gpu_models=self.hardware.gpu_models,
            lost=not self.online,
            left=self.left,
            is_simulated=self.hardware.is_simulated,
        )

    @property
    def hardware(self) -> Hardware:
        """What lists say of its devices. It is kept: some lists have 10,000 nodes."""
        if self._hardware is None:
            self._hardware = Hardware.of(self.inventory.devices)
        return self._hardware

    @property
    def hardware_kind(self) -> HardwareKind:
        """Its kind of hardware."""
        return HardwareKind.of(self.inventory, self.machine_type)

    @property
    def machine_type(self) -> str | None:
        """The machine type, None if unknown. If the agent does not know it, that of the schedulers' labels counts."""
        labelled = self.labelled_machine_type
        return self.inventory.machine_type or (None if labelled is None else labelled.name)

    @property
    def machine_types(self) -> tuple[MachineType, ...]:
        """What each source says about its machine type, the one that counts first.

        The agent judges measurements, so what it says counts before the schedulers' labels. An agent of an earlier
        release names no source.
        """
        own, labelled = self.inventory.machine_types, self.labelled_machine_type
        names_no_source = self.inventory.machine_type is not None and not own
        return own if labelled is None or labelled in own or names_no_source else (*own, labelled)

    @property
    def findings(self) -> tuple[NodeFinding, ...]:
        """What stands against it, and what is missing in its setup."""
        return (*self.evidence.findings, *setup_findings(self.inventory, self.machine_types, self.inventory_at))

    @property
    def inventory_bytes(self) -> int:
        """Size of its inventory and plugins as JSON, in bytes."""
        if self._inventory_bytes is None:
            self._inventory_bytes = len(to_json((self.inventory, self.plugins)))
        return self._inventory_bytes

    @property
    def labels(self) -> dict[str, str]:
        """Its labels. Those of its agent override those of its schedulers."""
        return {**self.labels_of_schedulers, **self.inventory.labels}

    @property
    def labels_of_schedulers(self) -> dict[str, str]:
        """The labels at its schedulers.

        If two have the same label, that of the actor that comes last by name counts.
        """
        return {key: value for _, labels in sorted(self.scheduler_labels.items()) for key, value in labels.items()}

    @property
    def is_examined(self) -> bool:
        """Whether each background check that needs no idle node has reported."""
        return bool(self.checks) and not self._not_measured

    def has_announced(self, check: str) -> bool:
        """Whether the node has announced this check. Every agent reports PLUGINS_LOADED without announcing it."""
        return check in self.checks or check == PLUGINS_LOADED

    @property
    def examined_health(self) -> Health:
        """The health by the evidence so far.

        Passes make a node HEALTHY only when it is examined: otherwise a new node would be HEALTHY for some seconds just
        because its plugins have loaded. A fault counts at once.
        """
        health = self.evidence.health
        return Health.UNKNOWN if health is Health.HEALTHY and not self.is_examined else health

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the node is not healthy: one sentence for each reason."""
        is_incomplete = self.evidence.health is Health.HEALTHY and not self.is_examined
        return (self._unexamined_because,) if is_incomplete else self.evidence.reasons

    @property
    def is_fit(self) -> bool:
        """Whether the node is examined and healthy."""
        return self.health is Health.HEALTHY and self.is_examined

    @property
    def unfit_because(self) -> str:
        """Why the node is not fit, for people; empty when it is."""
        if not self.is_examined:
            return self._unexamined_because
        if self.health is Health.HEALTHY:
            return ""
        worst = min(self.evidence.findings, key=lambda finding: _WORST_FIRST.index(finding.severity), default=None)
        reason = next(iter(self.evidence.reasons), "") if worst is None else f"{worst.code}: {worst.summary}"
        return f"its health is {self.health}: {reason}"

    @property
    def uuids(self) -> dict[int, str]:
        """The UUIDs of its devices, by index."""
        return {device.index: device.uuid for device in self.inventory.devices}

    @property
    def _unexamined_because(self) -> str:
        if not self.checks:
            return "its inventory has not arrived yet"
        return f"not measured yet: {', '.join(self._not_measured)}"

    @property
    def _not_measured(self) -> list[str]:
        return [check for check in self.announced.reporting_soon if check not in self.evidence.verdicts]

    def drop_evidence(self, now: float) -> None:
        """Drops all evidence, because another node has the same name now. Runs in its outbox do not count."""
        self.evidence, self.health, self.learned_leaf, self.forgotten_at = Evidence(), Health.UNKNOWN, None, now
        self.is_heard, self.backlog_before, self.machine = True, None, ""

    def is_from_new_process(self, message: Presence) -> bool:
        """Whether its agent was restarted: the presence is from another process than the last one."""
        return bool(self.process) and message.process not in ("", self.process)

    def note_presence(self, message: Presence) -> None:
        self.outbox, self.dropped, self.process = message.outbox, message.dropped, message.process

    def note_delivery(self, run: Run, now: float) -> None:
        """Notes whether older runs may wait in its outbox: an agent sends its runs in order."""
        if self.backlog_before is None:
            is_late = now - (run.started_at + run.duration_s) > LATE_S
            self.backlog_before = now - SOON_S if is_late else None
        elif run.started_at >= self.backlog_before:
            self.backlog_before = None

    def note_inventory(self, message: InventoryReport) -> bool:
        """Replaces inventory, checks and plugins. Returns whether anything changed."""
        before = (self.inventory, self.checks, self.plugins)
        self.inventory, self.plugins, self.inventory_at = message.inventory, message.plugins, message.sent_at
        self.announced = AnnouncedChecks.of(message.checks)
        self._inventory_bytes = self._hardware = None
        return before != (self.inventory, self.checks, self.plugins)

    def record(self) -> NodeRecord:
        return NodeRecord(
            name=self.name,
            online=self.online,
            first_seen=self.first_seen,
            last_seen=self.last_seen,
            service=self.service,
            inventory=self.inventory,
            inventory_digest=self.inventory_digest,
            machine=self.machine,
            scheduler_labels=self.scheduler_labels,
            learned_leaf=self.learned_leaf,
            clock_ahead_s=self.clock.ahead_s,
            checks=tuple(self.checks.values()),
            plugins=self.plugins,
            convictions=tuple(self.evidence.convictions.values()),
            forgotten_at=self.forgotten_at,
        )

    def view(self, *, lost: bool) -> NodeView:
        return NodeView(
            name=self.name,
            health=present_health(self.health, lost=lost),
            last_health=self.health,
            service=self.service,
            dry_run=self.dry_run,
            lost=lost,
            left=self.left,
            last_seen=self.last_seen,
            clock_ahead_s=self.clock.ahead_s,
            devices=self.inventory.devices,
            findings=self.findings,
            reasons=self.reasons,
            topology=self.topology,
            labels=self.labels,
            machine_type=self.machine_type,
            machine_types=self.machine_types,
            software=self.inventory.software,
            checks=dict(self.evidence.verdicts),
            plugins=self.plugins,
            outbox=self.outbox,
            dropped=self.dropped,
        )
