"""Who is at fault, by the evidence of an adaptive sweep: nodes, rails, links of nodes, leaves, paths between them.

- A node is at fault when it was bad by itself, alone or because its own ranks crashed, and in another run too. Nobody
  else can have brought that about.
- A leaf is at fault when none of its nodes has passed with anybody, some have failed with each other, and those that
  speak for it pass alone and fail with partners from elsewhere that have passed.
- A node's link, or some rails of it, are at fault when the node passes alone, has never passed with others, and failed
  with at least three partners of which two have passed, one of them at its own leaf where that has other nodes.
  Where a run alone tells nothing, node and link cannot be told apart, and the node is named.
- A path from leaf to leaf, or between two nodes where no leaves are known, is at fault when it was bad four times
  and never good although all nodes on it pass otherwise.

What a culprit that is found by the first two rules explains, is not held against anybody else. No node is at fault
because of the groups that it was in, and none because of its rank. Who has passed with others is cleared; whoever is
neither is open. Confidence: each bad run leaves half of the doubt, and one with hard evidence a fifth.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations

from muster_coordinator.localize.evidence import Evidence, Path
from muster_coordinator.localize.probe import Abilities
from muster_coordinator.localize.trial import Trial

BAD_PARTNERS, PROVEN_PARTNERS = 3, 2
"""Two bad partners may both be faults that come and go; three are not."""

BAD_RUNS_OF_PATH = 4
"""Anybody's faults may come and go on it, so that it takes one more to be sure."""

LEAST_AT_LEAF, MOST_OF_LEAF = 3, 0.75
"""So many of a leaf's nodes, and this share of them, have to be stuck before the leaf itself is suspected."""

REPRESENTATIVES = 4
"""As many nodes speak for a leaf; that so many healthy-looking links fail at once has no other likely cause."""

SOFT_DOUBT, HARD_DOUBT = 0.5, 0.2


class Part(StrEnum):
    """What can be at fault: a path lies between leaves, a link between two nodes."""

    NODE = "node"
    RAIL = "rail"
    NODE_LINK = "node_link"
    LEAF = "leaf"
    PATH = "path"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Culprit:
    """A part that is at fault. `of` names one node, one leaf, or the ends of a path or link; `rails` those of the node.

    `slow` says that it works but is slow, `intermittent` that it was seen to work well too.
    """

    part: Part
    of: tuple[str, ...]
    trials: tuple[Trial, ...]
    slow: bool
    rails: tuple[int, ...] = ()
    intermittent: bool = False

    @property
    def confidence(self) -> float:
        return round(1 - math.prod(HARD_DOUBT if trial.hard else SOFT_DOUBT for trial in self.trials), 3)


@dataclass(frozen=True)
class Judgement:
    """What follows from `evidence` when the check has these `abilities`."""

    evidence: Evidence
    abilities: Abilities

    @cached_property
    def culprits(self) -> tuple[Culprit, ...]:
        """Whoever is at fault."""
        return (*self.nodes.values(), *self.leaves.values(), *self.links.values(), *self.paths.values())

    @cached_property
    def nodes(self) -> Mapping[str, Culprit]:
        """The nodes that are at fault by themselves."""
        return {
            node: self._culprit(Part.NODE, (node,), history.bad, intermittent=bool(history.good))
            for node, history in self.evidence.histories.items()
            if history.own and len(history.bad) > 1
        }

    @cached_property
    def stuck(self) -> Mapping[str, list[Trial]]:
        """The nodes with bad runs among others that no node explains, with these runs."""
        found = {}
        for node, history in self.evidence.histories.items():
            if node not in self.nodes and (trials := [t for t in history.bad_together if self._is_open(t)]):
                found[node] = trials
        return found

    @cached_property
    def suspected_leaves(self) -> Mapping[str, tuple[str, ...]]:
        """The leaves of which nobody has passed, with the nodes that are to speak for each."""
        if len(self.evidence.leaves) < 2:
            return {}
        found = {}
        for leaf, nodes in self.evidence.leaves.items():
            stuck = [node for node in nodes if node in self.stuck]
            enough = max(LEAST_AT_LEAF, MOST_OF_LEAF * len(nodes))
            if len(stuck) >= enough and self.evidence.cleared.isdisjoint(nodes):
                found[leaf] = tuple(stuck[:REPRESENTATIVES])
        return found

    @cached_property
    def leaves(self) -> Mapping[str, Culprit]:
        """The leaves that are at fault."""
        found = {}
        for leaf, speakers in self.suspected_leaves.items():
            outside = [trial for node in speakers for trial in self.telling(node)[:1]]
            inside = self.stuck_inside(leaf)
            if inside and len(outside) == len(speakers) and all(map(self.is_well_alone, speakers)):
                found[leaf] = self._culprit(Part.LEAF, (leaf,), (*inside, *outside))
        return found

    def stuck_inside(self, leaf: str) -> list[Trial]:
        """The bad runs among nodes of one leaf that no node explains, each once."""
        nodes = frozenset(self.evidence.leaves[leaf])
        runs = {trial.group: trial for node in nodes for trial in self.stuck.get(node, ())}
        return [trial for trial in runs.values() if nodes.issuperset(trial.members)]

    @cached_property
    def behind(self) -> frozenset[str]:
        """The nodes that nothing can be said about as long as their leaf is at fault."""
        return frozenset(n for leaf in self.leaves for n in self.evidence.leaves[leaf] if n not in self.nodes)

    @cached_property
    def links(self) -> Mapping[str, Culprit]:
        """The nodes whose link or rails are at fault; the nodes themselves where they cannot be tried alone."""
        waiting = {node for leaf in self.suspected_leaves for node in self.evidence.leaves[leaf]}
        return {
            node: self._link(node, trials)
            for node, trials in self.stuck.items()
            if node not in waiting and node not in self.evidence.cleared and self._is_cut_off(node, trials)
        }

    @cached_property
    def unexplained(self) -> Mapping[Path, list[Trial]]:
        """By path, the bad runs of pairs that are both cleared."""
        found: dict[Path, list[Trial]] = {}
        for trial in {trial.group: trial for trials in self.stuck.values() for trial in trials}.values():
            if len(trial.members) == 2 and not trial.crashed and self.evidence.cleared.issuperset(trial.members):
                found.setdefault(self.evidence.path(*trial.members), []).append(trial)
        return found

    @cached_property
    def passable(self) -> frozenset[Path]:
        """Which of the paths of `unexplained` have been good too."""
        if not self.unexplained:
            return frozenset()
        good = (trial for history in self.evidence.histories.values() for trial in history.good)
        paths = {self.evidence.path(*ends) for trial in good for ends in combinations(trial.members, 2)}
        return frozenset(paths & self.unexplained.keys())

    @cached_property
    def paths(self) -> Mapping[Path, Culprit]:
        """The paths and links that are at fault."""
        return {
            path: self._culprit(Part.PATH if path.of_leaves else Part.LINK, path.ends, trials)
            for path, trials in self.unexplained.items()
            if path not in self.passable and len(trials) >= BAD_RUNS_OF_PATH
        }

    @cached_property
    def failed(self) -> frozenset[str]:
        """The nodes that are at fault, or of which something is."""
        return frozenset((*self.nodes, *self.links))

    @cached_property
    def open(self) -> tuple[str, ...]:
        """The nodes that are neither cleared nor at fault nor behind a leaf that is."""
        settled = self.evidence.cleared | self.failed | self.behind
        return tuple(node for node in self.evidence.sites if node not in settled)

    def is_well_alone(self, node: str) -> bool:
        """Whether a node has passed by itself and never failed, as far as that can be tried."""
        history = self.evidence.histories[node]
        return not history.own and (history.passed_alone or not self.abilities.alone)

    def telling(self, node: str) -> list[Trial]:
        """The bad runs of a node in which all others are cleared and well."""
        good = self.evidence.cleared - self.nodes.keys()
        return [trial for trial in self.stuck.get(node, ()) if good.issuperset(trial.others(node))]

    def _is_open(self, trial: Trial) -> bool:
        return not any(node in self.nodes for node in trial.crashed or trial.members)

    def _is_cut_off(self, node: str, trials: list[Trial]) -> bool:
        """Whether only what is the node's own explains that it has failed with so many."""
        partners = {trial.others(node) for trial in trials}
        proven = {trial.others(node) for trial in self.telling(node)}
        neighbours = self.evidence.neighbours(node)
        not_the_paths = not neighbours or any(neighbours.issuperset(others) for others in proven)
        return len(partners) >= BAD_PARTNERS and len(proven) >= PROVEN_PARTNERS and not_the_paths

    def _link(self, node: str, trials: list[Trial]) -> Culprit:
        if not self.evidence.histories[node].passed_alone:
            return self._culprit(Part.NODE, (node,), trials)
        apart = [trial for trial in trials if trial.rails]
        slow = frozenset().union(*map(self.evidence.slow_rails, apart))
        if apart and 0 < len(slow) <= len(apart[0].rails) / 2:
            return self._culprit(Part.RAIL, (node,), trials, rails=tuple(sorted(slow)))
        return self._culprit(Part.NODE_LINK, (node,), trials)

    def _culprit(
        self,
        part: Part,
        of: tuple[str, ...],
        trials: Iterable[Trial],
        *,
        rails: tuple[int, ...] = (),
        intermittent: bool = False,
    ) -> Culprit:
        those = tuple(trials)
        return Culprit(part, of, those, all(map(self.evidence.is_slow, those)), rails, intermittent)
