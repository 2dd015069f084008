"""What the groups of a sweep have shown, in order: which runs were bad, whom they charge, who is cleared.

Runs of one node alone and runs of several nodes are compared among themselves only. A bad run counts against all its
members alike, even if only the ranks of one crashed: a partner that sends nonsense can cause that. In a large group it
counts only against the members that crashed. A void run says nothing. A run that may be slow only because all nodes of
a machine type are slow says nothing either.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from muster_coordinator.localize.chance import measures_beyond_lies
from muster_coordinator.localize.level import SPREAD_ON_ONE_HOST, Level, Spread, level_of, spread_of
from muster_coordinator.localize.probe import Site
from muster_coordinator.localize.sides import sides_of
from muster_coordinator.localize.trial import Outcome, Trial
from muster_coordinator.normal.liars import liars_among

NEAR = 0.75
"""As a share of a node's best run, what its others reach by chance as long as it is well."""


class Path(NamedTuple):
    """What lies between two leaves, perhaps the same one twice, or between two nodes; in alphabetical order."""

    ends: tuple[str, str]
    of_leaves: bool


@dataclass(slots=True)
class History:
    """The runs of one node, oldest first; `void` ones say nothing.

    `own` are the bad runs in which the node was alone or its own ranks crashed.
    """

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
    def failed_alone(self) -> bool:
        """Whether the verdict on the node alone was FAIL, and not because its ranks crashed."""
        return any(trial.hard and not trial.crashed and len(trial.members) == 1 for trial in self.own)

    @property
    def best_together(self) -> float:
        """The most that a good run with others came to; 0 where none was measured."""
        return max((trial.objective or 0.0 for trial in self.good if len(trial.members) > 1), default=0.0)

    @property
    def bad_alone(self) -> bool:
        """Whether the node was bad in a run of its own."""
        return any(len(trial.members) == 1 for trial in self.own)

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
        return self._level_together(self._spread)

    @cached_property
    def level_alone(self) -> Level | None:
        """What a node reaches alone."""
        return self._level_alone(self._spread)

    @cached_property
    def _spread(self) -> Spread:
        """How much healthy runs differ; taken from those of several together, of which there are many, if any."""
        return spread_of(self._objectives(together=not self.only_alone))

    @cached_property
    def _spread_on_one_host(self) -> Spread:
        """How much those differ of nodes that share a host."""
        return replace(self._spread, share=max(self._spread.share, SPREAD_ON_ONE_HOST))

    @cached_property
    def _on_shared_hosts(self) -> frozenset[str]:
        """The nodes that share their host in most of their runs with others.

        Members report their addresses themselves. A liar that reports the address of its partner must not make the
        partner count as a node with half a host from then on.
        """
        on_one_host = Counter(node for trial in self.trials if trial.on_one_host for node in trial.members)
        together = Counter(node for trial in self.trials if len(trial.members) > 1 for node in trial.members)
        return frozenset(node for node, times in on_one_host.items() if 2 * times > together[node])

    @cached_property
    def only_alone(self) -> bool:
        """Whether every node was tried by itself only, so that passing alone is all that can be asked of it."""
        return all(len(trial.members) == 1 for trial in self.trials)

    def _objectives(self, *, together: bool) -> list[float]:
        """What runs reached, without those that only say once more that a node is slow; a large group counts as pairs.

        Whoever is slow is tried more often than others, and would pass for typical if all its runs counted.
        """
        runs = [
            (trial.objective, trial)
            for trial in self.trials
            if trial.outcome is Outcome.GOOD and trial.objective and (len(trial.members) > 1) is together
        ]
        best: dict[str, tuple[float, Trial]] = {}
        for reached, trial in runs:
            best.update({node: (reached, trial) for node in trial.members if reached > best.get(node, (0.0, trial))[0]})
        return [
            reached
            for reached, trial in runs
            for _ in range(max(len(trial.members) // 2, 1))
            if any(best[node][1] is trial for node in trial.members)
            or all(reached > NEAR * best[node][0] for node in trial.members)
        ]

    def level(self, trial: Trial) -> Level | None:
        """What is typical for runs like this one, and how little is slow: less where nodes share a host."""
        together = len(trial.members) > 1
        if trial.on_one_host or (not together and not self._on_shared_hosts.isdisjoint(trial.members)):
            return self._level_together_on_one_host if together else self._level_alone_on_one_host
        return self.level_together if together else self.level_alone

    @cached_property
    def _level_together_on_one_host(self) -> Level | None:
        return self._level_together(self._spread_on_one_host)

    @cached_property
    def _level_alone_on_one_host(self) -> Level | None:
        return self._level_alone(self._spread_on_one_host)

    def _level_together(self, spread: Spread) -> Level | None:
        """The level of runs of several nodes, after the highest values, which may be lies, are cut.

        The least that a member measures counts, so only two liars together can claim too much: l liars can fake l / 2
        pairs. Example: with 12 liars the six highest values count as the seventh.
        """
        reached = sorted(self._objectives(together=True))
        fakes = min(liars_among(len(self.sites)) // 2, max(len(reached) - 1, 0))
        return level_of([min(value, reached[-1 - fakes]) for value in reached], spread)

    def _level_alone(self, spread: Spread) -> Level | None:
        """The level of runs alone, after every value above `_most_alone`, which may be a lie, is cut to it."""
        if (most := self._most_alone) is None:
            return None
        return level_of([min(value, most) for value in self._objectives(together=False)], spread)

    @cached_property
    def _most_alone(self) -> float | None:
        """The most that an honest node reaches alone, as far as it is known; None while too few nodes have shown it.

        Nobody else measures a run alone: a liar that claims a thousand times the possible value would make all others
        slow. If all nodes run alone only, the bound is a value that more nodes have reached than may lie. Otherwise
        mostly suspects run alone, and many of them may lie. Then the bound is the least that a few nodes have reached
        that were drawn by lot.
        """
        if self.only_alone:
            best: dict[str, float] = {}
            for trial in self.trials:
                (node,) = trial.members
                best[node] = max(trial.objective or 0.0, best.get(node, 0.0))
            return max(sorted(best.values(), reverse=True)[liars_among(len(self.sites)) :], default=None)
        return None if self.measures_missing else min(self._measures.values())

    @property
    def measures_missing(self) -> int:
        """How many more nodes must run alone, as a measure for others, before `_most_alone` is known."""
        return max(measures_beyond_lies(len(self.sites)) - len(self._measures), 0)

    @cached_property
    def _measures(self) -> Mapping[str, float]:
        """What each node reached alone that had passed with others before and had no bad run until then."""
        reached: dict[str, float] = {}
        passed: set[str] = set()
        bad: set[str] = set()
        for trial in self.trials:
            node = trial.members[0]
            if len(trial.members) > 1:
                (bad if self.is_bad(trial) else passed if _is_pass(trial) else set()).update(trial.members)
            elif trial.outcome is Outcome.GOOD and trial.objective and node in passed and node not in bad:
                reached.setdefault(node, trial.objective)
        return reached

    def is_slow(self, trial: Trial) -> bool:
        """Whether `trial` went well but fell short of what is typical."""
        level = self.level(trial)
        if level is None or trial.outcome is not Outcome.GOOD or not trial.objective:
            return False
        return trial.objective < level.slow_below

    def is_bad(self, trial: Trial) -> bool:
        return trial.outcome is Outcome.BAD or self.is_slow(trial)

    def is_outdone(self, trial: Trial) -> bool:
        """Whether all members of a bad run have done better with others, by as much as makes a run slow.

        Where values shade into each other, two that have barely passed may barely fail together.
        """
        level = self.level(trial)
        if level is None or not self.is_slow(trial) or trial.objective is None:
            return True
        reached = trial.objective * level.typical / level.slow_below
        return all(self.histories[node].best_together > reached for node in trial.members)

    def slow_rails(self, trial: Trial) -> frozenset[int]:
        """The rails that fell short of the better ones in the same run, by as much as makes a run slow."""
        level = self.level(trial)
        if level is None or not trial.rails:
            return frozenset()
        usual = sorted(trial.rails)[len(trial.rails) * 3 // 4]
        return frozenset(n for n, value in enumerate(trial.rails) if value < usual * level.slow_below / level.typical)

    @cached_property
    def histories(self) -> Mapping[str, History]:
        """What every node has shown."""
        histories = {node: History() for node in self.sites}
        for trial in self.trials:
            bad = self.is_bad(trial)
            if bad and not self._is_slow_by_type(trial):
                for node in trial.charged:
                    histories[node].bad.append(trial)
                    if node in trial.crashed or len(trial.members) == 1:
                        histories[node].own.append(trial)
            else:
                passed = _is_pass(trial) and not bad
                for node in trial.members:
                    (histories[node].good if passed else histories[node].void).append(trial)
        return histories

    @cached_property
    def cleared(self) -> frozenset[str]:
        """The nodes that have been in a good run with others, and in no run since in which ranks crashed.

        A good run alone is enough where no node was tried with others. A crash also unclears the partner. Otherwise a
        liar that crashes others at will would stay cleared, and its victims would not.
        """
        found: set[str] = set()
        for trial in self.trials:
            self._note_cleared(trial, found)
        return frozenset(found)

    def _note_cleared(self, trial: Trial, cleared: set[str]) -> None:
        """Updates `cleared` by what a run has shown."""
        if self.is_bad(trial):
            cleared.difference_update(trial.charged if trial.crashed else ())
        elif _is_pass(trial) and (len(trial.members) > 1 or self.only_alone):
            cleared.update(trial.members)

    @cached_property
    def drawn(self) -> Mapping[str, frozenset[str]]:
        """By group, the members that lots decided on: it was their first run, or they were cleared before it."""
        drawn: dict[str, frozenset[str]] = {}
        cleared: set[str] = set()
        known: set[str] = set()
        for trial in self.trials:
            drawn[trial.group] = frozenset(node for node in trial.members if node in cleared or node not in known)
            known.update(trial.members)
            self._note_cleared(trial, cleared)
        return drawn

    @cached_property
    def odd_types(self) -> frozenset[str]:
        """The machine types of which nobody has passed though others have: all nodes of one may be slower."""
        passed = {self.sites[node].machine_type for node in self.cleared} - {None}
        every = {site.machine_type for site in self.sites.values()}
        return frozenset(kind for kind in every - passed if kind is not None and passed)

    def is_odd(self, node: str) -> bool:
        """Whether a node is of such a type."""
        return self.sites[node].machine_type in self.odd_types

    def _is_slow_by_type(self, trial: Trial) -> bool:
        """Whether a run may be slow only because of what some of its members are."""
        return self.is_slow(trial) and any(map(self.is_odd, trial.members))

    @cached_property
    def sides(self) -> Mapping[str, frozenset[str]]:
        """By node that has passed with others, the side of the fabric that it is known to be on."""
        together = (trial for trial in self.trials if len(trial.members) > 1)
        return sides_of(trial.members for trial in together if _is_pass(trial) and not self.is_bad(trial))

    @cached_property
    def leaves(self) -> Mapping[str, tuple[str, ...]]:
        """The nodes of every known leaf."""
        leaves: dict[str, list[str]] = {}
        for site in self.sites.values():
            if site.leaf is not None:
                leaves.setdefault(site.leaf, []).append(site.node)
        return {leaf: tuple(nodes) for leaf, nodes in leaves.items()}

    @cached_property
    def all_leaves_known(self) -> bool:
        """Whether somebody said of every node at which leaf it is."""
        return all(site.leaf is not None for site in self.sites.values())

    def neighbours(self, node: str) -> frozenset[str]:
        """The other nodes of its leaf."""
        leaf = self.sites[node].leaf
        return frozenset(() if leaf is None else self.leaves[leaf]) - {node}

    def path(self, one: str, other: str) -> Path:
        """What two nodes have between them: from leaf to leaf, or from node to node where a leaf is not known."""
        leaves = [leaf for node in (one, other) if (leaf := self.sites[node].leaf) is not None]
        ends = leaves if len(leaves) == 2 else [one, other]
        return Path((min(ends), max(ends)), of_leaves=len(leaves) == 2)


def _is_pass(trial: Trial) -> bool:
    """Whether a run that is not bad shows that its members are well. One rank that has nobody to meet measures 0."""
    return trial.outcome is Outcome.GOOD and trial.objective != 0
