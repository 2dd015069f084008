"""Who is at fault, by the evidence of a sweep: nodes, rails, links of nodes, leaves, paths between them.

- A node is at fault when the verdict on it alone was FAIL, or when it was bad alone and in another run too. Only the
  node itself can cause that. If it was good at other times, a run that another member explains does not count.
- A node is at fault when its own ranks crashed with several partners that were drawn by lot.
- A leaf is at fault when none of its nodes has passed with anybody, some have failed with each other, and those that
  speak for it pass alone and fail with partners from elsewhere that have passed.
- A node's link, or some rails of it, are at fault when the node has never failed alone nor passed with others, and
  failed with several partners of which two have passed, one of them at its own leaf where that has other nodes. It is
  rails when they were tried apart and others were well; otherwise the link, of a node that passes alone. Where a run
  alone tells nothing, node and link cannot be told apart, and the node is named.
- A path from leaf to leaf, or between two nodes where no leaves are known, is at fault when it was bad several times
  and never good although all nodes on it reach clearly more otherwise; between two nodes, also since then.

Where nobody said who shares a leaf, a bad switch or path may be what looks like bad nodes. Then a node has to fail with
one partner more; on several sides of the fabric, as far as it is known who passes with whom; and at both ends of
whatever is bad between others. Of two or more that fail all alike nobody is convicted, and neither is who fails just as
the nodes of a suspected leaf do.

Nodes may lie, and make others slow or crash. Therefore no node is at fault because of one partner, and no path because
of runs of always the same node: `accusers` decides whose runs count. A node that has passed is still not cleared when
it was bad with three other nodes or more that are bad with nobody else. Nor is it while the partner in its crash has
not passed since and is bad with nobody else.

`chance` decides how many partners or runs are several. A run that a culprit of the first three rules explains does not
count against anybody else. No node is at fault because of the groups that it was in, or because of its rank. A node
that has passed with others is cleared. A node that is neither cleared nor at fault is open.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from muster_coordinator.localize.accusers import accusers_missing, disjoint, may_be_of_liars, pairs_missing
from muster_coordinator.localize.chance import are_alike, partners_beyond_chance, runs_beyond_chance
from muster_coordinator.localize.culprit import Culprit, Part
from muster_coordinator.localize.evidence import Path
from muster_coordinator.localize.own_faults import OwnFaults
from muster_coordinator.localize.sides import alike
from muster_coordinator.localize.trial import Outcome, Trial

PROVEN_PARTNERS = 2
"""Who fails with so many that have passed, and with others, is to blame itself."""

LEAST_AT_LEAF, MOST_OF_LEAF = 3, 0.75
"""So many of a leaf's nodes, and this share of them, have to be stuck before the leaf itself is suspected."""

REPRESENTATIVES = 4
"""As many nodes speak for a leaf; that so many healthy-looking links fail at once has no other likely cause.

As many speak for a machine type of which nobody has passed.
"""

LEAST_SPOILT = 3
"""So many bad paths from one node to nodes that are bad with nobody else are hardly a coincidence."""

FEW_SIDES = 5
"""Where nobody said who shares a leaf and no more sides are known, a suspect has to fail on each of them."""


@dataclass(frozen=True)
class Judgement(OwnFaults):
    """What follows from `evidence` when the check has these `abilities`."""

    @cached_property
    def culprits(self) -> tuple[Culprit, ...]:
        """Whoever is at fault."""
        return (*self.nodes.values(), *self.leaves.values(), *self.links.values(), *self.paths.values())

    def runs_missing(self, path: Path) -> int:
        """How many more bad runs put a path that was never good at fault; 0 when there are enough."""
        bad = self.impassable[path]
        by_chance = runs_beyond_chance(len(self.evidence.sites), bad) - len(bad)
        return max(by_chance, pairs_missing(self.evidence, path, bad), 0)

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
    def of_suspected_leaves(self) -> frozenset[str]:
        """The nodes of these leaves."""
        return frozenset(node for leaf in self.suspected_leaves for node in self.evidence.leaves[leaf])

    @cached_property
    def leaves(self) -> Mapping[str, Culprit]:
        """The leaves that are at fault."""
        found = {}
        for leaf, speakers in self.suspected_leaves.items():
            outside = [trial for node in speakers for trial in self.telling(node)[:1]]
            inside = self.stuck_inside(leaf)
            well = inside and len(outside) == len(speakers) and all(map(self.is_well_alone, speakers))
            if well and not may_be_of_liars(self.evidence, leaf):
                found[leaf] = self.culprit(Part.LEAF, (leaf,), (*inside, *outside))
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
        cut_off = self._cut_off.keys()
        return {
            node: self._link(node, [trial for trial in trials if cut_off.isdisjoint(trial.others(node))])
            for node, trials in self._cut_off.items()
            if node not in self.alike and self._is_told_from_its_link(node)
        }

    def _is_told_from_its_link(self, node: str) -> bool:
        """Whether it has run alone, as far as that tells anything, or rails are to blame."""
        tried = self.evidence.histories[node].tried_alone or not self.abilities.alone
        return bool(tried or self.slow_rails(node))

    @cached_property
    def alike(self) -> frozenset[str]:
        """The nodes that a switch of which nobody said may stand before: so far all fail with everybody, and alike."""
        if self.evidence.all_leaves_known:
            return frozenset()
        at_well_leaves = {node for node in self._cut_off if self.evidence.neighbours(node)}
        friendless = self.stuck.keys() - self.evidence.cleared - at_well_leaves
        return alike({node: self._reached(node) for node in friendless if self.telling(node)})

    @cached_property
    def _cut_off(self) -> Mapping[str, list[Trial]]:
        """The stuck nodes that only something of their own explains, or a switch that nobody knows; with these runs."""
        return {
            node: trials
            for node, trials in self._shunned.items()
            if node not in self.of_suspected_leaves and not self._may_be_paths(node)
        }

    @cached_property
    def _shunned(self) -> Mapping[str, list[Trial]]:
        """The stuck nodes that have passed with nobody and failed with enough others; with these runs."""
        return {
            node: trials
            for node, trials in self.stuck.items()
            if node not in self.evidence.cleared and self.partners_missing(node) == 0
        }

    @cached_property
    def spoilers(self) -> frozenset[str]:
        """The nodes that have passed, but were bad across several paths with nodes that are bad with nobody else.

        A liar that spoils some runs passes in others. It would be cleared, and a path blamed for each spoilt run.
        """
        passed = self.evidence.cleared - self.nodes.keys()
        return frozenset(node for node in passed if len(self._spoilt_by(node)) >= LEAST_SPOILT)

    def _spoilt_by(self, node: str) -> frozenset[Path]:
        """The paths across which `node` was bad with a node that has passed with others and is bad with nobody else."""
        pairs = (trial.others(node) for trial in self.stuck.get(node, ()) if len(trial.members) == 2)
        return frozenset(
            self.evidence.path(node, other)
            for (other,) in pairs
            if self.evidence.histories[other].passed and all(node in trial.members for trial in self.stuck[other])
        )

    @cached_property
    def crash_partners(self) -> frozenset[str]:
        """The nodes that have passed since a crash, while their partner in it has not and is bad with nobody else.

        One of the two caused the crash, and nobody knows which. If the first to pass were cleared, a liar that crashes
        others would only have to be tried first, and its victim would be left as the only suspect.
        """
        return frozenset(node for node in self.evidence.cleared - self.nodes.keys() if self._left_behind_by(node))

    def _left_behind_by(self, node: str) -> bool:
        crashes = (trial for trial in self.stuck.get(node, ()) if trial.crashed and node in trial.charged)
        partners = (other for trial in crashes for other in trial.charged if other not in self.evidence.cleared)
        return any(all(node in trial.members for trial in self.stuck.get(other, ())) for other in partners)

    @cached_property
    def cleared(self) -> frozenset[str]:
        """The nodes that have passed with others and are neither spoilers nor partners in an unexplained crash."""
        return self.evidence.cleared - self.spoilers - self.crash_partners

    @cached_property
    def unexplained(self) -> Mapping[Path, list[Trial]]:
        """By path, the bad runs of pairs that are both cleared, and reach more with others."""
        found: dict[Path, list[Trial]] = {}
        for trial in {trial.group: trial for trials in self.stuck.values() for trial in trials}.values():
            well = len(trial.members) == 2 and not trial.crashed and self.cleared.issuperset(trial.members)
            if well and self.evidence.is_outdone(trial):
                found.setdefault(self.evidence.path(*trial.members), []).append(trial)
        return found

    @cached_property
    def passable(self) -> Mapping[Path, list[Trial]]:
        """Those of `unexplained` that have been good too."""
        if not self.unexplained:
            return {}
        good = (trial for history in self.evidence.histories.values() for trial in history.good)
        paths = {self.evidence.path(*ends) for trial in good for ends in combinations(trial.members, 2)}
        return {path: trials for path, trials in self.unexplained.items() if path in paths}

    @cached_property
    def impassable(self) -> Mapping[Path, list[Trial]]:
        """Those of `unexplained` that have never been good."""
        return {path: trials for path, trials in self.unexplained.items() if path not in self.passable}

    @cached_property
    def paths(self) -> Mapping[Path, Culprit]:
        """The paths and links that are at fault."""
        return {
            path: self.culprit(Part.PATH if path.of_leaves else Part.LINK, path.ends, trials)
            for path, trials in self.impassable.items()
            if not self.runs_missing(path) and not self.lacks_control(path)
        }

    def lacks_control(self, path: Path) -> bool:
        """Whether a link between two nodes might be slow only because everything has become slower meanwhile.

        So neither of its ends has passed with others since it was bad for the second time.
        """
        if path.of_leaves or len(bad := self.impassable[path]) < 2:
            return False
        order = {trial.group: place for place, trial in enumerate(self.evidence.trials)}
        passed = [trial for end in path.ends for trial in self.evidence.histories[end].good if len(trial.members) > 1]
        return all(order[trial.group] < order[bad[1].group] for trial in passed)

    @cached_property
    def failed(self) -> frozenset[str]:
        """The nodes that are at fault, or of which something is."""
        return frozenset((*self.nodes, *self.links))

    @cached_property
    def open(self) -> tuple[str, ...]:
        """The nodes that are neither cleared nor at fault nor behind a leaf that is."""
        settled = self.cleared | self.failed | self.behind
        return tuple(node for node in self.evidence.sites if node not in settled)

    def telling(self, node: str) -> list[Trial]:
        """The bad runs of a node in which all others are cleared and well."""
        return [trial for trial in self.stuck.get(node, ()) if self._proven.issuperset(trial.others(node))]

    @cached_property
    def _proven(self) -> frozenset[str]:
        return self.cleared - self.nodes.keys()

    @cached_property
    def partners(self) -> tuple[str, ...]:
        """The nodes that can help to judge others, in topology order."""
        return tuple(filter(self.is_partner, self.evidence.sites))

    def is_partner(self, node: str) -> bool:
        """Whether a node can help to judge others: it has passed, and was bad only with some that have not.

        What was bad over a path that was never good is not held against it: with two leaves, nobody would be left.
        """
        if node not in self._proven or node in self.links:
            return False
        return all(trial.group in self._across_the_impassable for trial in self.telling(node))

    @cached_property
    def _across_the_impassable(self) -> frozenset[str]:
        """The groups that were bad over paths that were never good."""
        return frozenset(trial.group for trials in self.impassable.values() for trial in trials)

    def partners_needed(self, node: str) -> int:
        """With how many partners a stuck node has to fail, but not more than there are.

        It is one more where its bad runs came to different things, or where no other is known to be at its leaf and
        there are too many sides to try all.
        """
        unknown = not self.evidence.neighbours(node) and len(self._sides) > FEW_SIDES
        more = unknown or not are_alike(self.stuck[node])
        others = len(self.evidence.sites) - len(self.nodes) - 1
        return min(partners_beyond_chance(len(self.evidence.sites), self.stuck[node]) + more, others)

    def partners_missing(self, node: str) -> int:
        """With how many more partners a stuck node has to fail, some of which have passed; 0 when it was enough."""
        partners = disjoint(trial.others(node) for trial in self.stuck[node])
        return max(
            self.partners_needed(node) - len(partners),
            PROVEN_PARTNERS - len(self._proven_partners(node)),
            accusers_missing(self.evidence, node, self.telling(node)),
        )

    def _proven_partners(self, node: str) -> list[tuple[str, ...]]:
        """Who failed together with a node, and is well."""
        return disjoint(trial.others(node) for trial in self.telling(node))

    def _may_be_paths(self, node: str) -> bool:
        """Whether those that a node failed with, and that are well, may all be on the other side of something bad."""
        proven = self._proven_partners(node)
        if neighbours := self.evidence.neighbours(node):
            return not any(neighbours.issuperset(others) for others in proven)
        met = {other for others in proven for other in others}
        if self.impassable and not any(met.issuperset(path.ends) for path in self.impassable):
            return True
        sides = {self.evidence.sides[other] for other in met}
        return len(sides) < min(len(self._sides), FEW_SIDES if len(self._sides) <= FEW_SIDES else 2)

    @cached_property
    def _sides(self) -> frozenset[frozenset[str]]:
        return frozenset(self.evidence.sides.values())

    def _reached(self, node: str) -> float:
        """What the bad runs of a node come to among others that are well; 0 when they broke."""
        reached = (trial.objective if trial.outcome is Outcome.GOOD else None for trial in self.telling(node))
        return statistics.median(value or 0.0 for value in reached)

    def _link(self, node: str, trials: list[Trial]) -> Culprit:
        if rails := self.slow_rails(node):
            return self.culprit(Part.RAIL, (node,), trials, rails=rails)
        part = Part.NODE_LINK if self.evidence.histories[node].passed_alone else Part.NODE
        return self.culprit(part, (node,), trials)
