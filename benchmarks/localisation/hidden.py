"""Which faults no sweep of a fleet can name as what they are. The reasons do not depend on any method.

A fault can show if nodes that take part could measure it, and if it has a name. The checks, in this order:

- **Nodes.** A node must accept invitations. Of a leaf, as many nodes must as it takes to tell its switches from the
  links of its nodes, and one at each end of a path.
- **Labels.** A method names a leaf by the label that the operator gave to its nodes. So as many of these nodes must
  have the label of the leaf where they stand.
- **Loss.** Some pair of nodes must be slower with the fault than without it, or fail. The network of flows computes
  both without noise, for one pair at a time, and with healthy nodes of any kind as partners. For example, an old node
  needs half of what its link can do. If its link still lets through 60 %, no pair is slower because of it.

Nothing else hides a fault: not chance, for example an agent that vanishes, nor one that comes and goes, nor a loss that
is as small as noise. One pair is enough to show a fault here, and a conviction needs more than one run.

A check of one fault computes two pairs in most cases. If no pair is slower, it computes two for each leaf and
generation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
from benchmarks.fabric.contention import Wave
from benchmarks.fabric.defects import BrokenPart, Defect, shares_with
from benchmarks.fabric.membership import leaf_name, name_of
from benchmarks.fabric.swept_fleet import FleetSetup
from benchmarks.localisation.network_cases import FEWEST_AT_LEAF
from benchmarks.localisation.truth import Hidden

from muster_coordinator.model.probes import Site

BETWEEN_LEAVES = (BrokenPart.LEAF, BrokenPart.PATH)

NO_TRAFFIC = np.empty(0, dtype=np.int64)

ROUNDING = 1e-6
"""Relative difference of two rates up to which they are the same."""


@dataclass(frozen=True, kw_only=True)
class KnownFleet:
    """A fleet as all methods meet it: `sites` as they know them, nodes that decline, generations."""

    setup: FleetSetup
    sites: Mapping[str, Site]
    busy: Set[str]
    generation: Sequence[int]

    def reason_hidden(self, defect: Defect) -> Hidden | None:
        """Why no sweep can name this fault; None if one can."""
        ends = [[node for node in end if name_of(node) not in self.busy] for end in self._ends(defect)]
        fewest = FEWEST_AT_LEAF if defect.part is BrokenPart.LEAF else 1
        if any(len(end) < fewest for end in ends):
            return Hidden.ABSENT
        if defect.part in BETWEEN_LEAVES and any(sum(map(self._is_labelled, end)) < fewest for end in ends):
            return Hidden.UNLABELLED
        return None if any(self._slows(defect, pair) for pair in self._pairs(ends)) else Hidden.HARMLESS

    def _ends(self, defect: Defect) -> list[list[int]]:
        """The nodes of a leaf, those of the two ends of a path, or the one node."""
        if defect.part not in BETWEEN_LEAVES:
            return [[defect.of[0]]]
        return [np.flatnonzero(self.setup.network.leaf_of == leaf).tolist() for leaf in defect.of]

    def _is_labelled(self, node: int) -> bool:
        return self.sites[name_of(node)].leaf == leaf_name(int(self.setup.network.leaf_of[node]))

    def _pairs(self, ends: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
        """A pair of each two kinds of nodes: across the path, or with all that take part."""
        everybody = [node for node in range(self.setup.network.nodes) if name_of(node) not in self.busy]
        one, other = ends if len(ends) > 1 else (*ends, everybody)
        for node in self._one_of_each_kind(one):
            partners = self._one_of_each_kind(partner for partner in other if partner != node)
            yield from ((node, partner) for partner in partners)

    def _one_of_each_kind(self, nodes: Iterable[int]) -> list[int]:
        """One node for each leaf and generation. Pairs of the same kinds reach the same."""
        leaf_of = self.setup.network.leaf_of
        return [*{(int(leaf_of[node]), self.generation[node]): node for node in nodes}.values()]

    def _slows(self, defect: Defect, pair: tuple[int, int]) -> bool:
        """Whether the pair fails, or is slower than without the fault."""
        return defect.crashes or self._rate(pair, [defect]) < self._rate(pair, []) * (1 - ROUNDING)

    def _rate(self, pair: tuple[int, int], defects: Sequence[Defect]) -> float:
        """What the slowest rail of the pair reaches if it runs alone, in GB/s."""
        speeds = np.array([1.0, *(older.speed for older in self.setup.disturbances.older)])
        wave = Wave(
            network=self.setup.network,
            collective=self.setup.collective,
            groups=[np.array(pair)],
            parts=shares_with(self.setup.network, speeds[[*self.generation]], defects),
            others=NO_TRAFFIC,
            seed=0,
            queue_pairs=self.setup.queue_pairs,
        )
        return float(wave.rail_rates().min())
