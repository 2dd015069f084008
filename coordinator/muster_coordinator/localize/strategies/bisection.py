"""The strategy bisect: cuts bad groups in halves until the bad group is small.

The idea: the nodes of each kind of hardware are cut in topology order into parts of at most eight, a rack or less,
which run at the same time. There must be several parts, because slow means slow in comparison; and with larger parts
hardly any part would be healthy. A bad part is cut in halves, which also run at the same time. If both halves are
healthy, the fault lies between them: their halves meet crosswise, first each with one, then each with the other, down
to a pair.

Example: n3 of n0 to n7 is bad. Round 1: n0-n7 is slow. Round 2: n0-n3 is slow, n4-n7 passes. Round 3: n0-n1 passes,
n2-n3 is slow. n2 and n3 are suspects, and the follow-up finds the faulty one. A part of eight takes four rounds, a part
of n nodes about log2(n) + 1, each with O(n) node-runs.

A node that is left alone is a suspect, and so is a node whose own ranks crashed; the others of its part then run
without it. The follow-up tries suspects with healthy partners while the bisection goes on. It also tries the paths from
part to part, which bisection does not.

A void run is repeated once, and its group is then halved as if it were bad. If a member becomes absent, a bad group
must run again without it; a good group stays good.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from muster_coordinator.localize.diagnosis import Diagnosis
from muster_coordinator.localize.evidence.evidence import GroupEvidence
from muster_coordinator.localize.evidence.hardware import KnownHardware
from muster_coordinator.localize.planning.follow_up import FOLLOW_UP_ROUNDS, follow_up
from muster_coordinator.model.probes import CheckAbilities, GroupRun, Probe, RunOutcome, Site

LARGEST_PART, LEAST_PARTS = 8, 4
"""At one bad node in twenty, two of three parts of eight are healthy; a quarter is enough for a typical value. With
four parts, one may be bad, and in fleets of 16 nodes even two or three.
"""

MOST_VOID = 2
"""Maximum number of runs of a group without a result."""

PART = "part of the fleet, to compare with the other parts"
HALF = "a larger group with these nodes was bad"

Nodes = tuple[str, ...]


@dataclass(frozen=True)
class Bisection:
    """The strategy over `sites`, which are in topology order; every node runs with others in at least `passes` runs."""

    sites: Mapping[str, Site]
    abilities: CheckAbilities
    seed: str
    passes: int = 1

    @property
    def max_rounds(self) -> int:
        """One round for each size of a group, two for faults between halves, and one to repeat a void run."""
        return 4 * LARGEST_PART.bit_length() + FOLLOW_UP_ROUNDS + self.passes - 1

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """The parts and halves that run next, and beside them the follow-up on single suspects."""
        diagnosis = Diagnosis(GroupEvidence(self.sites, tuple(runs)), self.abilities)
        search = _Search(diagnosis.evidence, absent)
        reason = HALF if runs else PART
        halves = [Probe(group, reason) for part in self._parts() for group in search.due(part)]
        busy = absent.union(*(probe.members for probe in halves))
        return [*halves, *follow_up(diagnosis, busy, seed=self.seed, passes=self.passes)]

    def _parts(self) -> Iterator[Nodes]:
        for nodes in KnownHardware(self.sites).by_kind(self.sites):
            size = max(2, min(LARGEST_PART, len(nodes) // LEAST_PARTS))
            yield from (tuple(nodes[start : start + size]) for start in range(0, len(nodes), size))


class _Search:
    """The state of groups, for nodes that are neither `absent` nor crashed."""

    def __init__(self, evidence: GroupEvidence, absent: frozenset[str]) -> None:
        self._evidence = evidence
        self._apart = absent.union(*(run.crashed for run in evidence.runs if evidence.thresholds.is_bad(run)))
        self._runs: dict[frozenset[str], list[GroupRun]] = {}
        for run in evidence.runs:
            self._runs.setdefault(frozenset(run.members) - self._apart, []).append(run)

    def due(self, part: Nodes) -> list[Nodes]:
        """The disjoint groups that run next to find the fault in `part`."""
        here = self._here(part)
        if len(here) < 2 or (bad := self._is_bad(part)) is False:
            return []
        if bad is None:
            return [here]
        one, other = _halves(part)
        if found := self.due(one) + self.due(other):
            return found
        return self._between(one, other) if self._is_healthy(one) and self._is_healthy(other) else []

    def _between(self, one: Nodes, other: Nodes) -> list[Nodes]:
        """The groups that find the fault between two healthy parts; the follow-up takes care of a pair."""
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
        """The result of the last run of `part` with a result for all its nodes; None if there was none."""
        void = 0
        for run in reversed(self._runs.get(frozenset(self._here(part)), ())):
            is_void = run.outcome is RunOutcome.VOID
            if not (is_void or self._evidence.thresholds.is_bad(run)):
                return False
            if self._apart.isdisjoint(run.members):
                void += is_void
                if not is_void:
                    return True
        return True if void >= MOST_VOID else None

    def _is_healthy(self, part: Nodes) -> bool:
        return self._evidence.cleared.issuperset(self._here(part))


def _halves(part: Nodes) -> tuple[Nodes, Nodes]:
    middle = len(part) // 2
    return part[:middle], part[middle:]
