"""What is at fault in a fleet, and whether what a method names has anything to do with it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from muster_coordinator.localize.rules.culprit import Part

OF_NODE = frozenset((Part.NODE, Part.NODE_LINK, Part.RAIL))


class Hidden(StrEnum):
    """Why no sweep can name a fault as what it is."""

    ABSENT = "its nodes decline"
    UNLABELLED = "its leaf has no label"
    HARMLESS = "no pair is slower"


class Named(NamedTuple):
    """A part that is, or is said to be, at fault."""

    part: Part
    of: tuple[str, ...]
    rails: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The `faults` that a method can name, and where nodes really stand.

    No method has a name for the other faults: `bad_switches` has the leaves of which the switch of one rail is bad,
    `bad_ways` those with a bad connection to one spine. `hidden` has the faults that no sweep of this fleet can name
    (`benchmarks.localisation.hidden`).
    """

    faults: frozenset[Named]
    leaf_of: Mapping[str, str]
    bad_switches: tuple[str, ...] = ()
    bad_ways: tuple[str, ...] = ()
    hidden: Mapping[Named, Hidden] = field(default_factory=dict)

    @property
    def visible(self) -> frozenset[Named]:
        """The faults that some sweep can name."""
        return self.faults - self.hidden.keys()

    @property
    def broken(self) -> int:
        """The number of all faults."""
        return len(self._parts) + len(self.bad_ways)

    @cached_property
    def _parts(self) -> frozenset[Named]:
        """All faults but ways. A bad switch is in all that a bad leaf is in."""
        return self.faults.union(Named(Part.LEAF, (leaf,)) for leaf in self.bad_switches)

    @cached_property
    def bad_nodes(self) -> frozenset[str]:
        """The nodes that have a fault, or whose link or rail has one."""
        return frozenset(fault.of[0] for fault in self.faults if fault.part in OF_NODE)

    def is_healthy(self, named: Named) -> bool:
        """Whether nothing in what is named is at fault, however wrong its name is otherwise."""
        broken = any(self._has(named, fault) for fault in self._parts)
        return not broken and not any(self._uses_way(named, leaf) for leaf in self.bad_ways)

    def located(self, answer: frozenset[Named]) -> int:
        """How many faults are somewhere in what is named."""
        faults = sum(any(self._has(named, fault) for named in answer) for fault in self._parts)
        return faults + sum(any(self._uses_way(named, leaf) for named in answer) for leaf in self.bad_ways)

    def _has(self, named: Named, fault: Named) -> bool:
        if fault.part in OF_NODE:
            return fault.of[0] in named.of
        ends = self._leaves(named)
        if fault.part is Part.LEAF:
            return fault.of[0] in ends
        return named.part not in OF_NODE and ends == {*fault.of}

    def _uses_way(self, named: Named, leaf: str) -> bool:
        """Whether the part is the leaf with the way, or goes to another leaf."""
        ends = self._leaves(named)
        return leaf in ends and (named.part is Part.LEAF or len(ends) > 1)

    def _leaves(self, named: Named) -> set[str]:
        """The leaves that are part of what is named; none for a node."""
        match named.part:
            case Part.LEAF | Part.PATH:
                return {*named.of}
            case Part.LINK:
                return {self.leaf_of[node] for node in named.of}
        return set()
