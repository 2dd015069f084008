"""To which machine the name of a node belongs.

A name belongs to the first machine that uses it, until a person forgets the node or its scheduler registers another
machine under the name. What another machine says under the name is refused. Otherwise its runs would count as those of
the node, and the node would be drained for the faults of a machine that somebody set up under the wrong name.

Heartbeats and inventories say from which machine they are. Reports do not: those of a stream that the node had before
are the node's, and new streams are refused while the last heartbeat came from another machine. An agent that names no
machine (before 0.2, or without a machine id) is taken for the owner.

This protects against mistakes. Against somebody who has the key of a node, only the access list of the broker does.
"""

from collections.abc import Callable

from muster_coordinator.evidence.deduplication import Streams
from muster_coordinator.evidence.inventory_intake import InventoryIntake
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import (
    FleetCommand,
    FleetEvent,
    GroupReplySeen,
    InventorySeen,
    PresenceSeen,
    ReportSeen,
    SaveNode,
)
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.orders import Orders

NodeSpoke = PresenceSeen | InventorySeen | ReportSeen | GroupReplySeen


class NameOwners:
    """The machines that use a name which belongs to another one. `has_left` says whether a name is free again."""

    def __init__(
        self,
        registry: NodeRegistry,
        inventories: InventoryIntake,
        streams: Streams,
        orders: Orders,
        has_left: Callable[[str], bool],
    ) -> None:
        self._registry = registry
        self._inventories = inventories
        self._streams = streams
        self._orders = orders
        self._has_left = has_left
        self._others: dict[str, str] = {}
        self._refused_inventories: dict[str, InventorySeen] = {}

    def refused(self, event: FleetEvent, now: float) -> list[FleetCommand] | None:
        """What follows from an event of a machine to which the name does not belong; None for every other event."""
        if not isinstance(event, NodeSpoke):
            return None
        name = event.message.node
        if name not in self._registry.nodes or self._has_left(name):
            self._others.pop(name, None)
            return None
        other = self._other_machine(name, event)
        if other is None:
            return None
        detail = f"machine {other}; the name belongs to {self._registry.nodes[name].machine}"
        return self._registry.note_misconduct(name, Misconduct.NAME_IN_USE, detail, self._orders.new_id(), now)

    def bind(self, event: PresenceSeen) -> list[FleetCommand]:
        """Gives the name to the machine, if it belongs to none. An agent does not send its inventory a second time."""
        node = self._registry.nodes.get(event.message.node)
        if node is None or node.machine or not event.message.machine:
            return []
        node.machine = event.message.machine
        refused = self._refused_inventories.pop(node.name, None)
        if refused is not None and refused.message.machine == node.machine:
            self._inventories.note(refused)
        return [SaveNode(node.record())]

    def _other_machine(
        self, name: str, event: PresenceSeen | InventorySeen | ReportSeen | GroupReplySeen
    ) -> str | None:
        """The machine that has sent this, if the name belongs to another one."""
        match event:
            case PresenceSeen(message, kept):
                other = self._other(name, message.machine)
                if not kept:
                    self._note(name, other)
                return other
            case InventorySeen(message) if message.machine:
                other = self._other(name, message.machine)
                if other is not None:
                    self._refused_inventories[name] = event
                return other
            case ReportSeen(message) if self._streams.is_known(name, message.stream):
                return None
        return self._others.get(name)

    def _other(self, name: str, machine: str) -> str | None:
        owner = self._registry.nodes[name].machine
        return machine if owner and machine not in ("", owner) else None

    def _note(self, name: str, other: str | None) -> None:
        if other is None:
            self._others.pop(name, None)
        else:
            self._others[name] = other
