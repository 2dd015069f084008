"""What the good runs of a sweep could have shown: the smallest loss, and the nodes that were compared with nothing.

The idea: a good run says something only if it would have been slow with a fault. It is slow in comparison with other
runs. So a node that is in all runs is compared with nothing, and among runs that differ much, a small loss is hidden.

Example: a and b are all nodes of a sweep. a-b reaches 0.4, and nobody knows whether that is half or all of what it
should be. Among five nodes, a-b reaches 1.0, c-d 0.98 and d-e 0.99. A node that delivers less than 0.83 would have been
slow, so the smallest loss is 17 %.

Takes time in proportion to the runs times their members.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.model.probes import GroupRun, RunOutcome
from muster_coordinator.normal.normality import liars_among


@dataclass(frozen=True)
class Sensitivity:
    """What the good runs in `evidence` could have shown."""

    evidence: GroupEvidence

    @cached_property
    def uncompared(self) -> frozenset[str]:
        """The nodes that have good runs, none of which was compared with anything."""
        histories = self.evidence.histories.items()
        return frozenset(node for node, history in histories if history.good and not self._compared(node, history.good))

    @cached_property
    def smallest_loss(self) -> float | None:
        """The smallest loss, as a share, that would have been found in every cleared node; 1 if none was compared.

        Each node counts with the run that would have shown most. None if nothing was measured.
        """
        losses = (self._smallest_loss(node) for node in self.evidence.cleared - self.uncompared)
        found = max((loss for loss in losses if loss is not None), default=1.0)
        return found if self._measured else None

    def _smallest_loss(self, node: str) -> float | None:
        compared = self._compared(node, self.evidence.histories[node].good)
        losses = map(self.evidence.thresholds.smallest_loss, compared)
        return min((loss for loss in losses if loss is not None), default=None)

    def _compared(self, node: str, good: Iterable[GroupRun]) -> list[GroupRun]:
        return [run for run in good if self._is_compared(node, run)]

    def _is_compared(self, node: str, run: GroupRun) -> bool:
        """Rule: a run says something about a node if a reference judges it, or other runs took place without the node.

        A run without a value has only a verdict. Prevents: a-b is the only run of a sweep. It reaches 0.4 of what it
        should, and both nodes pass.
        """
        if run.objective is None or run.is_judged:
            return True
        is_alone = len(run.members) == 1
        return not self._few_alone if is_alone else node not in self._in_all_together

    @cached_property
    def _in_all_together(self) -> frozenset[str]:
        """The nodes that are in every run of several nodes that measured something."""
        together = [frozenset(run.members) for run in self._measured if len(run.members) > 1]
        return together[0].intersection(*together) if together else frozenset()

    @cached_property
    def _few_alone(self) -> bool:
        """Whether so few nodes measured something alone that the others may all lie."""
        alone = {run.members for run in self._measured if len(run.members) == 1}
        return len(alone) - 1 <= liars_among(len(self.evidence.sites))

    @cached_property
    def _measured(self) -> list[GroupRun]:
        return [run for run in self.evidence.runs if run.outcome is RunOutcome.GOOD and run.objective]
