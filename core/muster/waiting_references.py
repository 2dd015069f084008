"""Which references wait for a node: they are for certain machine types, and the machine type of the node is unknown.

A row waits for a node if nothing else that is known of the node rules it out: the models of its devices, whether they
are simulated, and with what they compute. Facts of a measurement, such as the size of a message, are not known here.

Example: the floors for two A4 nodes wait for a node with eight B200. They do not wait for a node with eight A100,
because an A4 node has B200, nor for a laptop without GPUs, because they are for NCCL.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache

from pydantic import JsonValue

from muster.conditions import in_words, is_met
from muster.model import MOST_NAMES, Device, Inventory
from muster.references import MACHINE_TYPE, Reference
from muster.toml import shipped_table

_KnownFacts = Mapping[str, tuple[JsonValue, ...]]
"""The values that a fact can have on a node."""


def waiting_references(inventory: Inventory, rows: Iterable[Reference], checks: Collection[str]) -> tuple[str, ...]:
    """The metrics of these checks with rows that wait for the node, each with the machine types of the rows."""
    if inventory.machine_type is not None:
        return ()
    kinds = [_facts_of(device) for device in inventory.devices] or [_WITHOUT_DEVICES]
    models = {device.model for device in inventory.devices}
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.check in checks and MACHINE_TYPE in row.when and any(_may_apply(row, known) for known in kinds):
            for name in _names(row.when[MACHINE_TYPE]):
                if _may_have(name, models):
                    found.setdefault(f"{row.check} {row.metric}", {})[name] = None
    return tuple(f"{metric} ({', '.join(names)})" for metric, names in found.items())[:MOST_NAMES]


def _facts_of(device: Device) -> _KnownFacts:
    backends = ("cpu", "gloo") if device.simulated else ("cuda", "nccl")
    return {"gpu_model": (device.model,), "simulated": (device.simulated,), "backend": backends}


_WITHOUT_DEVICES: _KnownFacts = {"gpu_model": (), "simulated": (False,), "backend": ("cpu", "gloo")}


def _may_apply(row: Reference, known: _KnownFacts) -> bool:
    return all(
        any(is_met(row.when[name], value) for value in values) for name, values in known.items() if name in row.when
    )


def _names(condition: JsonValue) -> list[str]:
    """The machine types in a condition, for people."""
    return [*map(str, condition)] if isinstance(condition, list) else [in_words(condition).strip('"')]


def _may_have(machine_type: str, models: Collection[str]) -> bool:
    """Whether a machine of this type may have GPUs of these models. Unknown machine types may have any."""
    gpu = _gpus().get(machine_type)
    return gpu is None or any(gpu in model.split() for model in models)


@cache
def _gpus() -> dict[str, str]:
    """The word in the name of the GPU model, by machine type."""
    table: dict[str, str] = shipped_table("muster", "references.toml")["gpus"]
    return table
