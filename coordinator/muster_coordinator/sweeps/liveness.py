"""Signs of life of nodes and their absence: the effects on evidence, sweeps and tests of nodes."""

from collections.abc import Callable

from muster_coordinator.evidence.inventory_intake import InventoryIntake
from muster_coordinator.evidence.quotas import Quotas
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import FleetCommand, InventorySeen, PresenceSeen
from muster_coordinator.sweeps.node_tests import NodeTests
from muster_coordinator.sweeps.registry import SweepRegistry


class Liveness:
    """Takes signs of life. `has_left` says whether a node left the fleet in service and comes as a new one."""

    def __init__(
        self,
        registry: NodeRegistry,
        sweeps: SweepRegistry,
        tests: NodeTests,
        *,
        inventories: InventoryIntake,
        quotas: Quotas,
        has_left: Callable[[str], bool],
    ) -> None:
        self._registry = registry
        self._sweeps = sweeps
        self._tests = tests
        self._inventories = inventories
        self._quotas = quotas
        self._has_left = has_left

    def hear(self, name: str, cause: str, now: float) -> list[FleetCommand]:
        """Takes a sign of life of a node."""
        renewed = self._renew(name, cause, now) if self._has_left(name) else []
        self._sweeps.hear(name, now)
        heard = [*renewed, *self._registry.hear(name, cause, now), *self._inventories.take(name, now)]
        return [*heard, *self._tests.hear(name, now)]

    def take_presence(self, event: PresenceSeen, now: float) -> list[FleetCommand]:
        """Takes a heartbeat or a last will."""
        message = event.message
        if message.online:
            commands = self.hear(message.node, message.id, now)
            self._registry.note_presence(event)
            return commands
        node = self._registry.nodes.get(message.node)
        if node is None or not node.online or not self._quotas.has_room(message.node, now):
            return []  # its silence will show that it is gone
        commands = self._lose(message.node, "its agent has gone", message.id, now)
        self._quotas.charge_changes(node, 2 * len(commands))  # it will come back
        return commands

    def take_inventory(self, event: InventorySeen, now: float) -> list[FleetCommand]:
        """Takes an inventory, which is no sign of life if the broker had retained it."""
        message = event.message
        self._inventories.note(message)
        if not event.kept:
            return self.hear(message.node, message.id, now)
        return self._inventories.take(message.node, now) if message.node in self._registry.nodes else []

    def lose_silent(self, now: float) -> list[FleetCommand]:
        """Gives up the nodes whose heartbeat has stopped."""
        silent = self._registry.heartbeats.overdue(now)
        return [command for name in silent for command in self._lose(name, "its heartbeat has stopped", None, now)]

    def _renew(self, name: str, cause: str, now: float) -> list[FleetCommand]:
        """Treats a node under the name of one that left as new. A forgotten node is unknown, so it is new anyway."""
        if name not in self._registry.nodes:
            return []
        self._sweeps.note_joined(name)
        return self._registry.renew(name, cause, now)

    def _lose(self, name: str, text: str, cause: str | None, now: float) -> list[FleetCommand]:
        self._tests.lose(name)
        return [*self._registry.lose(name, text, cause, now), *self._sweeps.lose(name, now)]
