"""The plan of a sweep: its task, nodes and limits, from a request that was found valid."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster_coordinator.localize.evidence.prior import NO_PRIOR, SweepPrior
from muster_coordinator.localize.strategies.pairs import Pairing
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.probes import CheckAbilities, Site
from muster_coordinator.model.sweep_records import BY_REQUEST, SweepRequest
from muster_coordinator.sweeps.formation import GroupTask

NO_ABILITIES = CheckAbilities(alone=False, by_rail=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLimits:
    """The limits of a sweep: nodes in groups at once, rounds, and node-seconds in total. None is no limit."""

    nodes: int | None = None
    rounds: int | None = None
    node_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """The plan of a sweep: `nodes` in topology order, with their known `sites`.

    `absent` are selected nodes that cannot take part, each with the reason. `most_ranks` is the highest number of ranks
    of each node; a node without an entry has one. `abilities` are those of the check on these nodes. `asked` is the
    request, `origin` says what made it, and `requested_by` which person. `prior` is what earlier sweeps know.
    """

    id: str
    asked: SweepRequest
    origin: str = BY_REQUEST
    requested_by: str | None = None
    strategy: Strategy
    pairing: Pairing = Pairing.RANDOM
    passes: int = 1
    task: GroupTask
    nodes: tuple[str, ...]
    sites: tuple[Site, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    most_ranks: Mapping[str, int] = field(default_factory=dict)
    abilities: CheckAbilities = NO_ABILITIES
    limits: SweepLimits = field(default_factory=SweepLimits)
    priority: int = 0
    prior: SweepPrior = NO_PRIOR
