"""Halves of whatever is bad, until what is bad is small.

The nodes are cut in topology order into parts of at most eight, a rack or less, which run side by side. There have to
be several of them, since nothing is slow but in comparison, and with more nodes together hardly a part would be well.
What is bad is cut in halves, side by side as well. When both halves are well, the fault lies between them: their halves
meet crosswise, at first each with one, then each with the other, down to a pair. So n nodes take about log2(n) rounds.

A node that is left alone is a suspect, and so is one whose own ranks crashed, which is set apart so that the others of
its part can be tried without it. Suspects are settled as in any strategy, by partners that have passed, while the
halves go on. Paths from part to part are tried by such partners only.

A run that says nothing is repeated once, and its group then halved as if it were bad. Without nodes that are not to be
had, a bad group has to be run anew, and a good one stays good.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from muster_coordinator.localize.culprits import Judgement
from muster_coordinator.localize.evidence import Evidence
from muster_coordinator.localize.probe import Abilities, Probe, Site
from muster_coordinator.localize.settling import SETTLING_ROUNDS, settling
from muster_coordinator.localize.trial import Outcome, Trial

LARGEST_PART, LEAST_PARTS = 8, 4
"""At one bad node in twenty, two of three parts of eight are well; what is typical can be seen as long as a quarter is.
With four parts, one may be bad, and in fleets of 16 even two or three."""

MOST_VOID = 2
"""So many runs of a group that say nothing are enough."""

PART = "part of the fleet, so that parts can be compared"
HALF = "what they are part of was bad"

Nodes = tuple[str, ...]


@dataclass(frozen=True)
class Bisection:
    """The strategy over `sites`, which are in topology order; every node meets others in at least so many `passes`."""

    sites: Mapping[str, Site]
    abilities: Abilities
    seed: str
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """For each size of a group one round, two for what lies between halves, and one to repeat what said nothing."""
        return 4 * LARGEST_PART.bit_length() + SETTLING_ROUNDS + self.passes - 1

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """The parts and halves that are to be run next, and beside them what settles single suspects."""
        judgement = Judgement(Evidence(self.sites, tuple(trials)), self.abilities)
        search = _Search(judgement.evidence, absent)
        reason = HALF if trials else PART
        halves = [Probe(group, reason) for part in self._parts() for group in search.due(part)]
        busy = absent.union(*(probe.members for probe in halves))
        return [*halves, *settling(judgement, busy, seed=self.seed, passes=self.passes)]

    def _parts(self) -> Iterator[Nodes]:
        nodes = tuple(self.sites)
        size = max(2, min(LARGEST_PART, len(nodes) // LEAST_PARTS))
        return (nodes[start : start + size] for start in range(0, len(nodes), size))


class _Search:
    """What is known about groups, for nodes that are neither `absent` nor suspects by themselves."""

    def __init__(self, evidence: Evidence, absent: frozenset[str]) -> None:
        self._evidence = evidence
        self._apart = absent.union(*(trial.crashed for trial in evidence.trials if evidence.is_bad(trial)))
        self._runs: dict[frozenset[str], list[Trial]] = {}
        for trial in evidence.trials:
            self._runs.setdefault(frozenset(trial.members) - self._apart, []).append(trial)

    def due(self, part: Nodes) -> list[Nodes]:
        """The disjoint groups that are to be run next to find what is bad in `part`."""
        here = self._here(part)
        if len(here) < 2 or (bad := self._is_bad(part)) is False:
            return []
        if bad is None:
            return [here]
        one, other = _halves(part)
        if found := self.due(one) + self.due(other):
            return found
        return self._between(one, other) if self._is_well(one) and self._is_well(other) else []

    def _between(self, one: Nodes, other: Nodes) -> list[Nodes]:
        """The groups that tell what is bad between two parts that are well; a pair is left to be settled."""
        if len(one) + len(other) <= 2:
            return []
        (a, b), (c, d) = _halves(one), _halves(other)
        for turn in (((a, c), (b, d)), ((a, d), (b, c))):
            crossings = [(x, y) for x, y in turn if self._here(x) and self._here(y)]
            untried = [self._here(x + y) for x, y in crossings if self._is_bad(x + y) is None]
            bad = (self._between(x, y) for x, y in crossings if self._is_bad(x + y))
            if found := untried or [*chain.from_iterable(bad)]:
                return found
        return []

    def _here(self, part: Nodes) -> Nodes:
        return tuple(node for node in part if node not in self._apart)

    def _is_bad(self, part: Nodes) -> bool | None:
        """By the last run of `part` that says so of all its nodes alike; None when there was none."""
        void = 0
        for trial in reversed(self._runs.get(frozenset(self._here(part)), ())):
            if not (trial.outcome is Outcome.VOID or self._evidence.is_bad(trial)):
                return False
            if self._apart.isdisjoint(trial.members):
                void += trial.outcome is Outcome.VOID
                if trial.outcome is not Outcome.VOID:
                    return True
        return True if void >= MOST_VOID else None

    def _is_well(self, part: Nodes) -> bool:
        return self._evidence.cleared.issuperset(self._here(part))


def _halves(part: Nodes) -> tuple[Nodes, Nodes]:
    middle = len(part) // 2
    return part[:middle], part[middle:]
