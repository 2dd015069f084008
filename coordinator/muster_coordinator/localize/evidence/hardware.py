"""The kinds of hardware in a sweep: nodes of one kind run with each other, and are compared with each other only.

The idea: a sweep of a fleet with old and new nodes is two sweeps at once. A pair of both is as fast as the older node,
so it says little about the newer one, and a level for both would make the older ones slow.

Example: of 64 nodes, 40 are a4, 22 are a3 and two are a2. The a4 are one kind and the a3 are another. Two nodes cannot
be compared with each other, so the two a2 count as a4, the most frequent kind. If they are slower, they are
inconclusive: that may be their hardware.

Takes time in proportion to the nodes, once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from muster_coordinator.model.probes import Site

FEWEST_OF_HARDWARE = 4
"""With fewer nodes, one bad node may be most of what is seen of its kind of hardware."""

ComparedKind = str | None
"""The name of a kind of hardware; None if nobody has declared it."""


def name_of(kind: ComparedKind) -> str:
    """The name of a kind for people."""
    return kind or "of unknown kind"


@dataclass(frozen=True)
class KnownHardware:
    """The kinds of hardware according to the `sites`, which are in topology order.

    `slow_alike` has nodes that have shown to be of a kind that nobody has declared, with its name.
    """

    sites: Mapping[str, Site]
    slow_alike: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> Mapping[ComparedKind, tuple[str, ...]]:
        """The nodes that are compared with each other, by the kind as which they count."""
        return {self.kind_of(nodes[0]): tuple(nodes) for nodes in self.by_kind(self.sites)}

    @property
    def are_several(self) -> bool:
        """Whether there are nodes that are not compared with each other."""
        return len(self.kinds) > 1

    def kind_of(self, node: str) -> ComparedKind:
        """The kind as which a node counts: its own, or the most frequent one if there are too few of its own."""
        return self._kind_by_node[node]

    def kinds_of(self, nodes: Iterable[str]) -> frozenset[ComparedKind]:
        """The kinds as which these nodes count."""
        return frozenset(map(self._kind_by_node.__getitem__, nodes))

    def by_kind(self, nodes: Iterable[str]) -> Iterable[list[str]]:
        """These nodes in their order, those of each kind together."""
        found: dict[ComparedKind, list[str]] = {}
        for node in nodes:
            found.setdefault(self.kind_of(node), []).append(node)
        return found.values()

    def peers(self, node: str) -> tuple[str, ...]:
        """The nodes with which a node is compared, and the node itself."""
        return self.kinds[self.kind_of(node)]

    @cached_property
    def rare(self) -> Mapping[ComparedKind, tuple[str, ...]]:
        """The nodes of each kind that has too few to compare them with each other."""
        few = (item for item in self._declared.items() if len(item[1]) < FEWEST_OF_HARDWARE)
        return {kind: tuple(nodes) for kind, nodes in few}

    @cached_property
    def _kind_by_node(self) -> Mapping[str, ComparedKind]:
        kinds = ((node, site.hardware_kind) for node, site in self.sites.items())
        declared = {node: self._most_frequent if kind in self.rare else kind for node, kind in kinds}
        return {**declared, **self.slow_alike}

    @cached_property
    def _declared(self) -> Mapping[ComparedKind, list[str]]:
        found: dict[ComparedKind, list[str]] = {}
        for node, site in self.sites.items():
            found.setdefault(site.hardware_kind, []).append(node)
        return found

    @cached_property
    def _most_frequent(self) -> ComparedKind:
        return max(self._declared, key=lambda kind: (len(self._declared[kind]), kind or ""))
