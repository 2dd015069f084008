"""Everybody meets everybody exactly once, by the circle method: every path between two nodes gets a run of its own.

The nodes sit round a table in topology order, up one side and down the other, so that neighbours face each other. By
how far they have moved on follows how far apart those stand who meet, and near neighbours meet first: between them is
least that could be bad, so that a bad node shows before the long paths are tried. A sweep that runs out of its rounds
has tried every node among its neighbours, and misses only the most distant pairs.

Of N nodes each is in N - 1 runs, which makes this the most thorough strategy and the dearest. What it leaves open, the
judgement settles.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.planned import still_to_run
from muster_coordinator.localize.probe import Abilities, Probe, Site, in_rank_order
from muster_coordinator.localize.settling import SETTLING_ROUNDS, settling
from muster_coordinator.localize.tournament import meetings, turns_of
from muster_coordinator.localize.trial import Trial

MEETS = "everybody meets everybody, round {} of {}"


@dataclass(frozen=True)
class RoundRobin:
    """The strategy over `sites`, which are in topology order."""

    sites: Mapping[str, Site]
    abilities: Abilities
    seed: str

    @property
    def max_rounds(self) -> int:
        """One less than there are nodes, as many for an odd number, and what settling takes."""
        return turns_of(len(self.sites)) + SETTLING_ROUNDS

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """The rounds of the tournament, then what settles who is open."""
        if left := still_to_run(self._rounds(), trials, absent):
            return in_rank_order(left, self.sites)
        judgement = Judgement(Evidence(self.sites, tuple(trials)), self.abilities)
        return settling(judgement, absent, seed=self.seed, passes=1)

    def _rounds(self) -> Iterator[list[Probe]]:
        seats, turns = _seated(list(self.sites)), turns_of(len(self.sites))
        # Halfway round the table those meet who sat one place apart, so that turns by half of it come next to none.
        nearest_first = sorted(range(turns), key=lambda turn: min(2 * turn % turns, -2 * turn % turns))
        for number, turn in enumerate(nearest_first, start=1):
            reason = MEETS.format(number, turns)
            yield [Probe((one, other), reason) for one, other in meetings(seats, turn) if one and other]


def _seated(nodes: Sequence[str]) -> list[str | None]:
    """Up one side of the table and down the other; the empty chair of an odd number is the last one's neighbour."""
    chairs: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    return [*chairs[::2], *reversed(chairs[1::2])]
