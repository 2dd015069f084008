"""Functions that strategies and the follow-up share to plan groups."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from muster_coordinator.model.probes import GroupRun, Probe, Site


def have_rails(nodes: Iterable[str], sites: Mapping[str, Site]) -> bool:
    """Whether the rails between these nodes can run separately: each node has the same number of devices."""
    return len({sites[node].devices for node in nodes}) == 1


def in_rank_order(probes: Iterable[Probe], sites: Mapping[str, Site]) -> list[Probe]:
    """The probes with the members of each in the order of `sites`, which is topology order."""
    places = {node: place for place, node in enumerate(sites)}
    return [replace(probe, members=tuple(sorted(probe.members, key=places.__getitem__))) for probe in probes]


def still_to_run(rounds: Iterable[Sequence[Probe]], runs: Iterable[GroupRun], absent: Set[str]) -> list[Probe]:
    """The rest of the first of the fixed `rounds` that has not run in full; empty if all have.

    Groups with `absent` nodes are dropped. Members that are left alone by that are inconclusive, and the follow-up
    takes care of them. Takes time in proportion to all groups of the rounds.
    """
    done = Counter(frozenset(run.members) for run in runs)
    for planned in rounds:
        groups = [probe for probe in planned if absent.isdisjoint(probe.members)]
        if left := [probe for probe in groups if not done[frozenset(probe.members)]]:
            return left
        done.subtract(frozenset(probe.members) for probe in groups)
    return []
