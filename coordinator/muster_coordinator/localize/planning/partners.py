"""The healthy nodes that are free to be partners in the next round, drawn at random.

The idea: a partner from the node's own leaf tells a bad node from a bad path. After that, partners from other leaves
tell more. Random draws keep liars from choosing whom they meet.

Example: a4 was bad. Its first partner is drawn from rack a, then from leaf a, then from leaves that a4 has not met.

A draw takes O(free nodes) at most; nodes at the end of a pool that are gone are removed, so n draws take about O(n).
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from functools import cached_property

from muster_coordinator.localize.evidence.hardware import ComparedKind, KnownHardware
from muster_coordinator.model.probes import Site
from muster_coordinator.normal.normality import liars_among

REACH = 4
"""Distance in topology order within which nodes usually share a leaf. Without topology, names give the order."""

MOST_NEAR = 3
"""This many partners from a node's own leaf are enough; the first of them may be bad or absent."""


class PartnerPool:
    """Hands out each of `nodes` once, in random order. `spotless` nodes have had no bad run.

    Partners that are `doubted` come after all others.
    """

    def __init__(
        self,
        nodes: Iterable[str],
        sites: Mapping[str, Site],
        seed: str,
        spotless: Set[str],
        doubted: Set[str] = frozenset(),
    ) -> None:
        self._sites = sites
        self._spotless = spotless
        self._doubted = doubted
        self._all = list(nodes)
        random.Random(seed).shuffle(self._all)  # noqa: S311 - no secret depends on it
        self._free = set(self._all)
        self._by_rack: dict[str, list[str]] = {}
        self._by_leaf: dict[str | None, list[str]] = {}
        for node in self._all:
            site = sites[node]
            if site.rack is not None:
                self._by_rack.setdefault(site.rack, []).append(node)
            self._by_leaf.setdefault(site.leaf, []).append(node)

    def take_near(self, node: str, met: Set[str], healthy: Set[str]) -> str | None:
        """A partner that `node` has not met: from its own leaf until one is `healthy`, then from leaves it has not met.

        Rule: after MOST_NEAR partners from its own leaf it meets others.
        Prevents: all liars declare the leaf of healthy n0 and fail with it. n0 would meet liars only.
        """
        trusted = self._take_near(node, met, healthy, met | self._doubted)
        return trusted or (self._take_near(node, met, healthy, met) if self._doubted else None)

    def _take_near(self, node: str, met: Set[str], healthy: Set[str], avoid: Set[str]) -> str | None:
        here = self._sites[node]
        if here.leaf is None:
            near = self._next_to(node)
            found = self._take(near, avoid) if met.isdisjoint(near) else None
            return found or self._take(self._all, avoid)
        leaves = {self._sites[other].leaf for other in met}
        found = None
        tried = sum(self._sites[other].leaf == here.leaf for other in met)
        if here.leaf not in {self._sites[other].leaf for other in healthy} and tried < MOST_NEAR:
            beside = self._take(self._rack(here), avoid, lambda other: self._sites[other].leaf == here.leaf)
            found = beside or self._take(self._leaf(here.leaf), avoid)
        return found or self._take_elsewhere(avoid, leaves) or self._take(self._all, avoid)

    def _take_elsewhere(self, avoid: Set[str], leaves: Set[str | None]) -> str | None:
        """A partner from none of these leaves. If most free nodes stand at them, its leaf has more nodes than may lie.

        Prevents: each liar declares a leaf of its own. n0 has met the real leaves, so only the liars' leaves are left,
        and n0 would meet liars only.
        """
        not_elsewhere = frozenset(avoid).union(*(self._by_leaf.get(leaf, ()) for leaf in leaves))
        elsewhere, liars = len(self._free) - len(self._free & not_elsewhere), liars_among(len(self._sites))
        fewest = liars + 1 if 2 * elsewhere < len(self._free) and liars > 1 else 0
        fit = {leaf for leaf, nodes in self._leaf_sizes.items() if leaf not in leaves and nodes >= fewest}
        return self._take(self._all, avoid, lambda other: self._sites[other].leaf in fit)

    def take_at(self, leaf: str, met: Set[str]) -> str | None:
        """A partner at `leaf` that is not among `met`."""
        return self._take(self._leaf(leaf), met)

    def withdraw(self, nodes: Iterable[str]) -> None:
        """Stops handing out these nodes."""
        self._free.difference_update(nodes)

    def rest(self) -> list[str]:
        """The nodes that are still free."""
        return [node for node in self._all if node in self._free]

    def take_spotless(self) -> str | None:
        """A partner that has not been in a bad run."""
        return self._take(self._all, fits=self._spotless.__contains__)

    def take_spotless_pair(self) -> tuple[str, str] | None:
        """Two partners that have not been in a bad run, of different leaves if these are known."""
        if (one := self.take_spotless()) is None:
            return None
        leaf = self._sites[one].leaf
        beyond = {node for node in self._free if leaf is not None and self._sites[node].leaf == leaf}
        other = self._take(self._all, beyond, self._spotless.__contains__)
        return None if other is None else (one, other)

    @cached_property
    def _leaf_sizes(self) -> Mapping[str | None, int]:
        return Counter(site.leaf for site in self._sites.values())

    @cached_property
    def _order(self) -> list[str]:
        return list(self._sites)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {node: place for place, node in enumerate(self._order)}

    def _next_to(self, node: str) -> list[str]:
        """The nodes around it in topology order, the nearest last."""
        place = self._places[node]
        around = self._order[max(place - REACH, 0) : place + REACH + 1]
        return sorted(around, key=lambda other: -abs(self._places[other] - place))

    def _rack(self, site: Site) -> list[str]:
        return [] if site.rack is None else self._by_rack.get(site.rack, [])

    def _leaf(self, leaf: str | None) -> list[str]:
        return [] if leaf is None else self._by_leaf.get(leaf, [])

    def _take(
        self, pool: list[str], avoid: Set[str] = frozenset(), fits: Callable[[str], bool] = lambda _: True
    ) -> str | None:
        while pool and pool[-1] not in self._free:  # so that later searches skip the nodes that are gone
            pool.pop()
        for node in reversed(pool):
            if node in self._free and node not in avoid and fits(node):
                self._free.remove(node)
                return node
        return None


def pools_by_kind(
    nodes: Iterable[str], hardware: KnownHardware, seed: str, spotless: Set[str], doubted: Set[str]
) -> Mapping[ComparedKind, PartnerPool]:
    """A pool for every kind of hardware, with those of these nodes that are of it: a pair of two kinds tells little."""
    alike: dict[ComparedKind, list[str]] = {kind: [] for kind in hardware.kinds}
    for node in nodes:
        alike[hardware.kind_of(node)].append(node)
    return {kind: PartnerPool(those, hardware.sites, seed, spotless, doubted) for kind, those in alike.items()}
