"""What the coordinator stores and serves of a sweep: its rounds, groups and members, and whom it convicts."""

from enum import StrEnum

from muster.model import Data, Finding, Instant, Json, Metric, Verdict


class GroupState(StrEnum):
    """The phases of a group's life."""

    FORMING = "FORMING"
    ELECTED = "ELECTED"
    READY = "READY"
    RUNNING = "RUNNING"
    ENDED = "ENDED"


class Ending(StrEnum):
    """How a group ended: FINISHED when every member reported, NOT_FORMED when it never ran."""

    FINISHED = "FINISHED"
    NOT_FORMED = "NOT_FORMED"
    TIMED_OUT = "TIMED_OUT"
    ABORTED = "ABORTED"


class Blame(Data):
    """A member that kept a group from forming or finishing, and how: a word for programs, a sentence for people."""

    node: str
    reason: str
    detail: str = ""


class MemberRecord(Data):
    """A member's place in its group and what it reported."""

    node: str
    address: str | None = None
    first_rank: int | None = None
    ranks: int | None = None
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()


class GroupRecord(Data):
    """One group: `members` in rank order, what each measured, who is to blame, and why it was formed so."""

    id: str
    members: tuple[str, ...]
    state: GroupState
    ending: Ending | None = None
    verdict: Verdict | None = None
    objective: float | None = None
    measurements: dict[str, dict[str, Metric]] = {}
    places: tuple[MemberRecord, ...] = ()
    blamed: tuple[Blame, ...] = ()
    reasons: tuple[str, ...] = ()
    started_at: Instant
    ended_at: Instant | None = None


class RoundRecord(Data):
    """Disjoint groups that run side by side."""

    number: int
    groups: tuple[GroupRecord, ...]


class SweepState(StrEnum):
    """The states of a sweep as the API names them."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"
    ABORTED = "aborted"


class FailedNode(Data):
    """A node that a sweep convicts. `confidence` is between 0 and 1, `code` is `<check>.slow` or `<check>.failed`.

    `part` says what of it is at fault: node, node_link, or rail, and then `rails` says which.
    """

    node: str
    part: str = "node"
    rails: tuple[int, ...] = ()
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


class SweepRecord(Data):
    """A sweep with everything that came of it. `notes` say why a node is inconclusive and what else was seen."""

    id: str
    state: SweepState
    strategy: str
    check: str
    params: Json = {}
    nodes: tuple[str, ...]
    verdict: Verdict | None = None
    rounds: tuple[RoundRecord, ...] = ()
    suspects: tuple[str, ...] = ()
    failed_nodes: tuple[FailedNode, ...] = ()
    failed_links: tuple[FailedLink, ...] = ()
    failed_fabric: tuple[FailedFabric, ...] = ()
    cleared_nodes: tuple[str, ...] = ()
    inconclusive: tuple[str, ...] = ()
    created_at: Instant
    ended_at: Instant | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()
