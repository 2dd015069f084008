"""What is to be run, where, and what becomes known of it while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.check import AnyCheck, Params
from muster.model import Data, Device, Json, RankResult, Run
from muster.references import Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one rank of a group stands."""

    rank: int
    local_rank: int
    local_world_size: int
    world_size: int
    master_addr: str
    master_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be run. `params` are valid for the check; `places` has one place per rank on this node, or none."""

    run: str
    check: AnyCheck
    params: Params
    timeout_s: float
    cause: str | None = None
    group: str | None = None
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class RanksReady:
    """Every rank of the run on this node waits at the rendezvous."""

    run: str


@dataclass(frozen=True, slots=True)
class RunProgressed:
    """A run says how far it has come."""

    run: str
    text: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over and nothing of it is left; `ranks` are the results of which `run` is the sum."""

    run: Run
    ranks: tuple[RankResult, ...]


RunnerEvent = RanksReady | RunProgressed | RunEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every run on this node is told and judged by. `memory_limit_bytes` limits all ranks of a run together."""

    node: str
    devices: tuple[Device, ...]
    expected_gpus: int | None
    references: tuple[Reference, ...]
    memory_limit_bytes: int | None


class Assignment(Data):
    """One rank's work: the check by name, and everything about its surroundings that it cannot know by itself.

    `place` is None for checks of scope NODE. `scratch` is a directory that the child makes and the daemon removes.
    """

    run: str
    check: str
    params: Json
    timeout_s: float
    node: str
    devices: tuple[Device, ...]
    expected_gpus: int | None
    references: tuple[Reference, ...]
    scratch: Path
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a child ended. `status` is None when it was never started, cannot be killed, or the launcher is lost.

    `left` are the names, by process id, of what it left behind and was then killed; `stuck` the process ids of what
    is still there although it was killed; `error` says why a child could not be started or watched.
    """

    status: int | None = None
    max_rss_bytes: int = 0
    left: Mapping[int, str] = field(default_factory=dict)
    stuck: tuple[int, ...] = ()
    error: str = ""
