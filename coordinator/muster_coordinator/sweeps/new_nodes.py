"""Nodes that have joined the fleet and that no sweep has covered yet.

The first of them waits for others to join, as a rack rarely comes as one node, and all that are there then take part in
one sweep. A single one meets healthy nodes near it. One that is lost meanwhile is left out, and waited for again when
it is back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from muster.check import Scope
from muster_coordinator.evidence.definitions import usual_scope
from muster_coordinator.evidence.node import Node
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.sweep_records import SweepRequest
from muster_coordinator.sweeps.partners import can_run, draw_partners

ORIGIN = "new nodes"


@dataclass(slots=True, kw_only=True)
class NewNodes:
    """Makes of `request` one for the nodes that have gathered for `gather_s` seconds.

    Where there is only one, so many healthy `partners` take part.
    """

    request: SweepRequest
    gather_s: float
    partners: int
    _ready_since: dict[str, float | None] = field(default_factory=dict, init=False)

    def add(self, node: str) -> None:
        """Notes a node that has joined."""
        self._ready_since.setdefault(node, None)

    def remove(self, nodes: Iterable[str]) -> None:
        """Notes that nodes have been taken into a sweep."""
        for node in nodes:
            self._ready_since.pop(node, None)

    def take(self, nodes: Mapping[str, Node], now: float) -> SweepRequest | None:
        """The sweep that is due now, if any; the new nodes in it are not new any more."""
        ready = self._ready(nodes, now)
        if not ready or now < min(ready.values()) + self.gather_s:
            return None
        partners = self._partners_of(nodes[next(iter(ready))], nodes) if len(ready) == 1 else []
        if partners is None:
            self._ready_since.update(dict.fromkeys(ready, now))  # looks again when others have had the time to come
            return None
        self.remove(ready)
        return self.request.model_copy(update={"nodes": (*sorted(ready), *partners)})

    def _ready(self, nodes: Mapping[str, Node], now: float) -> dict[str, float]:
        """The new nodes that can take part now, and since when they can."""
        for name, since in self._ready_since.items():
            if not can_run(nodes[name], self.request.check):
                self._ready_since[name] = None
            elif since is None:
                self._ready_since[name] = now
        return {name: since for name, since in self._ready_since.items() if since is not None}

    def _partners_of(self, node: Node, nodes: Mapping[str, Node]) -> list[str] | None:
        """Healthy nodes for a single new one; None when it needs somebody and there is nobody."""
        check = self.request.check
        if self.request.strategy == Strategy.SINGLE or usual_scope(check, nodes.values()) is Scope.NODE:
            return []
        partners = draw_partners(node, nodes, check, self.partners, seed=node.name, without=self._ready_since)
        return [other.name for other in partners] or None
