"""What the coordinator stores and serves of a sweep: its rounds, groups and members, and whom it convicts."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from muster.model import Data, Finding, Instant, Json, Metric, Name, PlainJson, TotalSeconds, Verdict


class GroupState(StrEnum):
    """The phases of a group's life."""

    FORMING = "FORMING"
    ELECTED = "ELECTED"
    READY = "READY"
    RUNNING = "RUNNING"
    ENDED = "ENDED"


class Ending(StrEnum):
    """How a group ended.

    FINISHED when every member reported, NOT_FORMED when it never ran, INTERRUPTED when its coordinator ended before it.
    """

    FINISHED = "FINISHED"
    NOT_FORMED = "NOT_FORMED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"
    INTERRUPTED = "INTERRUPTED"


class Blame(Data):
    """A member that kept a group from forming or finishing, and how: a word for programs, a sentence for people."""

    node: str
    reason: str
    detail: str = ""


class MemberRecord(Data):
    """A member's place in its group and what it reported; `measured` holds the metrics of each of its ranks in turn.

    By how many seconds its clock is ahead of the coordinator's is there when it is wrong, negative when it is behind.
    """

    node: str
    address: str | None = None
    first_rank: int | None = None
    ranks: int | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()
    measured: tuple[dict[str, Metric], ...] = ()
    clock_ahead_s: float | None = None


class GroupRecord(Data):
    """One group: `members` in rank order, what each measured, who is to blame, and why it was formed so.

    `by_rail` says that its ranks exchanged on one rail after the other. What the group is compared by is `objective`,
    and `slow` says why it counts as slow. One that could not be formed may have been `formed_again` under another id.
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
        """Whether it had its say: neither formed again under another id nor interrupted."""
        return not self.formed_again and self.ending is not Ending.INTERRUPTED


class RoundRecord(Data):
    """Disjoint groups, and what they changed about the judgement when all had ended; some may wait for their nodes."""

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

    `part` says what of it is at fault: node, node_link, or rail, and then `rails` says which. `direction` is send or
    receive where only one of them is slow.
    """

    node: str
    part: str = "node"
    rails: tuple[int, ...] = ()
    direction: str | None = None
    code: str = ""
    confidence: float
    reasons: tuple[str, ...]


class FailedLink(Data):
    """A link between two nodes that a sweep convicts while both nodes are cleared."""

    between: tuple[str, str]
    code: str = ""
    confidence: float
    reasons: tuple[str, ...]


class FailedFabric(Data):
    """A part of the fabric that a sweep convicts: the switch of one leaf, or what lies between two leaves."""

    leaves: tuple[str, ...]
    code: str = ""
    confidence: float
    reasons: tuple[str, ...]


class SweepRequest(Data):
    """What somebody wants a sweep to be.

    `strategy` is adaptive unless it is said, and single for a check of scope NODE; `pairing` is for strategy pairs.
    Every node takes part in at least so many `passes`. Nodes are named in `nodes`, or chosen by `select`, for example
    `rack=r1,r2`; without both, all that are there take part. At most `max_parallel` of them are in groups at once: a
    number of nodes, or a share such as `25%`. The sweep ends after `max_rounds`, or when one more round would take it
    beyond `max_node_s` node-seconds. Of sweeps that wait for the same nodes, the one with the higher `priority` goes
    first.
    """

    check: Name
    params: PlainJson = {}
    strategy: str | None = None
    pairing: str | None = None
    passes: int = Field(1, ge=1, le=64)
    nodes: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    select: Annotated[str, Field(max_length=10_000)] | None = None
    max_parallel: str | None = None
    max_rounds: int | None = Field(None, ge=1)
    max_node_s: float | None = Field(None, gt=0, allow_inf_nan=False)
    priority: int = Field(0, ge=-100, le=100)


class SweepRecord(Data):
    """A sweep with everything that came of it. `notes` say why a node is inconclusive and what else was seen.

    What groups are compared by is `metric`. `asked` is the request that it answers, `origin` who made it: `request`,
    `schedule <name>` or `new nodes`. Nodes that were not to be had are `absent`, each with the reason. Lists and events
    leave the groups out of its `rounds`.
    """

    id: str
    state: SweepState
    strategy: str
    check: str
    params: Json = {}
    metric: str | None = None
    nodes: tuple[str, ...]
    asked: SweepRequest | None = None
    origin: str = "request"
    verdict: Verdict | None = None
    rounds: tuple[RoundRecord, ...] = ()
    suspects: tuple[str, ...] = ()
    failed_nodes: tuple[FailedNode, ...] = ()
    failed_links: tuple[FailedLink, ...] = ()
    failed_fabric: tuple[FailedFabric, ...] = ()
    cleared_nodes: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    absent: dict[str, str] = {}
    spent_node_s: TotalSeconds = 0.0
    created_at: Instant
    ended_at: Instant | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()
