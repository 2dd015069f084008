"""The groups of strategies that know beforehand who is to meet whom."""

from collections import Counter
from collections.abc import Iterable, Sequence, Set

from muster_coordinator.localize.probe import Probe
from muster_coordinator.localize.trial import Trial


def still_to_run(rounds: Iterable[Sequence[Probe]], trials: Iterable[Trial], absent: Set[str]) -> list[Probe]:
    """What is left of the first of `rounds` that has not been run in full; none when all have.

    Groups with nodes that are `absent` are given up. Whoever is left alone by that is open, and settled in the end.
    """
    run = Counter(frozenset(trial.members) for trial in trials)
    for planned in rounds:
        groups = [probe for probe in planned if absent.isdisjoint(probe.members)]
        if left := [probe for probe in groups if not run[frozenset(probe.members)]]:
            return left
        run.subtract(frozenset(probe.members) for probe in groups)
    return []
