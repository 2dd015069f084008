"""Runs as data: the order to run something, what the runner reports meanwhile, and how a child process ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.check import AnyCheck, Params
from muster.model import Data, Device, Json, RankResult, Run
from muster.references import Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlace:
    """The place of one rank in its group: its numbers, the address of rank 0 and the group's secret."""

    rank: int
    local_rank: int
    local_world_size: int
    world_size: int
    master_addr: str
    master_port: int
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run to start, with valid `params`. `places` has one place for each rank on this node, or none."""

    run: str
    check: AnyCheck
    params: Params
    timeout_s: float
    cause: str | None = None
    group: str | None = None
    places: tuple[RankPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class RanksReady:
    """Every rank of the run on this node waits at the rendezvous."""

    run: str


@dataclass(frozen=True, slots=True)
class RunProgressed:
    """A run reports its progress."""

    run: str
    text: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run has ended and no process of it is left. `run` sums up the results in `ranks`."""

    run: Run
    ranks: tuple[RankResult, ...]


RunnerEvent = RanksReady | RunProgressed | RunEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The environment of every run on this node. `memory_limit_bytes` is for all ranks of a run together."""

    node: str
    devices: tuple[Device, ...]
    expected_gpus: int | None
    references: tuple[Reference, ...]
    memory_limit_bytes: int | None
    machine_type: str | None = None


class Assignment(Data):
    """One rank's work, as JSON for its child: the check by name and everything about its surroundings.

    `place` is None for checks of scope NODE. The child makes the directory `scratch`, and the daemon removes it.
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
    machine_type: str | None = None
    place: RankPlace | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExit:
    """How a child ended. `status` is None when it was never started, cannot be killed, or the launcher is lost.

    `left` has the names, by process id, of processes that the child left behind and that were then killed. `stuck` has
    the ids of processes that SIGKILL did not end. `error` says why a child could not be started or watched.
    """

    status: int | None = None
    max_rss_bytes: int = 0
    left: Mapping[int, str] = field(default_factory=dict)
    stuck: tuple[int, ...] = ()
    error: str = ""
