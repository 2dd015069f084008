"""The messages between the processes of a job: JSON, one object per line, over one TCP connection for each process.

The leader names a step of the suite by its number. Every process reads the suite itself, so the network never decides
which check runs. A digest shows that all processes have the same suite.
"""

import asyncio
import contextlib
import socket
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from muster.acceptance import NodeConclusion
from muster.model import Data, Inventory, Run, Verdict
from muster.wire.meeting import GroupSecret

MOST_LINE_BYTES = 8 << 20
"""More than the runs of a member need. A longer line breaks the protocol."""

_KEEPALIVE = {socket.TCP_KEEPIDLE: 30, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 6}
"""Seconds, seconds and tries. A host that loses its power closes no connection; TCP keep-alive notices after 90 s."""

# From a member to the leader


class MemberHello(Data):
    """Introduces a member, with the number of its ranks for groups."""

    kind: Literal["hello"] = "hello"
    rank: int = Field(ge=0)
    node: str
    local_rank: int = Field(ge=0)
    local_size: int = Field(ge=1)
    ranks: int = Field(ge=1)
    inventory: Inventory
    suite: str


class GroupHosted(Data):
    """The member listens on `port`, where rank 0 of a group step will be."""

    kind: Literal["hosted"] = "hosted"
    step: int
    port: int = Field(ge=1, le=65_535)


class RanksWaiting(Data):
    """The member's ranks wait at the rendezvous."""

    kind: Literal["ready"] = "ready"
    step: int


class StepDone(Data):
    """The result of a step."""

    kind: Literal["done"] = "done"
    step: int
    run: Run


# From the leader to a member


class MeasureStep(Data):
    """Run a step on your node alone."""

    kind: Literal["measure"] = "measure"
    step: int


class HostGroup(Data):
    """Listen for a group step: rank 0 will be on your node, and the others reach it at `address`."""

    kind: Literal["host"] = "host"
    step: int
    address: str


class JoinStep(Data):
    """Bring your ranks to the rendezvous of a step, whose `secret` keeps others out."""

    kind: Literal["join"] = "join"
    step: int
    group: str
    first_rank: int
    ranks: int
    world_size: int
    local_rank: int
    local_size: int
    address: str
    port: int
    secret: GroupSecret


class PassRendezvous(Data):
    """Every rank is at the rendezvous: let your ranks pass."""

    kind: Literal["go"] = "go"
    step: int


class AbortStep(Data):
    """Kill your ranks of a step."""

    kind: Literal["abort"] = "abort"
    step: int
    reason: str


class Gang(Data):
    """The nodes on which a job starts, in the order of ranks. The others reach the first one at `address`."""

    nodes: tuple[str, ...]
    address: str


class EndJob(Data):
    """The job is done; `verdict` is for the whole job.

    After a preflight, `conclusion` is about the member's node, and `gang` has the nodes on which the job can start.
    """

    kind: Literal["end"] = "end"
    verdict: Verdict
    conclusion: NodeConclusion | None = None
    gang: Gang | None = None


JobMessage = Annotated[
    MemberHello
    | GroupHosted
    | RanksWaiting
    | StepDone
    | MeasureStep
    | HostGroup
    | JoinStep
    | PassRendezvous
    | AbortStep
    | EndJob,
    Field(discriminator="kind"),
]

_MESSAGE: TypeAdapter[JobMessage] = TypeAdapter(JobMessage)


class JobConnection:
    """One end of the connection between the leader and a member."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        line: socket.socket = writer.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            line.setsockopt(socket.IPPROTO_TCP, option, value)

    @property
    def own_address(self) -> str:
        """The address of this end."""
        address: str = self._writer.get_extra_info("sockname")[0]
        return address

    @property
    def peer_address(self) -> str:
        """The address of the other end."""
        address: str = self._writer.get_extra_info("peername")[0]
        return address

    def send(self, message: JobMessage) -> None:
        """Sends a message. If the other end is gone, the message is lost and `receive` returns None."""
        self._writer.write(message.model_dump_json().encode() + b"\n")

    async def receive(self) -> JobMessage | None:
        """The next message; None if the other end is gone or breaks the protocol."""
        try:
            line = await self._reader.readline()
            return _MESSAGE.validate_json(line) if line else None
        except (OSError, ValueError):  # ValueError: the line is too long, or not a valid message
            return None

    async def close(self) -> None:
        """Closes this end after everything is sent."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
