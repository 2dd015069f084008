"""All nodes in one group, as a training that takes the whole fleet would have them.

It tells whether the fleet as a whole is fit for work, in the shortest time that there is. When it is not, nobody is
convicted: what a group shows charges all its members alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.localize.probe import Probe, Site
from muster_coordinator.localize.trial import Trial

ALL = "all nodes together"


@dataclass(frozen=True)
class Whole:
    """The strategy over `sites`, which run together so many `passes`."""

    sites: Mapping[str, Site]
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """One for each pass."""
        return self.passes

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """All nodes that are there, as long as passes are left."""
        present = tuple(node for node in self.sites if node not in absent)
        return [Probe(present, ALL)] if len(trials) < self.passes and len(present) > 1 else []
