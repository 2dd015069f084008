"""Nodes that are convicted by themselves, and the bad runs that remain unexplained.

The idea: only the node itself can cause certain failures. Such a node is convicted first; the runs that it explains
then count against no other node.

Example: a-b is slow, a is slow alone, too, b passes alone. a is convicted with two runs. a-b is explained by a, so b is
no suspect although it has a bad run.

Takes time in proportion to the bad runs, times their members.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.reached import ALIKE, amount_reached, are_alike
from muster_coordinator.localize.likelihood.likelihood_ratio import LikelihoodRatios, bound, candidates_among
from muster_coordinator.localize.rules.culprit import Culprit, Part
from muster_coordinator.localize.rules.evidence_against import disjoint, drawn_partners_missing
from muster_coordinator.model.probes import CheckAbilities, GroupRun

SEVERAL = 2
"""One neighbour that is bad as well may have a fault of its own."""


class SlowRails(NamedTuple):
    """The rails of a suspect that were slow in each run on separate rails, those that ever were, and their number."""

    always: frozenset[int]
    ever: frozenset[int]
    number: int

    def may_be_of_one_switch(self, other: "SlowRails") -> bool:
        """Whether each rail that was always slow for one of two nodes has also been slow for the other."""
        return self.always <= other.ever and other.always <= self.ever


@dataclass(frozen=True)
class NodeFaults:
    """The nodes that are convicted by themselves, by `evidence` of a check with these `abilities`."""

    evidence: GroupEvidence
    abilities: CheckAbilities

    @cached_property
    def ratios(self) -> LikelihoodRatios:
        """How much more likely a bad part makes runs than chance does."""
        return LikelihoodRatios(self.evidence)

    @cached_property
    def convicted(self) -> Mapping[str, Culprit]:
        """The runs that convict each node. One of three rules is enough."""
        found = {}
        for node, history in self.evidence.histories.items():
            if not history.own_failures:
                continue
            against = self._against(node)
            if (
                history.failed_alone
                or self._is_bad_alone_and_again(node, against)
                or self._crashes_with_all(node, against)
            ):
                found[node] = self.culprit(Part.NODE, (node,), against, intermittent=history.times_clear > 0)
        return found

    def _against(self, node: str) -> list[GroupRun]:
        """The bad runs that count against a node in itself. A crash of its own ranks always does."""
        history = self.evidence.histories[node]
        bad = self._unexcused(node) if history.times_clear else history.bad
        return [run for run in bad if node in run.crashed or not self._may_be_shared(run, node)]

    def _may_be_shared(self, run: GroupRun, node: str) -> bool:
        return len(run.members) > 1 and (
            self._is_crash_of_another(run)
            or self._is_as_bad_elsewhere(run, node)
            or self._is_as_bad_as_its_leaf(run, node)
            or self._is_worse_than_alone(run, node)
        )

    def _is_crash_of_another(self, run: GroupRun) -> bool:
        """Rule: the crash of another node does not count against a node if the other crashes alone, too.

        Prevents: a4 crashes with b1 and alone. b1 is slow alone, once, by chance. The two runs would convict b1.
        """
        own = (failure for other in run.crashed for failure in self.evidence.histories[other].own_failures)
        return any(failure.crashed and len(failure.members) == 1 for failure in own)

    def _is_as_bad_elsewhere(self, run: GroupRun, node: str) -> bool:
        """Rule: a bad run does not count if a partner reached no more with a node that has passed.

        Prevents: leaf c has a bad switch. c1-a3 is slow, and so is c1-b2, although b2 passes with others. By chance, a3
        is slow alone twice. The three runs would convict a3.
        """
        most = ALIKE * amount_reached(run)
        return any(
            amount_reached(other_run) <= most
            for other in run.others(node)
            for other_run in self.evidence.histories[other].bad_together
            if node not in other_run.members and self.evidence.cleared.issuperset(other_run.others(other))
        )

    def _is_as_bad_as_its_leaf(self, run: GroupRun, node: str) -> bool:
        """Rule: nor does it count if several nodes of the same leaf reached as much in the same round.

        Prevents: leaf a has a bad switch, and all its nodes are slow with others. By chance, a3 is slow alone twice.
        """
        histories, reached = self.evidence.histories, amount_reached(run)
        neighbours = self.evidence.neighbours(node).difference(run.members)
        beside = [[each for each in histories[other].bad_together if each.round == run.round] for other in neighbours]
        return sum(any(are_alike((amount_reached(each), reached)) for each in runs) for runs in beside) >= SEVERAL

    def _is_worse_than_alone(self, run: GroupRun, node: str) -> bool:
        """Rule: nor does a run count that broke, if the node has passed alone and none of its runs alone broke.

        Prevents: the link of a4 hangs, and a4 straggles in the first of two runs alone. With those that hang, this run
        would convict a4 itself.
        """
        history = self.evidence.histories[node]
        broke_alone = any(len(each.members) == 1 and not amount_reached(each) for each in history.own_failures)
        return history.passed_alone and not broke_alone and not amount_reached(run)

    def _is_bad_alone_and_again(self, node: str, against: list[GroupRun]) -> bool:
        """Rule: a node is convicted if it was bad alone and in another run, too.

        A verdict FAIL alone is enough by itself: it says what is broken. Slow or crashed alone is not. Prevents: other
        work on the host takes a core during the one run that a4 has alone. a4 reaches 0.3 of normal, and would be
        convicted by a single run.
        """
        if not self.evidence.histories[node].bad_alone or len(against) < 2:
            return False
        return self.log_ratio(node) >= self.bound or self._crashed_itself(node, against)

    def _crashed_itself(self, node: str, against: Iterable[GroupRun]) -> bool:
        """Noise makes no ranks crash."""
        return any(run.hard and (node in run.crashed or len(run.members) == 1) for run in against)

    def log_ratio(self, node: str) -> float:
        """The logarithm of how much more likely the runs of a node are if it is bad in itself; partners count once.

        Rule: the ratio must reach `bound`. Prevents: one run in fifty takes three times as long. Of 64 nodes, n7 is
        slow with n9 and once more alone. That happens to some node in one sweep of forty.
        """
        against = self._against(node)
        met = {run.others(node): run for run in against}
        once = [met[partners] for partners in disjoint(filter(None, met))]
        alone = [run for run in against if len(run.members) == 1]
        return self.ratios.log_ratio_of_node([*alone, *once], self.evidence.histories[node].times_clear)

    @cached_property
    def bound(self) -> float:
        """The least `log_ratio` that convicts a node of this fleet."""
        return bound(candidates_among(len(self.evidence.sites)))

    def _crashes_with_all(self, node: str, against: Iterable[GroupRun]) -> bool:
        """Rule: a node is convicted if its ranks crashed beside several partners that the coordinator drew.

        The number is so high that they cannot all be liars.

        Prevents: n0 crashes beside n1, and beside n1 again. Both crashes may be the work of n1, which sends nonsense.
        In a fleet of 16 nodes two different partners are enough, in one of 64 nodes four.
        """
        return not drawn_partners_missing(self.evidence, node, (run for run in against if node in run.crashed))

    def _unexcused(self, node: str) -> list[GroupRun]:
        """The bad runs of a node with good runs, without those that another member explains.

        Rule: if a node has good runs, a bad run does not count if another member was bad by itself. A crash of the
        node's own ranks still counts.
        Prevents: c4 passes with b1 and alone. It was slow with a4, which is broken, and once alone at random. Those two
        runs would convict c4; without the run that a4 explains, one is left.
        """
        histories = self.evidence.histories
        return [
            run
            for run in histories[node].bad
            if node in run.crashed or not any(histories[other].own_failures for other in run.others(node))
        ]

    @cached_property
    def suspects(self) -> Mapping[str, list[GroupRun]]:
        """The nodes that are not convicted but have unexplained bad runs with others, with these runs."""
        found = {}
        for node, history in self.evidence.histories.items():
            if node not in self.convicted and (
                runs := [run for run in history.bad_together if self.is_unexplained(run)]
            ):
                found[node] = runs
        return found

    def is_unexplained(self, run: GroupRun) -> bool:
        """Rule: a bad run counts against no other member if a member is convicted by itself.

        Prevents: a is broken and ran with b, c and d. Each of them would remain a suspect because of a.
        """
        return self.convicted.keys().isdisjoint(run.members)

    def is_suspect(self, node: str) -> bool:
        """Whether bad runs of a node are unexplained, or it was bad by itself."""
        return node in self.suspects or bool(self.evidence.histories[node].own_failures)

    def is_healthy_alone(self, node: str) -> bool:
        """Whether a node has passed alone and never failed by itself, if the check can run alone.

        Rule: passed alone. Prevents: four old nodes at leaf a are slow in themselves, and their runs alone had no
        result. They fail inside and outside, and a healthy switch would be convicted. In 300 simulated sweeps where
        four of ten runs are void, that happens to four leaves instead of two.
        Rule: never crashed by itself. Prevents: all nodes of leaf a have a driver that crashes with others; they pass
        alone, but a switch makes no ranks crash. In 50 of 50 simulated sweeps of 64 nodes, the switch is convicted
        without this rule, and in none with it. A node that was slow alone and passes alone was slow by chance.
        """
        history = self.evidence.histories[node]
        crashed = any(run.hard for run in history.own_failures)
        return not crashed and (history.passed_alone or not self.abilities.alone)

    def slow_rails(self, node: str) -> tuple[int, ...]:
        """The rails that slowed a suspect in runs on separate rails.

        Rule: none if more than half of the rails were slow.
        Prevents: the link of a4 is loose, and five of its eight rails are slow at different times. To name five rails
        would send somebody to five cables.
        Rule: only those that were slow in each of these runs. Prevents: the whole link is slow, and runs differ by
        10 %. One rail or another is 15 % below the better ones then, in each run another one.
        """
        found = self.rails_of.get(node)
        return () if found is None or len(found.ever) > found.number / 2 else tuple(sorted(found.always))

    @cached_property
    def rails_of(self) -> Mapping[str, SlowRails]:
        """The slow rails of the suspects that had bad runs on separate rails.

        Rule: with partners that have passed. Prevents: a lacks rail 1, and the whole link of b is slower. Run together,
        no rail stands out, and a and b would look as if one switch slowed both.
        """
        cleared = self.evidence.cleared
        separate = {
            node: [run for run in runs if run.rails and cleared.issuperset(run.others(node))]
            for node, runs in self.suspects.items()
        }
        return {node: self._slow_rails_in(runs) for node, runs in separate.items() if runs}

    def _slow_rails_in(self, runs: Sequence[GroupRun]) -> SlowRails:
        slow = [*map(self.evidence.slow_rails, runs)]
        return SlowRails(frozenset.intersection(*slow), frozenset().union(*slow), len(runs[0].rails))

    def culprit(
        self,
        part: Part,
        of: tuple[str, ...],
        runs: Iterable[GroupRun],
        *,
        rails: tuple[int, ...] = (),
        intermittent: bool = False,
    ) -> Culprit:
        """The culprit for a part, with the runs that are evidence against it."""
        against = tuple(runs)
        slow = all(map(self.evidence.thresholds.is_slow, against))
        return Culprit(part, of, against, slow, rails, intermittent)
