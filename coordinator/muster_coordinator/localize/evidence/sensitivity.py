"""What the good runs of a sweep could have shown: the smallest loss, and the nodes that were compared with nothing.

The idea: a good run says something only if it would have been slow with a fault. It is slow in comparison with other
runs. So a node that is in all runs is compared with nothing, and among runs that differ much, a small loss is hidden.

Example: a and b are all nodes of a sweep. a-b reaches 0.4, and nobody knows whether that is half or all of what it
should be. Among five nodes, a-b reaches 1.0, c-d 0.98 and d-e 0.99. A node that delivers less than 0.83 would have been
slow, so the smallest loss is 17 %.

Takes time in proportion to the runs times their members.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hardware import ComparedKind
from muster_coordinator.localize.significance import liars_among_peers
from muster_coordinator.model.probes import GroupRun, RunOutcome


class Comparison(NamedTuple):
    """What runs that are compared with each other tell about a node.

    `alone_tells`: of the others that ran alone, not all may lie. `in_all_together`: the nodes that are in every
    run of several nodes.
    """

    alone_tells: bool
    in_all_together: frozenset[str]


@dataclass(frozen=True)
class Sensitivity:
    """What the good runs in `evidence` could have shown."""

    evidence: GroupEvidence

    @cached_property
    def uncompared(self) -> frozenset[str]:
        """The nodes that have good runs, but none that was compared with anything."""
        histories = self.evidence.histories.items()
        return frozenset(node for node, history in histories if history.good and not self._compared(node, history.good))

    @cached_property
    def smallest_loss(self) -> float | None:
        """The smallest loss, as a share, that would have been found in every cleared node; 1 if none was compared.

        Each node counts with the run with others that would have shown most: a run alone does not show its link. None
        if nothing was measured.
        """
        losses = (self._smallest_loss(node) for node in self.evidence.cleared - self.uncompared)
        found = max((loss for loss in losses if loss is not None), default=1.0)
        return found if self._measured else None

    def _smallest_loss(self, node: str) -> float | None:
        history = self.evidence.histories[node]
        compared = self._compared(node, history.good_together or history.good)
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
        comparison = self._comparisons[self.evidence.hardware.kinds_of(run.members)]
        return comparison.alone_tells if len(run.members) == 1 else node not in comparison.in_all_together

    @cached_property
    def _comparisons(self) -> Mapping[frozenset[ComparedKind], Comparison]:
        """By the kinds of hardware in a run. A run of several kinds is also compared with those of each."""
        found: dict[frozenset[ComparedKind], list[frozenset[str]]] = {}
        for run in self._measured:
            found.setdefault(self.evidence.hardware.kinds_of(run.members), []).append(frozenset(run.members))
        return {
            kinds: self._comparison(kinds, (run for own, runs in found.items() if own <= kinds for run in runs))
            for kinds in found
        }

    def _comparison(self, kinds: frozenset[ComparedKind], measured: Iterable[frozenset[str]]) -> Comparison:
        peers, runs = sum(len(self.evidence.hardware.kinds[kind]) for kind in kinds), [*measured]
        alone = {members for members in runs if len(members) == 1}
        together = [members for members in runs if len(members) > 1]
        return Comparison(
            alone_tells=len(alone) - 1 > liars_among_peers(len(self.evidence.sites), peers),
            in_all_together=together[0].intersection(*together) if together else frozenset(),
        )

    @cached_property
    def _measured(self) -> list[GroupRun]:
        return [run for run in self.evidence.runs if run.outcome is RunOutcome.GOOD and run.objective]
