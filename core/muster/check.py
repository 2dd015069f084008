"""What a check is: the contract between muster and every plugin that measures something."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from muster.errors import Refused
from muster.explain import explain
from muster.model import (
    MOST_NAMES,
    Code,
    Data,
    Device,
    Finding,
    Measurement,
    Name,
    Seconds,
    Text,
)
from muster.params_schema import FlatSchema
from muster.references import Reference

PLUGINS_LOADED = "plugins"
"""The check name under which every agent reports how its plugins were loaded."""


class Params(BaseModel):
    """Base of every check's parameters: frozen, and an unknown parameter is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Scope(StrEnum):
    """NODE: measured by one process on one node. GROUP: by one process per device on every node of a group."""

    NODE = "NODE"
    GROUP = "GROUP"


class Needs(StrEnum):
    """What must be idle before a run may start; the run holds it until it ends or is preempted."""

    NOTHING = "NOTHING"
    IDLE_DEVICE = "IDLE_DEVICE"
    IDLE_NODE = "IDLE_NODE"


class Worse(StrEnum):
    """In which direction a metric gets worse."""

    LOWER = "LOWER"
    HIGHER = "HIGHER"


class Skip(Exception):
    """Raised by `measure` when there is nothing to measure here; the run is SKIPPED with this reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """Where and as whom a rank joins its group.

    The environment holds the same values under torch's standard names. `listen_fd` is set on rank 0 only: a socket
    that listens on `master_port` already, to be handed to the store so that no other process can take the port.
    """

    rank: int
    local_rank: int
    world_size: int
    master_addr: str
    master_port: int
    listen_fd: int | None


class Context(Protocol):
    """What a running check may ask of its surroundings."""

    @property
    def node(self) -> str:
        """The node's name."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of this node, in index order; empty on a machine without any."""

    @property
    def expected_gpus(self) -> int | None:
        """How many devices the operator says that there are; None when not said."""

    @property
    def scratch(self) -> Path:
        """An empty directory that is removed when the run has ended."""

    @property
    def timeout_s(self) -> float:
        """How long the whole run may take, in seconds."""

    def progress(self, text: str) -> None:
        """Says in a few words how far the run has come."""

    def rendezvous(self) -> Rendezvous:
        """Says that this rank is ready and blocks until every rank of the group is.

        To be called once by checks of scope GROUP, after slow imports and before the process group is initialised.
        """


P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[P]):
    """The definition of a check.

    `measure` runs in a child process and may import torch or pynvml, block, crash or hang; it returns numbers only.
    `judge` is pure, so that it can be repeated when references change: it gets the measurement and, by metric name,
    the reference that applies to it. `cadence_s` is the default interval in seconds between background runs, None
    for a check that runs on demand only; a background check needs a default for every parameter. `quick` are the
    parameters that `--quick` sets. A `resident` check is cheap and frequent and shares one long-lived process with
    others of its kind. `objective` names the metric, more is better, by which a sweep compares groups with one
    another, and `by_rail` the one with a number for each rail of a group, by local rank: a check that has it takes a
    parameter `by_rail`, true or false, which says whether the rails are measured apart.

    `judged` names the metrics that are meant to be held against references; a run says so where one has none.
    `compared` names those that the coordinator compares over the fleet and over time, with what is worse. `watch`,
    of a resident check only, blocks until there is something to measure at once, such as an event of the driver.
    `clear`, of a check that reports what has happened, forgets all of it on this node: an operator has repaired it and
    calls `muster check clear`.

    The rest is for people: `finds` says by finding code what the finding means, `cost_s` what a run with default
    parameters takes on a usual GPU node in seconds, `precedent` which tool or document checks the same.
    """

    name: str
    summary: str
    scope: Scope
    params: type[P]
    measure: Callable[[P, Context], Measurement]
    judge: Callable[[Measurement, Mapping[str, Reference]], list[Finding]]
    timeout_s: float
    cadence_s: float | None = None
    needs: Needs = Needs.NOTHING
    resident: bool = False
    objective: str | None = None
    by_rail: str | None = None
    quick: Mapping[str, Any] = field(default_factory=dict)
    judged: tuple[str, ...] = ()
    compared: Mapping[str, Worse] = field(default_factory=dict)
    watch: Callable[[], None] | None = None
    clear: Callable[[], None] | None = None
    finds: Mapping[str, str] = field(default_factory=dict)
    cost_s: float | None = None
    precedent: str = ""

    def __post_init__(self) -> None:
        _NAME.validate_python(self.name)
        if self.cadence_s is not None:
            valid_params(self, {})  # nobody is there to give a background run its parameters


AnyCheck = Check[Any]

_NAME = TypeAdapter[str](Name)


def valid_params(check: AnyCheck, values: Mapping[str, Any]) -> Params:
    """The parameters of a run of `check`, defaults filled in; Refused says what is wrong and what would be right."""
    try:
        params: Params = check.params.model_validate(dict(values))
    except ValidationError as error:
        raise Refused("\n".join(explain(check.params, error, what=f"parameter of {check.name}"))) from None
    return params


class CheckInfo(Data):
    """A check as others see it: what the agent announces and `muster check show` prints.

    `params` is the JSON schema of its parameters in flat form, `{}` when the flat form cannot express it.
    """

    name: Name
    summary: Text
    scope: Scope
    needs: Needs
    cadence_s: Seconds | None
    timeout_s: Seconds
    objective: Code | None
    params: FlatSchema
    by_rail: Code | None = None
    compared: dict[Code, Worse] = Field({}, max_length=MOST_NAMES)
    judged: tuple[Code, ...] = Field((), max_length=MOST_NAMES)
    cost_s: Seconds | None = None


def describe(check: AnyCheck) -> CheckInfo:
    """The announcement of a check."""
    return CheckInfo(
        name=check.name,
        summary=check.summary,
        scope=check.scope,
        needs=check.needs,
        cadence_s=check.cadence_s,
        timeout_s=check.timeout_s,
        objective=check.objective,
        params=check.params.model_json_schema(),
        by_rail=check.by_rail,
        compared=dict(check.compared),
        judged=check.judged,
        cost_s=check.cost_s,
    )


def judged_metrics(checks: Mapping[str, AnyCheck]) -> dict[str, tuple[str, ...]]:
    """By check, the metrics that it has judged by references."""
    return {name: check.judged for name, check in checks.items()}


class Idleness(StrEnum):
    """What an idle probe says. UNKNOWN counts as BUSY."""

    IDLE = "IDLE"
    BUSY = "BUSY"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleProbe:
    """Tells whether somebody else is at work on this node.

    `probe` gets the process ids of muster's own runs, which do not count as work. It is called in a child process, anew
    before each run that needs idleness and about twice a second while one holds the node, and must answer within a
    second. What it raises is UNKNOWN, for the reason that the error's text gives. The probes of a node are asked side
    by side, each in a thread of its own and always the same while its process lives.

    A probe whose question costs others something has an `interval_s`: while a run holds the node, it is asked again
    only so many seconds after it has said IDLE.
    """

    name: str
    probe: Callable[[frozenset[int]], Idleness]
    interval_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Keeps a scheduler's new work off this node while muster tests it.

    `reserve` gets a reason for people, puts a mark where the scheduler heeds it, and returns when no new work can come.
    When that cannot be had it raises, and the error's text says why. `release` takes the mark off. Work that is here
    already is for the idle probes to notice, which are asked afterwards.

    Both are called in the child process that asks the idle probes, and all reservations of a node together have five
    seconds to answer, or the run does not get the node. What must hold:

    - The mark can be told from anybody else's. Another's is respected: `reserve` raises and says whose it is, `release`
      leaves it alone.
    - Both can be repeated at any time, also by an agent that starts after one that was killed: a mark of ours that is
      there is taken over, with the new reason, and nothing to release is no error.
    """

    name: str
    reserve: Callable[[str], None]
    release: Callable[[], None]
