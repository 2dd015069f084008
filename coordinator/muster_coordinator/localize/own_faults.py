"""Which nodes are at fault by themselves, and which bad runs remain unexplained then.

A node is at fault by itself for what only it can have caused. The rules stand at the top of `culprits`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from muster_coordinator.localize.accusers import accusers_missing
from muster_coordinator.localize.culprit import Culprit, Part
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Abilities
from muster_coordinator.localize.trial import Trial


@dataclass(frozen=True)
class OwnFaults:
    """The nodes that are at fault by themselves, according to `evidence` of a check with these `abilities`."""

    evidence: Evidence
    abilities: Abilities

    @cached_property
    def nodes(self) -> Mapping[str, Culprit]:
        """The nodes that are at fault by themselves."""
        found = {}
        for node, history in self.evidence.histories.items():
            if not history.own:
                continue
            against = self._unexcused(node) if history.good else history.bad
            if (
                history.failed_alone
                or (history.bad_alone and len(against) > 1)
                or self._crashes_with_all(node, against)
            ):
                found[node] = self.culprit(Part.NODE, (node,), against, intermittent=bool(history.good))
        return found

    def _crashes_with_all(self, node: str, against: Iterable[Trial]) -> bool:
        """Whether the ranks of a node crashed beside so many partners that these cannot all be liars."""
        return not accusers_missing(self.evidence, node, (trial for trial in against if node in trial.crashed))

    def _unexcused(self, node: str) -> list[Trial]:
        """The bad runs of a node without those that another member explains because it was bad by itself."""
        histories = self.evidence.histories
        return [
            trial
            for trial in histories[node].bad
            if node in trial.crashed or not any(histories[other].own for other in trial.others(node))
        ]

    @cached_property
    def stuck(self) -> Mapping[str, list[Trial]]:
        """The nodes that are not at fault but have unexplained bad runs with others, with these runs."""
        found = {}
        for node, history in self.evidence.histories.items():
            if node not in self.nodes and (trials := [t for t in history.bad_together if self.is_unexplained(t)]):
                found[node] = trials
        return found

    def is_suspect(self, node: str) -> bool:
        """Whether bad runs of a node are unexplained, or it was bad by itself."""
        return node in self.stuck or bool(self.evidence.histories[node].own)

    def is_well_alone(self, node: str) -> bool:
        """Whether a node has passed by itself and never failed, as far as that can be tried."""
        history = self.evidence.histories[node]
        return not history.own and (history.passed_alone or not self.abilities.alone)

    def slow_rails(self, node: str) -> tuple[int, ...]:
        """The rails that held back a stuck node where they ran apart; none when most did, for it is not them then."""
        apart = [trial for trial in self.stuck.get(node, ()) if trial.rails]
        slow = frozenset().union(*map(self.evidence.slow_rails, apart))
        return tuple(sorted(slow)) if apart and len(slow) <= len(apart[0].rails) / 2 else ()

    def is_unexplained(self, trial: Trial) -> bool:
        """Whether no node that is at fault by itself took part in a run."""
        return self.nodes.keys().isdisjoint(trial.members)

    def culprit(
        self,
        part: Part,
        of: tuple[str, ...],
        trials: Iterable[Trial],
        *,
        rails: tuple[int, ...] = (),
        intermittent: bool = False,
    ) -> Culprit:
        """The culprit for a part, with the runs that speak against it."""
        those = tuple(trials)
        return Culprit(part, of, those, all(map(self.evidence.is_slow, those)), rails, intermittent)
