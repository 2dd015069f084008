"""Two published methods, written from their descriptions, to compare with.

Both get what they could only know from experience: the share of normal below which a run is bad. They name nodes only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.localisation.fabric import lots_of

from muster_coordinator.model.probes import GroupRun, Probe, RunOutcome

UNLIMITED = 100
"""Rounds that neither needs; it ends a search that does not."""

SLOW_BELOW = 0.85
"""Of what is normal in the simulated fabric; faulty parts deliver at most 0.7, and noise is far smaller."""


def is_bad(run: GroupRun, normal: float = 1.0) -> bool:
    """Whether a run crashed or was slow."""
    return run.outcome is RunOutcome.BAD or (run.objective is not None and run.objective < SLOW_BELOW * normal)


def is_good(run: GroupRun, normal: float = 1.0) -> bool:
    """Whether a run measured what it should; a run without a result is neither good nor bad."""
    return run.outcome is RunOutcome.GOOD and not is_bad(run, normal)


@dataclass(frozen=True)
class RandomPairs:
    """Random pairs, then the nodes of bad pairs with nodes that passed (cluster-health-scanner).

    A node that fails its second pass is convicted. `normal` is the objective of a healthy pair.
    """

    nodes: tuple[str, ...]
    seed: str
    max_rounds: int = UNLIMITED
    normal: float = 1.0

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """Pairs by lot at first; then everybody who has had no second pass, while partners that passed last."""
        if not runs:
            lots = lots_of(self.seed)
            drawn = lots.sample(self.nodes, len(self.nodes))
            return [Probe(pair, "by lot") for pair in zip(drawn[::2], drawn[1::2], strict=False)]
        passed = [node for run in runs if is_good(run, self.normal) for node in run.members]
        settled = {*passed, *self.convicted(runs), *absent}
        waiting = [node for node in self.nodes if node not in settled]
        partners = [node for node in dict.fromkeys(passed) if node not in absent]
        return [Probe(pair, "second pass") for pair in zip(waiting, partners, strict=False)]

    def convicted(self, runs: Sequence[GroupRun]) -> frozenset[str]:
        """Whoever was bad with a partner that had passed before, and has never passed."""
        passed: set[str] = set()
        failed: set[str] = set()
        for run in runs:
            if is_good(run, self.normal):
                passed.update(run.members)
            elif is_bad(run, self.normal) and passed.intersection(run.members):
                failed.update(run.members)
        return frozenset(failed - passed)


@dataclass
class Bisection:
    """Halves of whatever is bad, side by side, down to single nodes (Cluster Readiness Engine).

    A node that passed confirms each. When both halves of a bad group pass, one probe across their boundary tells
    whether it is what lies between them. Absent nodes are left out of the groups that they would be in. `normal` is the
    objective of a healthy pair.
    """

    nodes: tuple[str, ...]
    max_rounds: int = UNLIMITED
    normal: float = 1.0
    _bad: dict[tuple[str, ...], bool] = field(default_factory=dict)
    _absent: frozenset[str] = frozenset()

    def next_groups(self, runs: Sequence[GroupRun], absent: frozenset[str]) -> list[Probe]:
        """The frontier of the bisection, and the confirmations for which there are partners."""
        told = (run for run in runs if run.outcome is not RunOutcome.VOID)
        self._bad, self._absent = {run.members: is_bad(run, self.normal) for run in told}, absent
        passed = self._passed()
        settled = passed | self.convicted(runs)
        frontier = list(self._frontier(self.nodes))
        singles = [group[0] for group in frontier if len(group) == 1 and group[0] not in settled]
        partners = [node for node in self.nodes if node in passed and node not in absent]
        groups = [Probe(group, "half of a bad group") for group in frontier if len(group) > 1]
        busy = {node for probe in groups for node in probe.members}
        free = (node for node in partners if node not in busy)
        return groups + [Probe(pair, "confirmation") for pair in zip(singles, free, strict=False)]

    def convicted(self, runs: Sequence[GroupRun]) -> frozenset[str]:
        """The single nodes that failed their confirmation."""
        passed = self._passed()
        bad_pairs = (group for group, bad in self._bad.items() if bad and len(group) == 2)
        return frozenset(one for one, other in bad_pairs if other in passed and one not in passed)

    def _passed(self) -> set[str]:
        return {node for group, bad in self._bad.items() if not bad for node in group}

    def _frontier(self, group: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """What is to be run next of a group; single nodes stand for themselves."""
        here = self._here(group)
        if len(here) == 1 or (here and here not in self._bad):
            yield here
        elif here and self._bad[here]:
            middle = len(group) // 2
            halves = group[:middle], group[middle:]
            yield from (run for half in halves for run in self._frontier(half))
            across = self._here(group[middle // 2 : middle + (len(group) - middle) // 2])
            healthy = all(self._bad.get(self._here(half)) is False for half in halves)
            if len(here) > 3 and healthy and len(across) > 1 and across not in self._bad:
                yield across

    def _here(self, group: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(node for node in group if node not in self._absent)
