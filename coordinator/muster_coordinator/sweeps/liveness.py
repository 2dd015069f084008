"""Signs of life of nodes and their absence: the effects on evidence, sweeps and tests of nodes."""

from collections.abc import Callable

from muster_coordinator.evidence.heartbeats import WILL_BELIEVED_AFTER_S
from muster_coordinator.evidence.inventory_intake import InventoryIntake
from muster_coordinator.evidence.quotas import Quotas
from muster_coordinator.evidence.registry import NodeRegistry
from muster_coordinator.model.events import (
    FleetCommand,
    InventorySeen,
    LinkCaughtUp,
    LinkEvent,
    LinkLost,
    LinkRestored,
    PresenceSeen,
)
from muster_coordinator.model.load import LoadSeen
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

    def hear(self, name: str, cause: str, now: float, *, kept: bool = False) -> list[FleetCommand]:
        """Takes a sign of life of a node; `kept` if it was sent some time ago."""
        renewed = self._renew(name, cause, now) if self._has_left(name) else []
        self._sweeps.hear(name, now)
        heard = [*renewed, *self._registry.hear(name, cause, now, kept=kept), *self._inventories.take(name, now)]
        return [*heard, *self._tests.hear(name, now)]

    def take_presence(self, event: PresenceSeen, now: float) -> list[FleetCommand]:
        """Takes a heartbeat, a goodbye or a last will.

        That a node is offline means nothing if the broker had kept it: the node may be back since, and a broker that
        crashed may have forgotten that.
        """
        message, node = event.message, self._registry.nodes.get(event.message.node)
        if message.online:
            was_restarted = node is not None and not event.kept and node.is_from_new_process(message)
            commands = self._sweeps.lose(message.node, now) if was_restarted else []
            commands += self.hear(message.node, message.id, now, kept=event.kept)
            self._registry.note_presence(event)
            return commands
        if node is None or not node.online or event.kept:
            return []
        if message.goodbye:
            return self._lose_announced(message.node, "its agent has stopped", message.id, now)
        is_doubted = self._registry.heartbeats.note_will(message.node, message.id, now)
        return self._sweeps.doubt(message.node, now + WILL_BELIEVED_AFTER_S, now) if is_doubted else []

    def take_link(self, event: LinkEvent, now: float) -> None:
        """Takes that the coordinator cannot hear nodes any more, or can again. No node is lost by that."""
        match event:
            case LinkLost():
                self._registry.heartbeats.stop_hearing()
            case LinkRestored():
                self._registry.outdate(now)
            case LinkCaughtUp():
                self._registry.heartbeats.hear_again(now)

    def take_load(self, event: LoadSeen, now: float) -> None:
        """Takes how long messages of nodes wait, and the nodes that sent reports which nobody had time to read.

        A report is a sign of life, also unread: an agent that has sent one sends no heartbeat.
        """
        self._registry.heartbeats.note_lag(event.load.lag_s, now)
        for name in event.deferred:
            if (node := self._registry.nodes.get(name)) is not None and node.online:
                self._registry.heartbeats.note(name, now)

    def take_inventory(self, event: InventorySeen, now: float) -> list[FleetCommand]:
        """Takes an inventory, which is no sign of life if the broker had retained it."""
        message = event.message
        self._inventories.note(event)
        if not event.kept:
            return self.hear(message.node, message.id, now)
        return self._inventories.take(message.node, now) if message.node in self._registry.nodes else []

    def lose_silent(self, now: float) -> list[FleetCommand]:
        """Gives up the nodes whose last will is believed, and those whose heartbeat has stopped."""
        commands: list[FleetCommand] = []
        self._registry.heartbeats.look(now)
        text = f"its connection ended, and it was not back after {WILL_BELIEVED_AFTER_S:.0f} s"
        for will in self._registry.heartbeats.take_believed(now):
            commands += self._lose_announced(will.node, text, will.cause, now)
        for name in self._registry.heartbeats.overdue(now):
            commands += self._lose(name, "its heartbeat has stopped", None, now)
        return commands

    def _renew(self, name: str, cause: str, now: float) -> list[FleetCommand]:
        """Treats a node under the name of one that left as new. A forgotten node is unknown, so it is new anyway."""
        if name not in self._registry.nodes:
            return []
        self._sweeps.note_joined(name)
        return self._registry.renew(name, cause, now)

    def _lose_announced(self, name: str, text: str, cause: str, now: float) -> list[FleetCommand]:
        """Gives up a node because of its message. If its quota is spent, its silence will show that it is gone."""
        if not self._quotas.has_room(name, now):
            return []
        commands = self._lose(name, text, cause, now)
        self._quotas.charge_changes(self._registry.nodes[name], 2 * len(commands))  # it will come back
        return commands

    def _lose(self, name: str, text: str, cause: str | None, now: float) -> list[FleetCommand]:
        self._tests.lose(name)
        return [*self._registry.lose(name, text, cause, now), *self._sweeps.lose(name, now)]
