"""The contract between muster and every plugin that measures something: the definition of a check."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from muster.errors import Refused
from muster.explain import explain
from muster.model import MOST_NAMES, Code, Data, Device, Finding, Measurement, Name, Seconds
from muster.params_schema import FlatSchema
from muster.references import Origin, Reference
from muster.texts import Text

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
    """Where a rank joins its group, and with which number.

    The environment holds the same values under torch's standard names. `listen_fd` is set on rank 0 only: a socket
    that already listens on `master_port`. Pass it to the store, so that no other process can take the port.

    `secret` is known to the ranks of the group only; None if an older agent takes part, or no coordinator formed it.
    """

    rank: int
    local_rank: int
    world_size: int
    master_addr: str
    master_port: int
    listen_fd: int | None
    secret: str | None = field(default=None, repr=False)


class Context(Protocol):
    """The services that muster offers to a running check."""

    @property
    def node(self) -> str:
        """The node's name."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of this node in index order; empty without devices."""

    @property
    def expected_gpus(self) -> int | None:
        """How many devices the operator expects; None if not set."""

    @property
    def machine_type(self) -> str | None:
        """The machine type of this node; None if unknown. Every measurement has it among its facts."""

    @property
    def scratch(self) -> Path:
        """An empty directory that is removed after the run."""

    @property
    def timeout_s(self) -> float:
        """How long the whole run may take, in seconds."""

    def progress(self, text: str) -> None:
        """Reports the progress of the run in a few words."""

    def rendezvous(self) -> Rendezvous:
        """Reports that this rank is ready and blocks until every rank of the group is.

        A check of scope GROUP calls it once, after slow imports and before it initialises the process group.
        """


P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Generic[P]):
    """The definition of a check.

    - `measure` runs in a child process. It may import torch or pynvml, block, crash or hang, and returns numbers only.
    - `judge` is pure, so it can be repeated when references change. It gets the measurement and the reference of each
      metric by name.
    - `cadence_s` is the default interval between background runs in seconds; None for a check that runs on demand only.
      A background check needs a default for every parameter.
    - `quick` has the parameters that `--quick` sets.
    - A `resident` check is cheap and frequent, and shares one long-lived process with other resident checks.
    - `watch`, of a resident check only, blocks until there is something to measure at once, such as a driver event.
    - `objective` names the metric by which a sweep compares groups; more is better.
    - `by_rail` names the metric with one number for each rail of a group, by local rank. Such a check has a parameter
      `by_rail`, true or false, for measuring the rails one by one.
    - `judged` names the metrics to judge against references. A run reports those that have no reference.
    - `references` are the check's own. `judge` gets them like those that come with muster; an operator's win over them.
    - `compared` names the metrics that the coordinator compares over the fleet and over time, and which way is worse.
    - `clear`, of a check that reports past events, forgets them on this node. `muster check clear` calls it after a
      repair.

    The rest is for people: `finds` has the meaning of each finding code, `cost_s` the seconds of a run with default
    parameters on a usual GPU node, and `precedent` the tools or documents that check the same.
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
    references: tuple[Reference, ...] = ()
    compared: Mapping[str, Worse] = field(default_factory=dict)
    watch: Callable[[], None] | None = None
    clear: Callable[[], None] | None = None
    finds: Mapping[str, str] = field(default_factory=dict)
    cost_s: float | None = None
    precedent: str = ""

    def __post_init__(self) -> None:
        _NAME.validate_python(self.name)
        if strange := [row.check for row in self.references if row.check != self.name]:
            raise ValueError(f"check {self.name}: references must be for {self.name}, not for {strange[0]}")
        if self.cadence_s is not None:
            valid_params(self, {})  # a background run has only defaults


AnyCheck = Check[Any]

_NAME = TypeAdapter[str](Name)


def valid_params(check: AnyCheck, values: Mapping[str, Any]) -> Params:
    """The parameters of a run of `check` with defaults filled in. Refused says what is wrong and what is valid."""
    try:
        params: Params = check.params.model_validate(dict(values))
    except ValidationError as error:
        raise Refused("\n".join(explain(check.params, error, what=f"parameter of {check.name}"))) from None
    return params


class CheckInfo(Data):
    """A check as other parts see it: the agent announces it, and `muster check show` prints it.

    `params` is the JSON schema of its parameters in flat form; `{}` if the flat form cannot express it.
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


def own_references(check: AnyCheck) -> tuple[Reference, ...]:
    """The references that come with the check, whatever origin its author wrote."""
    return tuple(row.model_copy(update={"origin": Origin.SHIPPED}) for row in check.references)


def judged_metrics(checks: Mapping[str, AnyCheck]) -> dict[str, tuple[str, ...]]:
    """The metrics that each check judges against references."""
    return {name: check.judged for name, check in checks.items()}


class Idleness(StrEnum):
    """The answer of an idle probe. UNKNOWN counts as BUSY."""

    IDLE = "IDLE"
    BUSY = "BUSY"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleProbe:
    """Tells whether a job or user other than muster works on this node.

    `probe` gets the process ids of muster's own runs, which do not count as work. muster calls it in a child process,
    before each run that needs idleness and about twice a second while one holds the node. It must answer within a
    second. An exception means UNKNOWN, with the error's text as the reason. The probes of a node run side by side, each
    always in the same thread.

    `interval_s` is for a probe that loads another system. While a run has the node, a probe that has said IDLE is
    asked again only after these seconds.
    """

    name: str
    probe: Callable[[frozenset[int]], Idleness]
    interval_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartureProbe:
    """Tells whether this node leaves or restarts as planned, such as by a notice of its cloud.

    `probe` returns why, in a few words about `it`, as in `AWS stops its spot machine`; None while it stays. muster
    calls it every `interval_s` seconds in a thread of the agent's resident child. If it raises, it is not called again,
    so it must return its last answer while its source does not answer.
    """

    name: str
    probe: Callable[[], str | None]
    interval_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Keeps a scheduler's new work off this node while muster tests it.

    `reserve` gets a reason for people, sets a mark that the scheduler respects, and returns when no new work can
    arrive. If that is impossible, it raises an error that says why. `release` removes the mark. Afterwards muster asks
    the idle probes about work that is already there.

    Both are called in the child process that asks the idle probes. All reservations of a node together have five
    seconds, or the run does not get the node. The rules:

    - The mark shows that it is muster's. Marks of others are respected: `reserve` raises and names the owner, `release`
      leaves them alone.
    - Both can be repeated at any time, also by the next agent after a kill. `reserve` takes over an existing mark of
      ours with the new reason; `release` without a mark is no error.
    """

    name: str
    reserve: Callable[[str], None]
    release: Callable[[], None]
