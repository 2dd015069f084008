"""The next round of a sweep, from what the last ones have shown: which groups, and why."""

from collections.abc import Iterable

from muster_coordinator.localize.accusers import disjoint
from muster_coordinator.localize.culprits import REPRESENTATIVES, Judgement
from muster_coordinator.localize.evidence import Path
from muster_coordinator.localize.hints import hints_of
from muster_coordinator.localize.partners import Partners
from muster_coordinator.localize.probe import Probe, have_rails
from muster_coordinator.localize.tournament import across_leaves

ALONE_TRIES = 3
"""How often a node that was bad for no known reason runs alone, for each pass that was asked for.

So often two of three faults show that do in three runs of ten.
"""

FEW = 2
"""So many suspects meet others first: another node that runs alone as their measure would cost too much."""

MAX_PARTNERS = 7
"""More partners tell nothing new: in a fleet of 16,384 nodes six partners are too many to be liars."""

ALONE = "{} was bad with others, and its own run tells whether it is to blame"
INSIDE = "{} and {} tell whether leaf {} itself is bad"
AGAIN = "{} was bad once and nobody knows why"
CONTROL = "{} has passed, and says what others should reach"
MEET = "{} was bad with others and meets {}, which has passed"
MIX = "nothing is held against {} and {}, and neither has passed yet"
STRANGERS = "{} and {} were bad with others, and nobody has passed yet"
ALIKE = "{} and {} fail alike, and pass together if a switch before both is bad"
FRESH = "{} meets {}, which has passed"
ONCE_MORE = "every node that has passed once more, across other paths"
SINCE = "{} and {} show whether what was bad between {} and {} is bad elsewhere by now"
PATH = "between {} and {} one run was bad although its nodes are well"


class NextRound:
    """A round in the making. Every node that is not `absent` is in one of its `probes` at most."""

    def __init__(self, judgement: Judgement, absent: frozenset[str], passes: int, seed: str) -> None:
        self._passes, self._seed = passes, seed
        self.probes: list[Probe] = []
        self._judgement = judgement
        self._evidence = judgement.evidence
        self._absent = absent
        self._used: set[str] = set()
        spotless = {node for node, history in self._evidence.histories.items() if not history.bad}
        self._partners = Partners(filter(self._is_partner, self._evidence.sites), self._evidence.sites, seed, spotless)

    def plan(self) -> None:
        """Adds every group that tells something new, the most telling ones first."""
        waiting, excused = self._waiting() | self._odd_ones(), self._excused()
        open_ = [node for node in self._judgement.open if node not in self._absent and node not in waiting]
        blamed = [node for node in open_ if node in self._judgement.stuck and node not in excused]
        blamed.sort(key=lambda node: hints_of(node, self._judgement.stuck[node]), reverse=True)
        self._try_inside_leaves()
        self._try_alone([node for node in blamed if self._is_due_alone(node, among=len(blamed))])
        self._try_with_partner(blamed)
        self._try_alone([node for node in blamed if not self._has_run_alone(node)])
        self._try_paths()
        self._try_each_other([node for node in open_ if node in excused or node not in self._judgement.stuck])
        self._try_again()
        self._add_controls()
        self._add_pass()

    def _waiting(self) -> set[str]:
        """The nodes of suspected leaves that others speak for."""
        suspected = self._judgement.suspected_leaves
        return {n for leaf, speakers in suspected.items() for n in self._evidence.leaves[leaf] if n not in speakers}

    def _odd_ones(self) -> set[str]:
        """The nodes of machine types of which nobody has passed, but for those that speak for each."""
        by_type: dict[str | None, list[str]] = {}
        for node in filter(self._is_free, self._judgement.open):
            if self._evidence.is_odd(node):
                by_type.setdefault(self._evidence.sites[node].machine_type, []).append(node)
        return {node for nodes in by_type.values() for node in nodes[REPRESENTATIVES:]}

    def _excused(self) -> set[str]:
        """The nodes of which every bad run is explained by a leaf that is suspected, but not their own."""
        suspected, stuck = self._judgement.of_suspected_leaves, self._judgement.stuck.items()
        return {
            node
            for node, bad in stuck
            if node not in suspected and not any(suspected.isdisjoint(trial.members) for trial in bad)
        }

    def _try_inside_leaves(self) -> None:
        """Two nodes of each suspected leaf together: they pass if only the paths to the others are bad."""
        for leaf, speakers in self._judgement.suspected_leaves.items():
            if self._judgement.stuck_inside(leaf):
                continue
            others = (node for node in self._evidence.leaves[leaf] if node not in speakers)
            pair = tuple(filter(self._is_free, (*others, *filter(self._has_run_alone, speakers))))[:2]
            if len(pair) == 2:
                self._add(pair, INSIDE.format(*pair, leaf))

    def _try_alone(self, nodes: Iterable[str]) -> None:
        for node in filter(self._is_free, nodes):
            self._add((node,), ALONE.format(node))

    def _try_with_partner(self, nodes: Iterable[str]) -> None:
        free = [*filter(self._is_free, nodes)]
        alike = self._judgement.alike - self._judgement.of_suspected_leaves
        self._try_among(filter(alike.__contains__, free), ALIKE)
        for node in filter(self._is_free, free):
            self._meet(node, MEET, by_rail=self._judgement.abilities.by_rail)
        if not self._evidence.cleared:
            self._try_among(free, STRANGERS)

    def _try_among(self, nodes: Iterable[str], reason: str) -> None:
        """Pairs suspects that have not met: another one may clear them where nobody else can."""
        left = [node for node in nodes if self._is_free(node) and not self._has_met_enough(node)]
        while left:
            node, *left = left
            met = self._met(node)
            if (other := next((other for other in left if other not in met), None)) is not None:
                left.remove(other)
                self._add((node, other), reason.format(node, other))

    def _try_each_other(self, nodes: list[str]) -> None:
        """Pairs nodes that nothing is held against; who is left over, or got nowhere, meets one that has passed."""
        able = [node for node in nodes if not self._evidence.histories[node].void]
        for pair in zip(able[::2], able[1::2], strict=False):
            self._add(pair, MIX.format(*pair))
        for node in nodes:
            if node not in self._used:
                self._meet(node, FRESH)

    def _meet(self, node: str, reason: str, *, by_rail: bool = False) -> None:
        met = self._met(node)
        if self._has_met_enough(node):
            return
        proven = {other for trial in self._judgement.telling(node) for other in trial.others(node)}
        elsewhere = self._partners.take_near(node, met | self._beside(node, met), proven)
        partner = elsewhere or self._partners.take_near(node, met, proven)
        if partner is not None:
            pair = (node, partner)
            self._add(pair, reason.format(*pair), by_rail=by_rail and have_rails(pair, self._evidence.sites))

    def _beside(self, node: str, met: set[str]) -> set[str]:
        """Who is on the side of somebody that `node` has met, where nobody said at which leaf it is."""
        if self._evidence.sites[node].leaf is not None:
            return set()
        return set().union(*(self._evidence.sides.get(other, ()) for other in met))

    def _try_paths(self) -> None:
        for path, trials in self._judgement.impassable.items():
            if self._judgement.lacks_control(path):
                self._try_control(path)
                continue
            met = {node for trial in trials for node in trial.members}
            for _ in range(self._runs_of(path, met) if len(trials) > 1 else 1):  # most paths are good the second time
                self._try_path(path, met)

    def _runs_of(self, path: Path, met: set[str]) -> int:
        """How many more runs a path needs; 0 when there are too few other nodes at its ends to convict it."""
        lacking = self._judgement.runs_missing(path)
        others = [len({*self._evidence.leaves[leaf]} - met) for leaf in path.ends if path.of_leaves]
        return lacking if lacking <= min(others, default=lacking) else 0

    def _try_control(self, path: Path) -> None:
        """An end of a bad link with somebody else: if that is slow as well by now, the link is not to blame."""
        for end, other in (path.ends, path.ends[::-1]):
            partner = self._partners.take_near(end, {end, other}, set()) if self._is_free(end) else None
            if partner is not None:
                self._add((end, partner), SINCE.format(end, partner, *path.ends))
                return

    def _try_path(self, path: Path, met: set[str]) -> None:
        """Tries a path again. A path of leaves gets other nodes than those it `met`: one of these may be to blame."""
        if path.of_leaves:
            found = (self._partners.take_at(leaf, met) for leaf in path.ends)
            nodes = tuple(node for node in found if node is not None)
        else:
            nodes = tuple(filter(self._is_free, path.ends))
        if len(nodes) == 2:
            self._add(nodes, PATH.format(*path.ends))

    def _try_again(self) -> None:
        """Runs those alone once more that were bad over a path that was good otherwise."""
        if not self._judgement.abilities.alone:
            return
        for trials in self._judgement.passable.values():
            for trial in trials:
                for node in filter(self._is_free, trial.members):
                    if self._evidence.histories[node].tried_alone < ALONE_TRIES * self._passes:
                        self._add((node,), AGAIN.format(node))

    def _add_controls(self) -> None:
        """Without nodes that have passed, nothing would say what a node alone should reach."""
        if all(len(probe.members) > 1 for probe in self.probes):
            return
        for _ in range(self._evidence.measures_missing):
            if (node := self._partners.take_spotless()) is not None:
                self._add((node,), CONTROL.format(node))

    def _add_pass(self) -> None:
        """All that have passed and are free meet others once more, as long as that was asked for."""
        done = {node: self._evidence.histories[node].passed for node in self._partners.rest()}
        lacking = [node for node, passes in done.items() if passes < self._passes]
        if len(lacking) > 1:
            passes = max(done[node] for node in lacking)
            groups = across_leaves([self._evidence.sites[node] for node in lacking], self._seed, passes)
            self.probes += [Probe(group, ONCE_MORE) for group in groups]

    def _add(self, members: tuple[str, ...], reason: str, *, by_rail: bool = False) -> None:
        self._used.update(members)
        self._partners.withdraw(members)
        self.probes.append(Probe(members, reason, by_rail))

    def _is_partner(self, node: str) -> bool:
        return node not in self._absent and self._judgement.is_partner(node)

    def _is_free(self, node: str) -> bool:
        return node not in self._used and node not in self._absent

    def _has_run_alone(self, node: str) -> bool:
        return not self._judgement.abilities.alone or self._evidence.histories[node].tried_alone > 0

    def _is_due_alone(self, node: str, among: int) -> bool:
        """Whether its own run tells most about one of so many suspects; where rails are to blame, it tells nothing."""
        if self._has_run_alone(node) or self._judgement.slow_rails(node):
            return False
        return among > FEW or len(self._judgement.stuck[node]) > 1

    def _has_met_enough(self, node: str) -> bool:
        history = self._evidence.histories[node]
        return len(disjoint(trial.others(node) for trial in (*history.bad_together, *history.void))) >= MAX_PARTNERS

    def _met(self, node: str) -> set[str]:
        """With whom a node was bad, or got nowhere, between the two of them."""
        history = self._evidence.histories[node]
        pairs = (trial for trial in (*history.bad, *history.void) if len(trial.members) == 2)
        return {other for trial in pairs for other in trial.others(node)}
