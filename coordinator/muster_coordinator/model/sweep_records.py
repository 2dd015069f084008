"""Records of sweeps, as stored and served: rounds, groups, members, and what the sweep convicts."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from muster.model import Data, Finding, Instant, Json, Metric, Name, PlainJson, TotalSeconds, Verdict
from muster.nccl_tests_table import SizeResults

BY_REQUEST = "request"
"""The origin of a sweep that was requested; of others, what has begun them."""


class GroupState(StrEnum):
    """The states of a group; see `sweeps/group.py`."""

    FORMING = "FORMING"
    ELECTED = "ELECTED"
    READY = "READY"
    RUNNING = "RUNNING"
    ENDED = "ENDED"


class Ending(StrEnum):
    """How a group ended.

    FINISHED: every member reported. NOT_FORMED: it never ran. INTERRUPTED: the coordinator ended before the group.
    """

    FINISHED = "FINISHED"
    NOT_FORMED = "NOT_FORMED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"
    INTERRUPTED = "INTERRUPTED"


class Blame(Data):
    """A member that kept a group from forming or finishing: `reason` for programs, `detail` for people."""

    node: str
    reason: str
    detail: str = ""


class MemberRecord(Data):
    """A member of a group: its ranks, and what it reported.

    `measured` has the metrics of each of its ranks in order, and `by_size` the results of a collective by message size,
    as its first rank saw them. `clock_ahead_s` is set if its clock is wrong: seconds ahead of the coordinator's,
    negative if it is behind.
    """

    node: str
    address: str | None = None
    first_rank: int | None = None
    ranks: int | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    measured: tuple[dict[str, Metric], ...] = ()
    by_size: SizeResults = ()
    clock_ahead_s: float | None = None


class GroupRecord(Data):
    """One group: `members` in rank order, what each reported (`places`), who is blamed, and why it was formed.

    Groups are compared by `objective`, and `slow` says why the group counts as slow. With `by_rail`, its ranks
    exchanged on one rail after the other. `formed_again` says that another group stands in for this one.
    """

    id: str
    members: tuple[str, ...]
    state: GroupState
    ending: Ending | None = None
    verdict: Verdict | None = None
    objective: float | None = None
    slow: str | None = None
    by_rail: bool = False
    formed_again: bool = False
    places: tuple[MemberRecord, ...] = ()
    blamed: tuple[Blame, ...] = ()
    reasons: tuple[str, ...] = ()
    started_at: Instant
    ended_at: Instant | None = None

    @property
    def is_evidence(self) -> bool:
        """Whether the group counts as evidence: it was neither formed again nor interrupted."""
        return not self.formed_again and self.ending is not Ending.INTERRUPTED


class RoundRecord(Data):
    """Disjoint groups, and what they changed about the diagnosis. `waiting` groups still wait for their nodes."""

    number: int
    groups: tuple[GroupRecord, ...] = ()
    waiting: int = 0
    learned: tuple[str, ...] = ()


class SweepState(StrEnum):
    """The states of a sweep as the API names them."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"
    ABORTED = "aborted"


class FailedNode(Data):
    """A node that a sweep convicts. `confidence` is between 0 and 1, `code` is `<check>.slow` or `<check>.failed`.

    `part` is the faulty part: node, node_link, or rail with the indices in `rails`. `direction` is send or receive if
    only one of them is slow. `intermittent` says that it also had good runs.
    """

    node: str
    part: str = "node"
    rails: tuple[int, ...] = ()
    direction: str | None = None
    intermittent: bool = False
    code: str = ""
    confidence: float
    reasons: tuple[str, ...]


class FailedLink(Data):
    """A link between two nodes that a sweep convicts. Both nodes are cleared."""

    between: tuple[str, str]
    code: str = ""
    confidence: float
    reasons: tuple[str, ...]


class FailedFabric(Data):
    """A part of the fabric that a sweep convicts: the switch of one leaf, or the path between two leaves."""

    leaves: tuple[str, ...]
    code: str = ""
    confidence: float
    reasons: tuple[str, ...]


class Suspicion(Data):
    """A node that was bad for no known reason in this or an earlier sweep, and is not convicted.

    `bad` has the other members of each of its bad runs that nothing explains, none for a run alone. `good` is the
    number of its good runs, and `good_alone` of those alone.
    """

    node: str
    bad: tuple[tuple[str, ...], ...] = ()
    good: int = 0
    good_alone: int = 0


def _whole(value: Any) -> Any:
    """2 from 2.0, which JSON does not tell apart; Lua, for example, writes every number so. Others pass through."""
    is_whole = isinstance(value, float) and abs(value) < 1 << 53 and value.is_integer()
    return int(value) if is_whole else value


WholeNumber = Annotated[int, BeforeValidator(_whole)]


class SweepRequest(Data):
    """A request for a sweep.

    `strategy` defaults to adaptive, and to single for a check of scope NODE. `pairing` is for strategy pairs. Every
    node takes part in at least `passes` runs. `nodes` names the nodes, or `select` chooses them, for example
    `rack=r1,r2`; without both, all nodes that are online and have the check take part. At most `max_parallel` nodes are
    in groups at once: a number, or a share such as `25%`. The sweep ends after `max_rounds`, or when another round
    would exceed `max_node_s` node-seconds. If sweeps wait for the same nodes, the higher `priority` goes first.
    """

    check: Name
    params: PlainJson = {}
    strategy: str | None = None
    pairing: str | None = None
    passes: WholeNumber = Field(1, ge=1, le=64)
    nodes: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    select: Annotated[str, Field(max_length=10_000)] | None = None
    max_parallel: str | None = None
    max_rounds: WholeNumber | None = Field(None, ge=1)
    max_node_s: float | None = Field(None, gt=0, allow_inf_nan=False)
    priority: WholeNumber = Field(0, ge=-100, le=100)


class SweepRecord(Data):
    """A sweep and its results. `notes` say why nodes are inconclusive and what else was seen.

    Groups are compared by `metric`. `asked` is the request, and `origin` says what made it: `request`,
    `schedule <name>` or `new nodes`. `requested_by` is who requested it, if known. `absent` are
    nodes that could not take part, each with the reason. `hardware` has the nodes of each kind of hardware that were
    compared only with each other; it is empty if all nodes were. The next sweep goes on from the `suspicions`. A node
    that loses a smaller share of its speed than `smallest_loss` would not have been found; it is 1 if nothing was
    compared, and null if nothing was measured. In lists and events, `rounds` have no groups.
    """

    id: str
    state: SweepState
    strategy: str
    check: str
    params: Json = {}
    metric: str | None = None
    nodes: tuple[str, ...]
    asked: SweepRequest | None = None
    origin: str = BY_REQUEST
    requested_by: str | None = None
    verdict: Verdict | None = None
    rounds: tuple[RoundRecord, ...] = ()
    suspects: tuple[str, ...] = ()
    failed_nodes: tuple[FailedNode, ...] = ()
    failed_links: tuple[FailedLink, ...] = ()
    failed_fabric: tuple[FailedFabric, ...] = ()
    cleared_nodes: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()
    absent: dict[str, str] = {}
    hardware: dict[str, tuple[str, ...]] = {}
    spent_node_s: TotalSeconds = 0.0
    created_at: Instant
    ended_at: Instant | None = None
    reason: str | None = None
    smallest_loss: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def requester(self) -> str:
        """What has requested it, and who."""
        return self.origin if self.requested_by is None else f"{self.origin} by {self.requested_by}"

    @property
    def least_runs(self) -> int:
        """The minimum number of runs of each cleared node. An aborted sweep may have run some nodes only once."""
        return 1 if self.asked is None or self.state is SweepState.ABORTED else self.asked.passes

    @property
    def tested_nodes(self) -> tuple[str, ...]:
        """The nodes that it has cleared or convicted."""
        return *self.cleared_nodes, *(failed.node for failed in self.failed_nodes)
