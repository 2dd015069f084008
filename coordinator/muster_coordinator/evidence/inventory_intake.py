"""Takes the inventories of nodes, within their quotas, and knows which of them were taken already."""

from muster_coordinator.evidence.quotas import Quotas
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import FleetCommand, InventorySeen
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.orders import Orders


class InventoryIntake:
    """Keeps the latest inventory of each node until the node's quota has room for it."""

    def __init__(self, registry: NodeRegistry, quotas: Quotas, orders: Orders) -> None:
        self._registry = registry
        self._quotas = quotas
        self._orders = orders
        self._waiting: dict[str, InventorySeen] = {}

    def is_known(self, name: str, digest: str) -> bool:
        """Whether the message with this digest is the inventory that was taken last from the node."""
        node = self._registry.nodes.get(name)
        return node is not None and node.inventory_digest == digest and name not in self._waiting

    def note(self, seen: InventorySeen) -> None:
        """Keeps an inventory until it is taken."""
        self._waiting[seen.message.node] = seen

    def take(self, name: str, now: float) -> list[FleetCommand]:
        """Takes a node's inventory if one waits and the node's quota has room."""
        if name not in self._waiting:
            return []
        if not self._quotas.has_room(name, now):
            return self._registry.note_misconduct(name, Misconduct.OVER_QUOTA, "", self._orders.new_id(), now)
        seen = self._waiting.pop(name)
        if commands := self._registry.equip(seen, now):
            # Including the changes that follow from it.
            self._quotas.charge(name, stored_bytes=2 * len(seen.message.model_dump_json()))
            self._quotas.charge_changes(self._registry.nodes[name], len(commands))
        return commands
