"""What a sweep leaves open: the bad runs of nodes that no conviction explains, for the next sweep to go on from.

The idea: one bad run of a pair that passes afterwards may be chance, and may be a fault that comes and goes. The sweep
ends, but its successor should know. So each such node is kept with its bad and good runs; so is each node that an
earlier sweep suspected, because its good runs count for it.

Example: a4-c1 was slow, then both passed with others. Both are suspects of the next sweep. If a4 is convicted later,
nothing is left against c1.

Takes time in proportion to the nodes and their bad runs.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.rules.clearance import Clearance
from muster_coordinator.localize.rules.leaf import LeafFaults
from muster_coordinator.localize.rules.link import LinkFaults
from muster_coordinator.localize.rules.path import PathFaults
from muster_coordinator.model.probes import GroupRun
from muster_coordinator.model.sweep_records import Suspicion

MOST_SUSPICIONS = 1_000
"""Maximum number of suspicions that one sweep leaves: 100 KiB of its record. Of 16,384 nodes, 250 are bad by chance; if
more than this number are, the cause is common, and none is suspected."""


@dataclass(frozen=True)
class OpenSuspicions:
    """The suspicions beside these faults. `watched` are the nodes that an earlier sweep suspected."""

    clearance: Clearance
    paths: PathFaults
    leaves: LeafFaults
    links: LinkFaults
    watched: Set[str]

    @cached_property
    def by_node(self) -> dict[str, Suspicion]:
        """The bad runs of each suspect that count, and its good ones.

        Rule: while a leaf is suspected, no node is. Prevents: leaf a has a bad switch, and a4 is labelled as if it
        stood at leaf b. In each sweep it fails like the nodes of leaf a.
        """
        if self.leaves.suspected:
            return {}
        found = {node: one for node in self.clearance.nodes.evidence.sites if (one := self._of(node)) is not None}
        return found if len(found) <= MOST_SUSPICIONS else {}

    def unexplained(self, node: str) -> Iterator[GroupRun]:
        """The bad runs of a node that no conviction explains. A path that was never good may explain a run, too."""
        for run in self.clearance.nodes.evidence.histories[node].bad:
            if self.clearance.nodes.is_unexplained(run) and self._explaining.isdisjoint((run.group, *run.members)):
                yield run

    def _of(self, node: str) -> Suspicion | None:
        if node in self.clearance.nodes.convicted or node in self._explaining:
            return None
        history = self.clearance.nodes.evidence.histories[node]
        bad = tuple(run.others(node) for run in self.unexplained(node))
        if not bad and not (node in self.watched and history.good):
            return None
        good_alone = sum(len(run.members) == 1 for run in history.good)
        return Suspicion(node=node, bad=bad, good=len(history.good), good_alone=good_alone)

    @cached_property
    def _explaining(self) -> frozenset[str]:
        """The nodes with a bad link, and the groups across a path that was never good."""
        across = (run.group for runs in self.paths.never_good.values() for run in runs)
        return frozenset((*self.links.convicted, *across))
