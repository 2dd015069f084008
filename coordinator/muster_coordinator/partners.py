"""The nodes that have passed and are free to be partners in the next round."""

from collections.abc import Callable, Iterable, Mapping, Set

from muster_coordinator.probe import Site


class Partners:
    """Hands out each of `nodes` once."""

    def __init__(self, nodes: Iterable[str], sites: Mapping[str, Site]) -> None:
        self._sites = sites
        self._all = list(nodes)
        self._free = set(self._all)
        self._by_rack: dict[str, list[str]] = {}
        self._by_leaf: dict[str, list[str]] = {}
        for node in self._all:
            site = sites[node]
            if site.rack is not None:
                self._by_rack.setdefault(site.rack, []).append(node)
            if site.leaf is not None:
                self._by_leaf.setdefault(site.leaf, []).append(node)

    def take_near(self, node: str, met: Set[str]) -> str | None:
        """A partner that `node` has not met: from its rack or leaf at first, then from where it has met nobody."""
        here = self._sites[node]
        leaves = {self._sites[other].leaf for other in met}
        found = None
        if here.leaf is None or here.leaf not in leaves:
            found = self._take(self._rack(here), met) or self._take(self._leaf(here.leaf), met)
        found = found or self._take(self._all, met, lambda other: self._sites[other].leaf not in leaves)
        return found or self._take(self._all, met)

    def take_at(self, leaf: str) -> str | None:
        """A partner at `leaf`."""
        return self._take(self._leaf(leaf))

    def rest(self) -> list[str]:
        """Who is still free."""
        return [node for node in self._all if node in self._free]

    def take_any(self) -> str | None:
        return self._take(self._all)

    def _rack(self, site: Site) -> list[str]:
        return [] if site.rack is None else self._by_rack.get(site.rack, [])

    def _leaf(self, leaf: str | None) -> list[str]:
        return [] if leaf is None else self._by_leaf.get(leaf, [])

    def _take(
        self, pool: list[str], avoid: Set[str] = frozenset(), fits: Callable[[str], bool] = lambda _: True
    ) -> str | None:
        while pool and pool[-1] not in self._free:  # so that no later search passes those that are gone
            pool.pop()
        for node in reversed(pool):
            if node in self._free and node not in avoid and fits(node):
                self._free.remove(node)
                return node
        return None
