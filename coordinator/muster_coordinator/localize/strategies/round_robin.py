"""Every node with every other one exactly once, so that each path between two nodes gets its own run.

The idea: the circle method. The nodes sit round a table in topology order, up one side and down the other, so that
neighbours sit opposite each other. Near neighbours meet first: few parts lie between them, so a bad node shows before
the long paths run. A sweep that runs out of rounds has tried every node with its neighbours and misses only the most
distant pairs.

Example: 4 nodes take 3 rounds: n0-n1 and n2-n3, then the pairs at distance two, then n0-n3.

Nodes of one kind of hardware meet; each kind has a table of its own. Each of n nodes is in n - 1 runs, n (n - 1) / 2
in all: the most thorough strategy and the most expensive one. The follow-up takes care of nodes that are inconclusive
then. Planning a round takes O(n) for each round that has run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hardware import KnownHardware
from muster_coordinator.localize.planning.follow_up import FOLLOW_UP_ROUNDS, follow_up
from muster_coordinator.localize.planning.probes import in_rank_order, still_to_run
from muster_coordinator.localize.planning.tournament import meetings, turns_of
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, Site

MEETS = "every node with every other one, round {} of {}"


@dataclass(frozen=True)
class RoundRobin:
    """The strategy over `sites`, which are in topology order."""

    sites: Mapping[str, Site]
    abilities: CheckAbilities
    seed: str

    @property
    def max_rounds(self) -> int:
        """One fewer than the nodes of the most frequent kind, or as many for an odd number, and the follow-up."""
        return self._turns + FOLLOW_UP_ROUNDS

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """The rounds of the tournament, then the follow-up."""
        if left := still_to_run(self._rounds(), runs, absent):
            return in_rank_order(left, self.sites)
        diagnosis = Diagnosis(GroupEvidence(self.sites, tuple(runs)), self.abilities)
        return follow_up(diagnosis, absent, seed=self.seed, passes=1)

    @cached_property
    def _alike(self) -> list[list[str]]:
        """The nodes of each kind of hardware: each kind has a table of its own."""
        return [*KnownHardware(self.sites).by_kind(self.sites)]

    @property
    def _turns(self) -> int:
        return max(turns_of(len(nodes)) for nodes in self._alike)

    def _rounds(self) -> Iterator[list[Probe]]:
        for number, tables in enumerate(zip_longest(*map(_nearest_first, self._alike), fillvalue=()), start=1):
            reason = MEETS.format(number, self._turns)
            yield [Probe(pair, reason) for pairs in tables for pair in pairs]


def _nearest_first(nodes: Sequence[str]) -> Iterator[list[tuple[str, str]]]:
    """The pairs of each round at one table."""
    seats, turns = _seated(nodes), turns_of(len(nodes))
    # After a turn by half the table, nodes meet that sat one chair apart; so half a table counts as next to none.
    for turn in sorted(range(turns), key=lambda turn: min(2 * turn % turns, -2 * turn % turns)):
        yield [(one, other) for one, other in meetings(seats, turn) if one and other]


def _seated(nodes: Sequence[str]) -> list[str | None]:
    """Up one side of the table and down the other; the empty chair of an odd number is next to the last node."""
    chairs: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    return [*chairs[::2], *reversed(chairs[1::2])]
