"""The next round of a sweep: the groups that tell most about inconclusive nodes and paths, and why.

The idea: go through the open questions from the most telling one to the least, and give each question the nodes that
are still free. Every node is in at most one group of a round. The order is that of `NextRound.plan`:

1. If no node of a leaf has passed, two of its nodes run together, up to four represent it, and the others wait.
2. While a quarter of the fleet is suspected and its leaves are unknown, suspects meet each other, few at a time.
   Otherwise a suspect runs alone, the cheapest run that can convict it. If there are only two suspects after one bad
   pair, each meets a healthy partner first: that clears one of them, and controls for a run alone would cost as much.
3. It then runs with a healthy partner, rail by rail if the check can: first from its rack, then from its leaf, then
   from elsewhere. It is cleared, or its link or rail is found.
4. A path that was bad between healthy nodes runs again, or was never crossed: see `path_retests`.
5. Nodes whose bad runs are explained by another node clear each other. What two good runs did not clear runs alone.
6. Nodes that were bad once and have passed since run alone a few more times, unless chance makes many runs slow.
7. Healthy nodes cross the paths between leaves of different hardware.
8. Suspects of earlier sweeps meet more partners while the suspicion is open.
9. Controls run: see `control_groups`. Others run inside leaves if nobody has: see `inside_pairs`.
10. All others meet once more if more passes were requested: see `further_passes`.

Example: a4-c4 was slow. Next round: a4 with a1 and c4 with c1. c4 passes. a4 was slow again: next it runs alone.

A round of n nodes with b bad runs takes about O(n + b) plus, for each suspect, a walk over the free partners.
"""

from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from itertools import chain

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.fabric import FEW_BESIDE
from muster_coordinator.localize.evidence.hints import hints_of
from muster_coordinator.localize.evidence.population import may_be_slow_alike
from muster_coordinator.localize.likelihood.track_record import TrackRecord
from muster_coordinator.localize.planning.between_kinds import between_kinds
from muster_coordinator.localize.planning.control_groups import alone_again, control_groups
from muster_coordinator.localize.planning.further_passes import further_passes
from muster_coordinator.localize.planning.inside_pairs import inside_for_the_first_time
from muster_coordinator.localize.planning.partners import PartnerPool, pools_by_kind
from muster_coordinator.localize.planning.path_retests import PathRetests
from muster_coordinator.localize.planning.probes import have_rails
from muster_coordinator.localize.planning.suspects import SUSPECT_RUNS, SUSPECTED, partners_met
from muster_coordinator.localize.rules.evidence_against import disjoint
from muster_coordinator.model.probes import Probe, RunOutcome
from muster_coordinator.normal.normality import liars_among

ALONE_TRIES = 3
"""How often a node that was bad for no known reason runs alone, for each pass. Two of three faults that show in 30 % of
the runs show in one of three runs."""

FEW_SUSPECTS = 2
"""With at most this many suspects, they meet partners first: controls for a run alone would cost too much."""

MAX_PARTNERS = 7
"""More partners tell nothing new: in a fleet of 16,384 nodes six partners cannot all be liars."""

ENOUGH_ALIKE = 2
"""Of nodes at unknown leaves that fail alike, none is convicted however often each fails. After this many healthy
partners, and this many that fail like it, a node runs no more."""

MANY_SUSPECTS, FLEET_PER_QUIET_PAIR = 0.25, 8
"""If more than this share is suspected, shared links may be the cause. With a pair for each eight nodes they are half
as full as in the first round, at most."""

ALONE = "{} was bad with others; a run alone shows whether the node itself is bad"
INSIDE = "{} and {} tell whether leaf {} itself is bad"
QUIETLY = "{} and {} were slow beside many groups; they pass beside few if links that they shared are the cause"
AGAIN = "{} was bad once for an unknown reason"
MEET = "{} was bad with others and runs with {}, which has passed"
MIX = "{} and {} are not suspected, and neither has passed yet"
STRANGERS = "{} and {} were bad with others, and no node has passed yet"
ALIKE = "{} and {} fail alike; they pass together if a switch that they share is bad"
FRESH = "{} runs with {}, which has passed"


class NextRound:
    """A round under construction. Every node that is not `absent` is in at most one of its `probes`."""

    def __init__(self, diagnosis: Diagnosis, absent: frozenset[str], passes: int, seed: str) -> None:
        self._passes, self._seed = passes, seed
        self.probes: list[Probe] = []
        self._diagnosis = diagnosis
        self._evidence = diagnosis.evidence
        self._hardware = diagnosis.evidence.hardware
        self._suspects = diagnosis.nodes.suspects
        self._absent = absent
        self._used: set[str] = set()
        spotless = {node for node, history in self._evidence.histories.items() if not history.bad}
        partners = (node for node in diagnosis.partners if node not in absent)
        self._pools = pools_by_kind(partners, self._evidence.hardware, seed, spotless, diagnosis.prior.doubted)

    def plan(self) -> None:
        """Adds every group that tells something new, the most telling ones first."""
        waiting, excused = self._waiting(), self._excused()
        inconclusive = [
            node for node in self._diagnosis.inconclusive if node not in self._absent and node not in waiting
        ]
        blamed = [node for node in inconclusive if node in self._suspects and node not in excused]
        blamed.sort(key=lambda node: hints_of(node, self._suspects[node]), reverse=True)
        self._try_inside_leaves()
        if self._try_each_other_quietly(blamed):
            return
        for probe in alone_again(blamed, self._evidence):
            if self._is_free(probe.members[0]):
                self._add(probe.members, probe.reason)
        self._try_alone([node for node in blamed if self._is_due_alone(node, among=len(blamed))])
        self._try_with_partner(blamed)
        self._try_alone([node for node in blamed if not self._has_run_alone(node)])
        busy = self._try_paths()
        self._try_each_other([node for node in inconclusive if node in excused or node not in self._suspects])
        self._try_again()
        free = (node for pool in self._pools.values() for node in pool.rest())
        for probe in between_kinds(self._evidence, free, self._seed):
            self._add(probe.members, probe.reason)
        self._try_suspects()
        self.probes += control_groups(self.probes, self._diagnosis, self._pools)
        self._try_inside_for_the_first_time()
        self.probes += further_passes(self._evidence, self._pools, self._passes, busy, self._seed)

    def _waiting(self) -> set[str]:
        """The nodes about which no run of their own tells more: they are as good as their like, or represented."""
        suspected, leaves = self._diagnosis.leaves.suspected, self._evidence.fabric.leaves
        behind = {node for leaf, chosen in suspected.items() for node in leaves[leaf] if node not in chosen}
        for leaf, chosen in suspected.items():
            if (turn := self._diagnosis.leaves.next_outside(leaf)) is not None:
                behind.update(node for node in chosen if node != turn and self._has_run_alone(node))
        return behind | self._diagnosis.clearance.cleared

    def _excused(self) -> set[str]:
        """The nodes whose bad runs are all explained by a suspected leaf that is not their own.

        Rule: they meet each other, and do not run alone. Prevents: leaf a is bad, and a1 to a4 have met b1, b2, c1 and
        c2. These four would run alone, each beside controls, although b1-b2 and c1-c2 clear them in two runs.
        """
        suspected = self._diagnosis.leaves.nodes_of_suspected
        return {
            node
            for node, bad in self._suspects.items()
            if node not in suspected and not any(suspected.isdisjoint(run.members) for run in bad)
        }

    def _try_inside_leaves(self) -> None:
        """Two nodes of each suspected leaf together: they pass if only the paths to other leaves are bad."""
        leaves = self._diagnosis.leaves
        for leaf, chosen in leaves.suspected.items():
            met = {node for run in leaves.bad_runs_inside(leaf) for node in run.members}
            others = (node for node in self._evidence.fabric.leaves[leaf] if node not in chosen)
            waiting = (*others, *filter(self._has_run_alone, chosen))
            free = [node for node in waiting if self._is_free(node) and node in self._suspects and node not in met]
            for pair in self._pairs_of_a_kind(free)[: leaves.runs_inside_missing(leaf)]:
                self._add(pair, INSIDE.format(*pair, leaf))

    def _try_alone(self, nodes: Iterable[str]) -> None:
        for node in filter(self._is_free, nodes):
            self._add((node,), ALONE.format(node))

    def _try_with_partner(self, nodes: Iterable[str]) -> None:
        free = [*filter(self._is_free, nodes)]
        alike = self._diagnosis.links.one_switch.alike - self._diagnosis.leaves.nodes_of_suspected
        self._try_among([node for node in free if node in alike and len(self._met(node) & alike) < ENOUGH_ALIKE], ALIKE)
        for node in filter(self._is_free, free):
            if node not in alike or not self._has_failed_enough_alike(node):
                self._meet(node, MEET)
        if not self._evidence.cleared:
            self._try_among(free, STRANGERS)

    def _has_failed_enough_alike(self, node: str) -> bool:
        """Whether further partners cannot convict a node that fails like others; its leaf must tell them apart."""
        with_healthy = self._diagnosis.clearance.runs_with_healthy(node)
        return not self._evidence.neighbours(node) and len(with_healthy) >= ENOUGH_ALIKE

    def _try_among(self, nodes: Iterable[str], reason: str) -> None:
        """Pairs suspects that have not met: another suspect may clear them if no healthy node can."""
        left = [node for node in nodes if self._is_free(node) and not self._has_met_enough(node)]
        while left:
            node, *left = left
            kind, met = self._hardware.kind_of(node), self._met(node)
            fits = (other for other in left if other not in met and self._hardware.kind_of(other) == kind)
            if (other := next(fits, None)) is not None:
                left.remove(other)
                self._add_pair((node, other), reason)

    def _try_each_other_quietly(self, suspects: list[str]) -> bool:
        """Pairs suspects at unknown leaves, few at a time, while they are a quarter of the fleet; whether it did.

        Rule: they meet each other before anything else. Prevents: leaves are oversubscribed 2:1, and nobody has
        declared them. Half of the pairs of the first round cross leaves and are slow. Each of their nodes would run
        alone, and then with a healthy partner beside 20 such pairs, where it is slow again.
        """
        sites = self._evidence.sites
        unplaced = [node for node in suspects if sites[node].leaf is None]
        if len(unplaced) <= MANY_SUSPECTS * len(sites):
            return False
        once = [node for node in unplaced if len(self._suspects[node]) == 1]
        self._try_among(once[: 2 * max(FEW_BESIDE + 1, len(sites) // FLEET_PER_QUIET_PAIR)], QUIETLY)
        return not self._used.isdisjoint(once)

    def _try_each_other(self, nodes: list[str]) -> None:
        """Pairs nodes without unexplained bad runs that have not met; others, or after void runs, a healthy one."""
        histories, behind = self._evidence.histories, self._diagnosis.leaves.nodes_of_suspected
        seen = (history for node, history in histories.items() if node not in behind)
        often = 1 if may_be_slow_alike(seen, self._evidence.thresholds) else 2
        unclear = (node for node in nodes if len(histories[node].unclear) >= often)
        self._try_alone(node for node in unclear if not self._has_run_alone(node))
        able = [node for node in filter(self._is_free, nodes) if not histories[node].void]
        for pair in (pair for pair in self._pairs_of_a_kind(able) if pair[1] not in self._met(pair[0])):
            self._add(pair, MIX.format(*pair))
        for node in nodes:
            if self._is_free(node):
                self._cross_new_path(node)
            if self._is_free(node):
                self._meet(node, FRESH)

    def _cross_new_path(self, node: str) -> None:
        """A node without bad runs meets a healthy one across a path that has shown nothing yet, if there is any.

        Prevents: a fifth of the nodes declines, and both pairs of the first round that crossed the path a-c are void.
        Its members pass with neighbours, and nobody crosses a-c.
        Rule: only to leaves with more nodes than may lie, as in the first round.
        """
        here, pool = self._evidence.sites[node].leaf, self._pool(node)
        if here is None or self._evidence.histories[node].has_shown_something:
            return
        for leaf in (leaf for leaf in self._honest_leaves if leaf not in self._reached_from[here]):
            if (partner := pool.take_at(leaf, set())) is not None:
                self._add((node, partner), FRESH.format(node, partner))
                self._reached_from[here].add(leaf)
                self._reached_from[leaf].add(here)
                return

    @cached_property
    def _honest_leaves(self) -> list[str]:
        leaves, liars = self._evidence.fabric.leaves, liars_among(len(self._evidence.sites))
        return [leaf for leaf, nodes in leaves.items() if len(nodes) > liars]

    @cached_property
    def _reached_from(self) -> Mapping[str, set[str]]:
        """The leaves to which runs from each leaf have shown something, and itself."""
        reached = {leaf: {leaf} for leaf in self._evidence.fabric.leaves}
        telling = (run for run in self._evidence.runs if run.outcome is not RunOutcome.VOID)
        for one, other in (
            path.ends for run in telling for path in self._evidence.fabric.paths(run.members) if path.of_leaves
        ):
            reached[one].add(other)
            reached[other].add(one)
        return reached

    def _meet(self, node: str, reason: str) -> None:
        met = self._met(node)
        if self._has_met_enough(node) or node in self._diagnosis.clearance.spoilers:  # these pass, and are not cleared
            return
        healthy = {other for run in self._diagnosis.clearance.runs_with_healthy(node) for other in run.others(node)}
        hides_elsewhere = self._diagnosis.clearance.no_better_elsewhere(node)
        if healthy and (hides_elsewhere or self._diagnosis.links.places.needs_neighbour(node)):
            healthy -= self._evidence.neighbours(node)
        elsewhere = self._pool(node).take_near(node, met | self._beside(node, met), healthy)
        partner = elsewhere or self._pool(node).take_near(node, met, healthy)
        if partner is not None:
            self._add_pair((node, partner), reason)

    def _beside(self, node: str, met: set[str]) -> set[str]:
        """The nodes on the side of any node that `node` has met, if its leaf is unknown."""
        if self._evidence.sites[node].leaf is not None:
            return set()
        return set().union(*(self._evidence.sides.get(other, ()) for other in met))

    def _try_paths(self) -> Set[str]:
        """Runs pairs across suspected paths. Returns the leaves whose uplinks they need for themselves."""
        retests = PathRetests(self._diagnosis, self._pools, self._is_free)
        for probe in chain(retests.due(), retests.never_crossed()):
            self._add(probe.members, probe.reason)
        if all(len(probe.members) == 1 for probe in self.probes):
            for probe in retests.due_quietly():
                self._add(probe.members, probe.reason)
        return retests.leaves_tried

    def _try_inside_for_the_first_time(self) -> None:
        for pool in self._pools.values():
            for probe in inside_for_the_first_time(self._evidence, pool.rest()):
                self._add(probe.members, probe.reason)

    def _try_again(self) -> None:
        """Runs nodes alone once more that were bad across a path that had good runs too."""
        if not self._diagnosis.abilities.alone:
            return
        for runs in self._diagnosis.paths.sometimes_good.values():
            for run in (run for run in runs if self._diagnosis.nodes.ratios.are_worth_a_run([run])):
                for node in filter(self._is_free, run.members):
                    if self._evidence.histories[node].times_alone < ALONE_TRIES * self._passes:
                        self._add((node,), AGAIN.format(node))

    def _try_suspects(self) -> None:
        """Runs nodes with another partner that are suspected since an earlier sweep."""
        for record in filter(self._is_due_as_suspect, self._diagnosis.recurring.still_suspected):
            pool, met = self._pool(record.node), partners_met(record, self._evidence.sites)
            pool.withdraw((record.node,))
            if (partner := pool.take_near(record.node, met, set())) is not None:
                self._add((record.node, partner), SUSPECTED.format(record.node, record.since.id, partner))

    def _add_pair(self, pair: tuple[str, str], reason: str) -> None:
        """Adds a pair. A suspect runs rail by rail if the check can: that tells bad nodes from a switch they share."""
        able = self._diagnosis.abilities.by_rail and have_rails(pair, self._evidence.sites)
        self._add(pair, reason.format(*pair), by_rail=able and pair[0] in self._suspects)

    def _add(self, members: tuple[str, ...], reason: str, *, by_rail: bool = False) -> None:
        self._used.update(members)
        for node in members:
            self._pool(node).withdraw((node,))
        self.probes.append(Probe(members, reason, by_rail))

    def _pool(self, node: str) -> PartnerPool:
        """The partners of its kind of hardware."""
        return self._pools[self._hardware.kind_of(node)]

    def _pairs_of_a_kind(self, nodes: Iterable[str]) -> list[tuple[str, str]]:
        """Pairs of these nodes, in their order; the last node of a kind is left over if the number is odd."""
        alike = self._hardware.by_kind(nodes)
        return [pair for those in alike for pair in zip(those[::2], those[1::2], strict=False)]

    def _is_free(self, node: str) -> bool:
        return node not in self._used and node not in self._absent

    def _has_run_alone(self, node: str) -> bool:
        """Also not, if it was slow in its only run alone, which chance may explain."""
        history = self._evidence.histories[node]
        wanted = ALONE_TRIES if history.bad_alone and not history.passed_alone else 1
        return not self._diagnosis.abilities.alone or history.times_alone >= wanted

    def _is_due_alone(self, node: str, among: int) -> bool:
        """Whether its own run tells most about one of the suspects `among`. It tells nothing about slow rails."""
        if self._has_run_alone(node) or self._diagnosis.nodes.slow_rails(node):
            return False
        return among > FEW_SUSPECTS or len(self._suspects[node]) > 1

    def _is_due_as_suspect(self, record: TrackRecord) -> bool:
        history = self._evidence.histories[record.node]
        return self._is_free(record.node) and len(history.good_together) + len(history.bad_together) < SUSPECT_RUNS

    def _has_met_enough(self, node: str) -> bool:
        history = self._evidence.histories[node]
        return len(disjoint(run.others(node) for run in (*history.bad_together, *history.void))) >= MAX_PARTNERS

    def _met(self, node: str) -> set[str]:
        """The partners in pairs in which the node had a run that did not clear it."""
        history = self._evidence.histories[node]
        pairs = (run for run in (*history.bad, *history.void, *history.unclear) if len(run.members) == 2)
        return {other for run in pairs for other in run.others(node)}
