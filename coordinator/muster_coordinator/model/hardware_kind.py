"""The kind of hardware of a node. Nodes are compared only with nodes of the same kind."""

from typing import NamedTuple

from muster.model import Inventory


class HardwareKind(NamedTuple):
    """The machine type, None if unknown, and the models of the GPUs, sorted.

    The models count beside the machine type: a maker sells one machine with GPUs of several models. The number of GPUs
    does not count: a node that has lost one is compared with those that have all.
    """

    machine_type: str | None = None
    gpu_models: tuple[str, ...] = ()

    @classmethod
    def of(cls, inventory: Inventory, machine_type: str | None) -> "HardwareKind":
        """The kind of a node of this machine type."""
        return cls(machine_type, tuple(sorted({device.model for device in inventory.devices})))

    def __str__(self) -> str:
        models = " and ".join(self.gpu_models)
        return " with ".join(filter(None, (self.machine_type, models)))
