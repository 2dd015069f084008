"""Takes the inventories of nodes, within their quotas."""

from muster.wire.messages import InventoryReport
from muster_coordinator.evidence.quotas import Quotas
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import FleetCommand
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.orders import Orders


class InventoryIntake:
    """Keeps the latest inventory of each node until the node's quota has room for it."""

    def __init__(self, registry: NodeRegistry, quotas: Quotas, orders: Orders) -> None:
        self._registry = registry
        self._quotas = quotas
        self._orders = orders
        self._waiting: dict[str, InventoryReport] = {}

    def note(self, message: InventoryReport) -> None:
        """Keeps an inventory until it is taken."""
        self._waiting[message.node] = message

    def take(self, name: str, now: float) -> list[FleetCommand]:
        """Takes a node's inventory if one waits and the node's quota has room."""
        if name not in self._waiting:
            return []
        if not self._quotas.has_room(name, now):
            return self._registry.note_misconduct(name, Misconduct.OVER_QUOTA, "", self._orders.new_id(), now)
        message = self._waiting.pop(name)
        if commands := self._registry.equip(message, now):
            # Including the changes that follow from it.
            self._quotas.charge(name, stored_bytes=2 * len(message.model_dump_json()))
            self._quotas.charge_changes(self._registry.nodes[name], len(commands))
        return commands
