"""Every message by topic. Nodes send replies and messages in past tense, the coordinator sends imperatives."""

import math
import uuid
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from muster.check import CheckInfo
from muster.model import (
    LARGEST_INTEGER,
    LARGEST_NUMBER,
    MOST_DEVICES,
    MOST_NAMES,
    MOST_RANKS,
    MOST_WAITING,
    Code,
    Data,
    Instant,
    Inventory,
    Name,
    PlainJson,
    RankResult,
    Run,
    Seconds,
    Sequence,
)
from muster.references import Reference
from muster.texts import Label, Text
from muster.wire.meeting import GroupSecret, Host, PortNumber

SCHEMA: Literal[1] = 1

MOST_RUNS = 200
"""Maximum number of runs in one report. Agents send 50."""

MOST_REFERENCES = 10_000
"""Maximum number of references of one fleet."""


def new_id() -> str:
    """A unique id for a message, run, group or sweep."""
    return uuid.uuid4().hex


def short_id() -> str:
    """An id for a message that only stories and logs refer to, unique among those of its node in a month or so."""
    return uuid.uuid4().hex[:8]


class Message(Data):
    """The fields of every message. `sent_at` is the sender's clock."""

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
    id: Name = Field(default_factory=new_id)
    sent_at: Instant


class NodeMessage(Message):
    """A message from a node; `node` must be the one in the topic."""

    node: Name


# node/<node>/presence, retained


class Presence(NodeMessage):
    """An agent is online, repeated as a heartbeat; or it is offline.

    With `online` false and `goodbye` true, the agent has stopped in order. With `goodbye` false it is the last will,
    which says only that the broker has lost the connection. An older agent never says goodbye, so both its messages
    count as a will. That is the safe way. A goodbye that is taken for a will makes a node lost a few seconds late; a
    will that is taken for a goodbye makes a whole fleet lost when its broker restarts.

    `process` is an id of the agent's process, which changes with each start; `machine` is one of the machine. An older
    agent sends neither.

    `outbox` is the number of runs that wait to be stored; `dropped` counts the runs of each check that were dropped.
    """

    online: bool
    goodbye: bool = False
    process: Label = ""
    machine: Label = ""
    version: Label = ""
    outbox: int = Field(0, ge=0, le=MOST_WAITING)
    dropped: dict[Name, Sequence] = Field({}, max_length=MOST_NAMES)


# node/<node>/inventory, retained


class PluginInfo(Data):
    """One plugin as the loader saw it, with the names of its checks."""

    name: Label
    distribution: Label | None
    version: Label | None
    status: Literal["loaded", "disabled", "failed"]
    error: Text | None = None
    checks: tuple[Label, ...] = Field((), max_length=MOST_NAMES)


class InventoryReport(NodeMessage):
    """The hardware and software of a node, and the checks that it can run. `machine` is as in `Presence`."""

    inventory: Inventory
    machine: Label = ""
    checks: tuple[CheckInfo, ...] = Field(max_length=MOST_NAMES)
    plugins: tuple[PluginInfo, ...] = Field((), max_length=MOST_NAMES)


# node/<node>/report


_Measured = Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)] | None


def _plain(numbers: tuple[int | float, ...] | None) -> tuple[int | float, ...] | None:
    for number in numbers or ():
        # The integers first: a large one has no finite or infinite float.
        if (isinstance(number, int) and abs(number) > LARGEST_INTEGER) or not math.isfinite(number):
            raise ValueError("must be finite numbers of at most 64 bits")
    return numbers


class Repeat(Data):
    """A run that differs from run number `like` of the same stream only in these numbers (see `wire.repeats`).

    `age_ms` is how long before the report was sent it began; its id follows from its number (`wire.scheduled_runs`).
    `metrics` are its values one after the other, `facts` the numbers in its facts if they differ, too.
    """

    seq: Sequence
    like: Sequence
    age_ms: int = Field(gt=-(1 << 53), lt=1 << 53)
    duration_s: Seconds
    metrics: list[_Measured] = []
    facts: Annotated[tuple[int | float, ...] | None, AfterValidator(_plain)] = None


class Report(NodeMessage):
    """Runs in the order of their sequence numbers, some of them perhaps as `repeats` of earlier ones.

    `stream` names the outbox that numbers them; a new outbox is a new stream and starts at 1 again. `after` is the
    number of the last run before this report that the node still keeps, or 0. It tells the coordinator whether missing
    numbers are a gap (a report was lost) or were dropped by the node. `through` is the number of the last run, so that
    the coordinator need not decode a report that it has already; agents before 0.2 send none. An `urgent` report has a
    new failure, or comes before one that has. An overloaded coordinator takes it before others.
    """

    stream: Name
    after: Sequence
    through: Sequence | None = None
    urgent: bool = False
    runs: tuple[Run, ...] = Field((), max_length=MOST_RUNS)
    repeats: tuple[Repeat, ...] = Field((), max_length=MOST_RUNS)

    @property
    def in_order(self) -> tuple[Run | Repeat, ...]:
        """The runs and repeats by their numbers."""
        if not self.repeats or not self.runs:
            return self.repeats or self.runs
        return tuple(sorted((*self.runs, *self.repeats), key=lambda each: each.seq))

    @model_validator(mode="after")
    def _runs_are_the_nodes_own_and_in_order(self) -> Self:
        if not 0 < len(self.runs) + len(self.repeats) <= MOST_RUNS:
            raise ValueError(f"a report holds 1 to {MOST_RUNS} runs")
        last = self.after
        for run in self.in_order:
            if run.seq <= last:
                raise ValueError("sequence numbers must rise, from above `after`")
            last = run.seq
        if any(run.node != self.node for run in self.runs):
            raise ValueError("a report holds its own node's runs only")
        if self.through not in (None, last):
            raise ValueError("`through` must be the number of the last run")
        return self


# node/<node>/ack


class Ack(Message):
    """Everything in `stream` up to and including `stored_through` is in the database.

    `gap`: a report is missing before the last one, or a run is like one that the coordinator does not know any more.
    Send again from the oldest run that is kept, whole. `again`: the coordinator had no time for a report, and has some
    now. Send again from the oldest run that is kept, without waiting; an older agent waits until it is due. `hold_s`:
    runs that find nothing new may wait this long for others, so that they come together.
    """

    stream: Name
    stored_through: Sequence
    gap: bool = False
    again: bool = False
    hold_s: Seconds = 0.0


# node/<node>/group


class GroupReply(NodeMessage):
    """A member's reply about its part in a group."""

    group: Name


class Accepted(GroupReply):
    """The member takes part with `ranks` ranks. It listens on `port` at `address`, because it may get rank 0."""

    kind: Literal["accepted"] = "accepted"
    address: Host
    port: PortNumber
    ranks: int = Field(ge=1, le=MOST_DEVICES)
    knows_secrets: bool = False  # whether its ranks use the secret in Prepare; those of older agents do not


class Declined(GroupReply):
    """The member cannot take part, or can no longer. `reason` is a word for programs, `detail` a sentence for people.

    Reasons: busy, unknown_check, bad_params, bad_place (no group can have these ranks), too_few_devices, not_idle,
    unreachable (it cannot reach rank 0), preempted, expired, stopping, failed_to_start.
    """

    kind: Literal["declined"] = "declined"
    reason: Code
    detail: Text = ""


class Ready(GroupReply):
    """The member holds its lease, has reached rank 0, and its ranks wait at the rendezvous."""

    kind: Literal["ready"] = "ready"


class Progress(GroupReply):
    """A sign of life while the ranks run."""

    kind: Literal["progress"] = "progress"
    text: Text = ""


class Finished(GroupReply):
    """Every rank of the member has ended; `ranks` has the result of each."""

    kind: Literal["finished"] = "finished"
    ranks: tuple[RankResult, ...] = Field(max_length=MOST_DEVICES)


AnyGroupReply = Annotated[Accepted | Declined | Ready | Progress | Finished, Field(discriminator="kind")]


# node/<node>/command


class Command(Message):
    """A command to one node, which refuses it if its epoch is older than one seen, or after `expires_at`."""

    epoch: Sequence
    expires_at: Instant
    cause: Label | None = None


class RunCheck(Command):
    """Run a check of scope NODE now; `run` is the id that the result will have."""

    kind: Literal["run_check"] = "run_check"
    run: Name
    check: Name
    params: PlainJson = {}


class Join(Command):
    """Take part in a group, or decline. Take no lease yet; reply with address and number of ranks."""

    kind: Literal["join"] = "join"
    group: Name
    check: Name
    params: PlainJson = {}
    devices: int | None = Field(None, ge=0, le=MOST_DEVICES)
    timeout_s: Seconds


class Prepare(Command):
    """The ranks are assigned: take the lease, connect to rank 0, start the ranks up to the rendezvous, reply Ready.

    `secret` keeps others than the members out of the rendezvous; None if not every member knows secrets.
    """

    kind: Literal["prepare"] = "prepare"
    group: Name
    first_rank: int = Field(ge=0, lt=MOST_RANKS)
    world_size: int = Field(ge=1, le=MOST_RANKS)
    master_addr: Host
    master_port: PortNumber
    secret: GroupSecret | None = None


class Start(Command):
    """Every member is ready: let the ranks pass the rendezvous."""

    kind: Literal["start"] = "start"
    group: Name


class Abort(Command):
    """Leave the group: kill the ranks, drop the lease."""

    kind: Literal["abort"] = "abort"
    group: Name
    reason: Text


AnyCommand = Annotated[RunCheck | Join | Prepare | Start | Abort, Field(discriminator="kind")]


# coordinator and references, retained


DEFLATE, REPEATS, REPORTS_AS_HEARTBEATS = "deflate", "repeats", "reports-as-heartbeats"
"""What a coordinator may accept: compressed messages (`wire.deflate`), runs as repeats of others (`wire.repeats`), and
reports as a sign of life, so that a node that has just reported need not send a heartbeat.
"""

KEPT_NOTHING = "kept-nothing"
"""A coordinator that says this got nothing that its broker had kept, and asks for the inventories again."""


class CoordinatorPresence(Message):
    """The leader and its epoch, repeated as a heartbeat. Agents leave a group that an older epoch formed.

    `accepts` names what a coordinator takes beyond what those before 0.2 take, `connection` its connection to the
    broker. Agents run background checks `slowdown` times less often.
    """

    online: bool
    epoch: Sequence
    url: Text = ""
    connection: Label = ""
    accepts: tuple[Label, ...] = Field((), max_length=MOST_NAMES)
    slowdown: int = Field(1, ge=1)


class References(Message):
    """All references of the fleet besides the shipped ones. Each row has its origin, which decides which row wins."""

    rows: tuple[Reference, ...] = Field((), max_length=MOST_REFERENCES)
