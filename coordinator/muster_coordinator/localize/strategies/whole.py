"""All nodes in one group, like a training run over the whole fleet.

The idea: it shows in the shortest time whether the fleet as a whole is fit for work. If it is not, no node is
convicted, because a bad run makes suspects of all members alike. Example: 232 nodes, one pass, one group. O(n).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.model.probes import GroupRun, Probe, Site

ALL = "all nodes together"


@dataclass(frozen=True)
class Whole:
    """The strategy over `sites`, which run together once for each of the `passes`."""

    sites: Mapping[str, Site]
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """One for each pass."""
        return self.passes

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """All nodes that are present, until all passes have run."""
        present = tuple(node for node in self.sites if node not in absent)
        return [Probe(present, ALL)] if len(runs) < self.passes and len(present) > 1 else []
