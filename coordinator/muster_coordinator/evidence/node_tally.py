"""What is counted about nodes, as it is read: the kinds of nodes, and the sums over them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from muster.model import Health, ServiceState
from muster_coordinator.evidence.health import present_health
from muster_coordinator.model.quarantine import OUT

HOUR_S = 3600.0

_TO_NAME = frozenset({ServiceState.HELD, *OUT})
"""The service states in which even a healthy node is named."""


class GpuLoss(StrEnum):
    """Why GPUs cannot be used: their node is drained; or it is in service and has failed; or only its agent is silent.

    The first that fits counts.
    """

    DRAINED = "drained"
    FAILED = "failed"
    LOST = "lost"


class NodeKind(NamedTuple):
    """What the counts tell nodes apart by; `health` is that of their evidence. A place that is not known is empty."""

    health: Health
    service: ServiceState
    dry_run: bool
    is_online: bool
    has_left: bool
    block: str
    rack: str

    @property
    def shown_health(self) -> Health:
        """The health that is shown for such nodes."""
        return present_health(self.health, lost=not self.is_online)

    @property
    def is_named(self) -> bool:
        """Whether such nodes are named: they are not healthy, or are drained or should be."""
        return not self.has_left and (self.shown_health is not Health.HEALTHY or self.service in _TO_NAME)

    @property
    def gpu_loss(self) -> GpuLoss | None:
        """Why the GPUs of such nodes cannot be used; None if they can. In a dry run no node is drained."""
        if self.service in OUT and not self.dry_run:
            return GpuLoss.DRAINED
        if self.health is Health.FAILED:
            return GpuLoss.FAILED
        return None if self.is_online else GpuLoss.LOST


class NamedNode(NamedTuple):
    """A node that is not healthy, or is drained or should be."""

    name: str
    kind: NodeKind


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of nodes by health, by service state and by both, the `lost` nodes, and findings of comparisons by code.

    `places` are numbers of nodes by block, rack, health and service state. `gpus` is the number of GPUs, `gpus_lost`
    how many of them cannot be used. `codes` are numbers of nodes by finding, `numbers` by error of the driver, such as
    ("xid", 79). `tested` are numbers of nodes by the hour in which a sweep cleared or convicted them last, or they
    joined. `named` are nodes that are not healthy or not in service, the worst first, and `unnamed` is the number of
    those for which there was no room. `waiting_runs` wait at agents.

    Nodes that have left the fleet count only in the first three, and in `compared`.
    """

    health: Counter[Health]
    service: Counter[ServiceState]
    both: Counter[tuple[Health, ServiceState]]
    lost: tuple[str, ...]
    compared: Counter[str]
    places: Counter[tuple[str, str, Health, ServiceState]]
    gpus: int
    gpus_lost: Counter[GpuLoss]
    codes: Counter[str]
    numbers: Counter[tuple[str, int]]
    tested: Counter[int]
    named: tuple[NamedNode, ...]
    unnamed: int
    waiting_runs: int

    def not_tested_since(self, moment: float) -> int:
        """Nodes that no sweep has cleared or convicted since `moment`, to the hour, and that joined before it."""
        hour = hour_of(moment)
        return sum(number for tested, number in self.tested.items() if tested < hour)


def hour_of(moment: float) -> int:
    """The number of the hour since the epoch."""
    return int(moment // HOUR_S)


def sums_by_kind(
    nodes: Mapping[NodeKind, int],
) -> tuple[Counter[tuple[Health, ServiceState]], Counter[tuple[str, str, Health, ServiceState]]]:
    """The numbers of nodes by health and service state, and by place as well."""
    both: Counter[tuple[Health, ServiceState]] = Counter()
    places: Counter[tuple[str, str, Health, ServiceState]] = Counter()
    for kind, number in nodes.items():
        health = kind.shown_health
        both[health, kind.service] += number
        if not kind.has_left:
            places[kind.block, kind.rack, health, kind.service] += number
    return both, places


def lost_gpus(gpus: Mapping[NodeKind, int]) -> Counter[GpuLoss]:
    """The GPUs that cannot be used, by the reason."""
    lost: Counter[GpuLoss] = Counter()
    for kind, number in gpus.items():
        if number and (reason := kind.gpu_loss) is not None:
            lost[reason] += number
    return lost
