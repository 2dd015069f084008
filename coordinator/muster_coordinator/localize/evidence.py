"""What the groups of a sweep have shown, in order: which runs were bad, whom they charge, who is cleared.

Runs of a node alone, which nothing leaves, and runs of several together are compared among themselves only. A bad run
charges all its members alike, unless the ranks of some crashed by themselves: then it charges these, and says nothing
about the others. A void run says nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from muster_coordinator.localize.level import Level, level_of, spread_of
from muster_coordinator.localize.probe import Site
from muster_coordinator.localize.trial import Outcome, Trial


class Path(NamedTuple):
    """What lies between two leaves, perhaps the same one twice, or between two nodes; in alphabetical order."""

    ends: tuple[str, str]
    of_leaves: bool


@dataclass(slots=True)
class History:
    """The runs of one node, oldest first: `own` are those that were bad by nobody else's fault, `void` say nothing."""

    good: list[Trial] = field(default_factory=list)
    bad: list[Trial] = field(default_factory=list)
    own: list[Trial] = field(default_factory=list)
    void: list[Trial] = field(default_factory=list)

    @property
    def passed(self) -> int:
        """In how many runs the node has passed with others."""
        return sum(len(trial.members) > 1 for trial in self.good)

    @property
    def tried_alone(self) -> int:
        """How often the node has run alone, whatever came of it."""
        return sum(len(trial.members) == 1 for trial in (*self.good, *self.bad, *self.void))

    @property
    def passed_alone(self) -> bool:
        """Whether the node has passed by itself."""
        return any(len(trial.members) == 1 for trial in self.good)

    @property
    def bad_together(self) -> list[Trial]:
        return [trial for trial in self.bad if len(trial.members) > 1]


@dataclass(frozen=True)
class Evidence:
    """What `trials` over the nodes at `sites` have shown; the sites are in topology order."""

    sites: Mapping[str, Site]
    trials: tuple[Trial, ...]

    @cached_property
    def level_together(self) -> Level | None:
        """What several nodes reach together."""
        return level_of(self._objectives(together=True), self._spread)

    @cached_property
    def level_alone(self) -> Level | None:
        """What a node reaches alone."""
        return level_of(self._objectives(together=False), self._spread)

    @cached_property
    def _spread(self) -> float:
        """How much healthy runs differ; taken from those of several together, of which there are many."""
        return spread_of(self._objectives(together=True))

    def _objectives(self, *, together: bool) -> list[float]:
        good = (
            trial for trial in self.trials if trial.outcome is Outcome.GOOD and (len(trial.members) > 1) is together
        )
        return [trial.objective for trial in good if trial.objective is not None]

    def level(self, trial: Trial) -> Level | None:
        """What is typical for runs like this one."""
        return self.level_alone if len(trial.members) == 1 else self.level_together

    def is_slow(self, trial: Trial) -> bool:
        """Whether `trial` went well but fell short of what is typical."""
        level = self.level(trial)
        return level is not None and any(value < level.slow_below for value in _reached(trial))

    def is_bad(self, trial: Trial) -> bool:
        return trial.outcome is Outcome.BAD or self.is_slow(trial)

    def slow_rails(self, trial: Trial) -> frozenset[int]:
        """The rails that fell short."""
        level = self.level_together
        return frozenset(n for n, value in enumerate(trial.rails) if level is not None and value < level.slow_below)

    @cached_property
    def histories(self) -> Mapping[str, History]:
        """What every node has shown."""
        histories = {node: History() for node in self.sites}
        for trial in self.trials:
            if self.is_bad(trial):
                for node in trial.crashed or trial.members:
                    histories[node].bad.append(trial)
                    if node in trial.crashed or len(trial.members) == 1:
                        histories[node].own.append(trial)
            else:
                # Where one rank makes up a group of its own, there is nothing to exchange, and it measures 0.
                passed = trial.outcome is Outcome.GOOD and trial.objective != 0
                for node in trial.members:
                    (histories[node].good if passed else histories[node].void).append(trial)
        return histories

    @cached_property
    def cleared(self) -> frozenset[str]:
        """The nodes that have been in a good run with others."""
        return frozenset(node for node, history in self.histories.items() if history.passed)

    @cached_property
    def leaves(self) -> Mapping[str, tuple[str, ...]]:
        """The nodes of every known leaf."""
        leaves: dict[str, list[str]] = {}
        for site in self.sites.values():
            if site.leaf is not None:
                leaves.setdefault(site.leaf, []).append(site.node)
        return {leaf: tuple(nodes) for leaf, nodes in leaves.items()}

    def neighbours(self, node: str) -> frozenset[str]:
        """The other nodes of its leaf."""
        leaf = self.sites[node].leaf
        return frozenset(() if leaf is None else self.leaves[leaf]) - {node}

    def path(self, one: str, other: str) -> Path:
        """What two nodes have between them: from leaf to leaf, or from node to node where a leaf is not known."""
        leaves = [leaf for node in (one, other) if (leaf := self.sites[node].leaf) is not None]
        ends = leaves if len(leaves) == 2 else [one, other]
        return Path((min(ends), max(ends)), of_leaves=len(leaves) == 2)


def _reached(trial: Trial) -> tuple[float, ...]:
    """What a run that went well reached, on each rail where they were tried apart."""
    if trial.outcome is not Outcome.GOOD or trial.objective is None:
        return ()
    return trial.rails or (trial.objective,)
