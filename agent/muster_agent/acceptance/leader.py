"""The process with rank 0: it collects the members of the job, leads them through the steps and keeps the runs.

Its own process takes part as a member like all others. If a member is lost in a step, that step ends for the others at
once. The report names the lost member, and the next steps run without it.
"""

import asyncio
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from muster.check import Scope
from muster.connections import BACKLOG, Connections
from muster.errors import Refused, Unavailable
from muster.model import Inventory, Run, Verdict
from muster.wire.messages import new_id
from muster_agent.acceptance.exchange import (
    MOST_LINE_BYTES,
    AbortStep,
    EndJob,
    GroupHosted,
    HostGroup,
    JobConnection,
    JobMessage,
    JoinStep,
    MeasureStep,
    MemberHello,
    PassRendezvous,
    RanksWaiting,
    StepDone,
)
from muster_agent.acceptance.selection import SelectedCheck
from muster_agent.decide import findings

GRACE_S = 30.0
"""How long after the deadline of its run a member may still answer. The run itself ends at the deadline."""

_HELLO_WITHIN_S = 10.0
"""A member introduces itself as soon as it is connected."""

_MOST_HELLO_BYTES = 1 << 20
"""Several times the inventory of a node with sixteen devices and the most labels."""

_MOST_STRANGERS = 64
"""Connections that are not members yet. The port is open to the whole network, so one more replaces the oldest."""

_MOST_LISTED = 16


@dataclass(frozen=True, slots=True)
class _JobProcess:
    """A process of the job."""

    hello: MemberHello
    connection: JobConnection


class JobLeader:
    """Leads a job of `size` processes through `steps`. Close it at the end."""

    def __init__(self, size: int, steps: Sequence[SelectedCheck], digest: str) -> None:
        self._size = size
        self._steps = steps
        self._digest = digest
        self.nodes: dict[str, Inventory] = {}
        """The inventory of each node by name, in the order of ranks; complete after `gather`."""
        self.missing: list[int] = []
        """The ranks that did not connect, if the job goes on with the others."""
        self._members: dict[int, _JobProcess] = {}
        self._complete = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._connections = Connections("MASTER_PORT", 2 * size + _MOST_STRANGERS, most_unread=_MOST_HELLO_BYTES)

    async def listen(self, port: int) -> int:
        """Listens at all addresses of this host on `port` (0: a free one) and returns the port.

        Members may know this host by addresses that it does not know itself. Raises Unavailable if the port is taken.
        """
        try:
            protocol = self._connections.around(self._protocol)
            self._server = await asyncio.get_running_loop().create_server(protocol, None, port, backlog=BACKLOG)
        except OSError as error:
            raise Unavailable(f"cannot listen for the job on port {port} (see MASTER_PORT): {error.strerror}") from None
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def gather(self, within_s: float, enough: int | None = None) -> None:
        """Waits for all members; after `within_s` seconds, it goes on with `enough` whole nodes.

        One of them must have rank 0. Unavailable names the missing ranks, Refused those that do not fit together.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._complete.wait()
        except TimeoutError:
            await self._go_on_without_the_missing(within_s, enough)
        self._stop_listening()
        self._members = dict(sorted(self._members.items()))
        hellos = [member.hello for member in self._of()]
        self.nodes = {hello.node: hello.inventory for hello in hellos}
        _see_that_they_fit(hellos, self._digest)

    async def carry_out(self, step: int, nodes: Collection[str] | None = None) -> list[Run]:
        """Runs a step on all nodes or on these, and returns its runs by rank.

        There is one run for each node, or one for each process of a group. Steps may run at the same time on other
        nodes.
        """
        members = self._of(nodes)
        if self._steps[step].check.scope is Scope.GROUP:
            return await self._run_group(members, step)
        members = [member for member in members if member.hello.local_rank == 0]
        for member in members:
            member.connection.send(MeasureStep(step=step))
        answers = await self._answers(members, step)
        return [self._run_of(member, step, answer) for member, answer in zip(members, answers, strict=True)]

    @property
    def can_go_on(self) -> bool:
        """Whether steps can go on. Groups meet at this host, so this host's own member must still be connected."""
        return 0 in self._members

    def address_of_first(self, nodes: Collection[str]) -> str:
        """An address at which the others of these nodes reach the first."""
        members = self._of(nodes)
        return _address(members[0], members)

    def end(self, verdict: Verdict) -> None:
        """Tells all members that the job is done."""
        _send_to_all(self._of(), EndJob(verdict=verdict))

    def end_each(self, ends: Mapping[str, EndJob]) -> None:
        """Tells the members on each node what the job's end means for their node."""
        for member in self._of(ends):
            member.connection.send(ends[member.hello.node])

    async def close(self) -> None:
        """Closes all connections. A member that has not heard the end of the job reports an error."""
        self._stop_listening()
        for member in self._members.values():
            await member.connection.close()

    def _protocol(self) -> asyncio.Protocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=MOST_LINE_BYTES), self._welcome)

    def _stop_listening(self) -> None:
        if self._server:
            self._server.close()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Admits a process that introduces itself, unless its rank does not exist in this job or is taken."""
        connection = JobConnection(reader, writer)
        hello: JobMessage | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HELLO_WITHIN_S):
                hello = await connection.receive()
        if self._complete.is_set() or not isinstance(hello, MemberHello) or not self._awaits(hello.rank):
            await connection.close()
            return
        self._members[hello.rank] = _JobProcess(hello, connection)
        self._connections.start_work(writer.transport)
        if len(self._members) == self._size:
            self._complete.set()

    def _awaits(self, rank: int) -> bool:
        return rank < self._size and rank not in self._members

    async def _go_on_without_the_missing(self, waited_s: float, enough: int | None) -> None:
        """Keeps the nodes all of whose processes are there. Raises Unavailable if that is not enough."""
        self.missing = [rank for rank in range(self._size) if rank not in self._members]
        whole = _whole_nodes([member.hello for member in self._of()])
        leads = 0 in self._members and self._members[0].hello.node in whole
        if enough is None or len(whole) < enough or not leads:
            came = f"of {self._size} processes, these ranks did not connect within {waited_s:g} s"
            raise Unavailable(f"{came}: {_listed(self.missing)}")
        self._complete.set()  # a process that comes from now on is too late
        for member in self._of():
            if member.hello.node not in whole:
                del self._members[member.hello.rank]
                await member.connection.close()

    def _of(self, nodes: Collection[str] | None = None) -> list[_JobProcess]:
        """The members on these nodes, or all: by rank, once all have joined."""
        return [member for member in self._members.values() if nodes is None or member.hello.node in nodes]

    async def _run_group(self, members: list[_JobProcess], step: int) -> list[Run]:
        if not members:
            return []
        hosted = await self._host(members, step)
        if hosted is None:
            return [self._run_of(members[0], step, None), *await self._run_group(members[1:], step)]
        _invite(members, step, *hosted)
        arrived = await self._answers(members, step)
        if all(map(_is_ready, arrived)):
            _send_to_all(members, PassRendezvous(step=step))
        else:
            _send_to_all(members, AbortStep(step=step, reason="a member of the group did not reach the rendezvous"))
        waiting = [member for member, answer in zip(members, arrived, strict=True) if _is_ready(answer)]
        later = iter(await self._answers(waiting, step))
        answers = [next(later) if _is_ready(answer) else answer for answer in arrived]
        return [self._run_of(member, step, answer) for member, answer in zip(members, answers, strict=True)]

    async def _host(self, members: Sequence[_JobProcess], step: int) -> tuple[str, int] | None:
        """Address and port at the first member for rank 0 of a group; None if that member is lost."""
        address = _address(members[0], members)
        members[0].connection.send(HostGroup(step=step, address=address))
        (answer,) = await self._answers(members[:1], step)
        return (address, answer.port) if isinstance(answer, GroupHosted) else None

    async def _answers(self, members: Sequence[_JobProcess], step: int) -> list[JobMessage | None]:
        return await asyncio.gather(*(self._answer(member, members, step) for member in members))

    async def _answer(self, member: _JobProcess, together: Sequence[_JobProcess], step: int) -> JobMessage | None:
        """The member's next message; None if it is lost, in which case those in the step with it have to end it."""
        answer = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._steps[step].timeout_s + GRACE_S):
                answer = await member.connection.receive()
        if answer is None:
            del self._members[member.hello.rank]
            reason = f"{member.hello.node} (rank {member.hello.rank}) is lost"
            others = [each for each in together if each.hello.rank in self._members]
            _send_to_all(others, AbortStep(step=step, reason=reason))
            await member.connection.close()
        return answer

    def _run_of(self, member: _JobProcess, step: int, answer: JobMessage | None) -> Run:
        """The member's run; for a lost member, a run that says so."""
        if isinstance(answer, StepDone):
            return answer.run
        return Run(
            id=new_id(),
            node=member.hello.node,
            check=self._steps[step].check.name,
            verdict=Verdict.UNKNOWN,
            findings=(findings.lost(member.hello.rank),),
            started_at=time.time(),
            duration_s=0.0,
        )


def _see_that_they_fit(hellos: Sequence[MemberHello], digest: str) -> None:
    """Raises Refused if these processes cannot run the suite with this digest together."""
    others = [hello.rank for hello in hellos if hello.suite != digest]
    if others:
        raise Refused(f"these ranks have another version of the suite or its settings: {_listed(others)}")
    for (node, place), count in Counter((hello.node, hello.local_rank) for hello in hellos).items():
        if count > 1:
            twice = f"{count} processes say that they are number {place} of node {node}"
            raise Refused(f"{twice}: give each node a name with MUSTER_NODE, and each process its LOCAL_RANK")
    for hello in hellos:
        devices = len(hello.inventory.devices)
        if 0 < devices < hello.local_size:
            crowd = f"{hello.node} has {hello.local_size} processes for {devices} devices"
            raise Refused(f"{crowd}: start one for each node, or one for each device")


def _invite(members: Sequence[_JobProcess], step: int, address: str, port: int) -> None:
    """Assigns ranks in the order of the job's own ranks, which the scheduler has chosen."""
    group, secret = new_id(), secrets.token_hex(32)
    world_size, first_rank = sum(member.hello.ranks for member in members), 0
    for member in members:
        hello = member.hello
        join = JoinStep(
            step=step,
            group=group,
            first_rank=first_rank,
            ranks=hello.ranks,
            world_size=world_size,
            local_rank=hello.local_rank,
            local_size=max(hello.local_size, hello.ranks),
            address=address,
            port=port,
            secret=secret,
        )
        member.connection.send(join)
        first_rank += hello.ranks


def _address(host: _JobProcess, members: Sequence[_JobProcess]) -> str:
    """An address at which the members reach the host of their group.

    That is where its connection comes from. This host's own member comes from loopback: then it is an address of this
    host that a member on another host has used, or loopback if all members are on this host.
    """
    addresses = [host.connection.peer_address, *(member.connection.own_address for member in members)]
    return next((address for address in addresses if not ip_address(address).is_loopback), "127.0.0.1")


def _send_to_all(members: Sequence[_JobProcess], message: JobMessage) -> None:
    for member in members:
        member.connection.send(message)


def _whole_nodes(hellos: Sequence[MemberHello]) -> set[str]:
    """The nodes all of whose processes are there."""
    here = Counter(hello.node for hello in hellos)
    return {hello.node for hello in hellos if here[hello.node] == hello.local_size}


def _listed(ranks: Sequence[int]) -> str:
    """The ranks for a message, shortened: a large job may have thousands."""
    more = f" and {len(ranks) - _MOST_LISTED} more" if len(ranks) > _MOST_LISTED else ""
    return ", ".join(map(str, ranks[:_MOST_LISTED])) + more


def _is_ready(answer: JobMessage | None) -> bool:
    return isinstance(answer, RanksWaiting)
