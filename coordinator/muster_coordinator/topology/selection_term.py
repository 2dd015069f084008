"""One term of a selection, and whether a node fits it."""

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from muster.model import Health, ServiceState, Topology

LABEL = "label:"
"""Prefix of the key of a label."""

LOST = "LOST"
"""The value of `health` of every lost node, beside UNKNOWN or the fault that it had when it last reported."""

STATES: dict[str, tuple[str, ...]] = {"health": (*Health, LOST), "service": tuple(ServiceState)}
"""The keys whose values are states of muster, which change."""

_VENDOR = "NVIDIA "
"""`muster node list` omits it in the names of models, so a model is also found without it."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """The values of a node that selections compare; None or empty if unknown. A `lost` node is not HEALTHY.

    Whether it has `left` the fleet counts only for the order of a list. That it `is_simulated` only pages say.
    """

    name: str
    topology: Topology = field(default_factory=Topology)
    labels: Mapping[str, str] = field(default_factory=dict)
    health: Health | None = None
    service: ServiceState | None = None
    machine_type: str | None = None
    gpu_models: frozenset[str] = frozenset()
    lost: bool = False
    left: bool = False
    is_simulated: bool = False


KEYS: dict[str, Callable[[Candidate], Iterable[str | None]]] = {
    "block": lambda node: (node.topology.block,),
    "rack": lambda node: (node.topology.rack,),
    "leaf": lambda node: (node.topology.leaf,),
    "host": lambda node: (node.topology.host,),
    "name": lambda node: (node.name,),
    "health": lambda node: (node.health, LOST if node.lost else None),
    "service": lambda node: (node.service,),
    "machine_type": lambda node: (node.machine_type,),
    "gpu_model": lambda node: node.gpu_models | {model.removeprefix(_VENDOR) for model in node.gpu_models},
}
"""The values of a node by key. Labels have their own keys after `LABEL`."""


@dataclass(frozen=True)
class Term:
    """A node fits if it has one of `values` for `key`; if the term `excludes`, it fits if it has none of them.

    A value with `*` or `?` is a pattern.
    """

    key: str
    values: tuple[str, ...]
    excludes: bool = False

    def __str__(self) -> str:
        more = ",…" if len(self.values) > _SHOWN else ""
        return f"{self.key}{'!=' if self.excludes else '='}{','.join(self.values[:_SHOWN])}{more}"

    @property
    def is_lasting(self) -> bool:
        """Whether a value that no node has is a typing error. States and labels change, so no node may have one now."""
        return self.key not in STATES and not self.key.startswith(LABEL)

    def fits(self, node: Candidate) -> bool:
        return self.excludes is not any(map(self._is_meant, self.read(node)))

    def read(self, node: Candidate) -> Iterable[str]:
        """The values of the node for this key."""
        if self.key.startswith(LABEL):
            found: Iterable[str | None] = (node.labels.get(self.key.removeprefix(LABEL)),)
        else:
            found = KEYS[self.key](node)
        return (value for value in found if value is not None)

    def existing(self, nodes: Iterable[Candidate]) -> frozenset[str]:
        """The values of all these nodes for this key."""
        return frozenset(value for node in nodes for value in self.read(node))

    def unmet(self, existing: frozenset[str]) -> tuple[str, ...]:
        """The `values` that match no existing value."""
        absent = (value for value in self.values if value not in existing)
        return tuple(value for value in absent if not (is_pattern(value) and fnmatch.filter(existing, value)))

    def _is_meant(self, value: str) -> bool:
        return value in self._literal or (self._pattern is not None and self._pattern.match(value) is not None)

    @cached_property
    def _literal(self) -> frozenset[str]:
        return frozenset(self.values)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        patterns = [fnmatch.translate(value) for value in self.values if is_pattern(value)]
        return re.compile("|".join(patterns)) if patterns else None


def is_pattern(value: str) -> bool:
    """Whether the value is a pattern with `*` or `?`."""
    return "*" in value or "?" in value
