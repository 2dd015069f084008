"""Nodes that have joined the fleet and that no sweep has covered yet.

The idea: a rack rarely joins as one node. The first new node waits `gather_s` seconds for others. Then all new nodes
take part in one sweep. If there is only one, healthy nodes near it take part as partners. A new node that is lost
meanwhile is left out, and counts as new again when it is back.

Example: with `gather_s` = 600, n1 joins at 0 s and n2 at 300 s. One sweep of both begins at 600 s. Each tick takes time
in proportion to the new nodes.
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
    """Plans sweeps of the nodes that have gathered for `gather_s` seconds, by `request`.

    A single new node is measured with up to `partners` healthy nodes.
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
        """The sweep that is due now, if any. Its nodes are no longer new."""
        ready = self._ready(nodes, now)
        if not ready or now < min(ready.values()) + self.gather_s:
            return None
        partners = self._partners_of(nodes[next(iter(ready))], nodes) if len(ready) == 1 else []
        if partners is None:
            self._ready_since.update(dict.fromkeys(ready, now))  # looks again after another gather_s
            return None
        self.remove(ready)
        return self.request.model_copy(update={"nodes": (*sorted(ready), *partners)})

    def _ready(self, nodes: Mapping[str, Node], now: float) -> dict[str, float]:
        """For each new node that can take part now, the time since when it can."""
        for name, since in self._ready_since.items():
            if not can_run(nodes[name], self.request.check):
                self._ready_since[name] = None
            elif since is None:
                self._ready_since[name] = now
        return {name: since for name, since in self._ready_since.items() if since is not None}

    def _partners_of(self, node: Node, nodes: Mapping[str, Node]) -> list[str] | None:
        """Healthy partners for a single new node; None when it needs one and there is none."""
        check = self.request.check
        if self.request.strategy == Strategy.SINGLE or usual_scope(check, nodes.values()) is Scope.NODE:
            return []
        partners = draw_partners(node, nodes, check, self.partners, seed=node.name, without=self._ready_since)
        return [other.name for other in partners] or None
