"""What a localisation strategy asks for, and what it knows about the place of each node."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from muster_coordinator.localize.trial import Trial


@dataclass(frozen=True, slots=True)
class Site:
    """Where a node stands, and what it is; None where nobody said.

    Nodes of one leaf share its switch, nodes of one rack a leaf. Those of different machine types may differ in speed.
    Only nodes with as many `devices` have rails between them. `places_itself` says that only the node itself tells at
    which leaf it stands.
    """

    node: str
    rack: str | None = None
    leaf: str | None = None
    machine_type: str | None = None
    devices: int = 0
    places_itself: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """A group to be run, and why. With `by_rail` its ranks exchange on one rail after the other, each for itself."""

    members: tuple[str, ...]
    reason: str
    by_rail: bool = False


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the check can tell: something worth comparing on a node alone, and the bandwidth of each rail."""

    alone: bool = True
    by_rail: bool = True


def have_rails(nodes: Iterable[str], sites: Mapping[str, Site]) -> bool:
    """Whether the rails between these nodes can be tried apart, since each has as many devices."""
    return len({sites[node].devices for node in nodes}) == 1


def in_rank_order(probes: Iterable[Probe], sites: Mapping[str, Site]) -> list[Probe]:
    """With the members of each in the order of `sites`, which is topology order."""
    places = {node: place for place, node in enumerate(sites)}
    return [replace(probe, members=tuple(sorted(probe.members, key=places.__getitem__))) for probe in probes]


class Policy(Protocol):
    """A strategy: a pure function from what has been shown to what to try next."""

    @property
    def max_rounds(self) -> int:
        """After so many rounds at the latest it ends, whatever is open then."""

    def next_groups(self, trials: Sequence[Trial], absent: frozenset[str]) -> list[Probe]:
        """The disjoint groups of the next round; none when nothing more can be learned. `absent` are not to be had."""
