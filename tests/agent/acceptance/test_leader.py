"""Whom the leader of a job takes in, whom it sends away, and what it does when members are lost."""

import asyncio
import contextlib
import errno
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from benchmarks.free_ports import free_port

from muster.check import Params, Scope
from muster.errors import Refused, Unavailable
from muster.model import Device, Inventory, Measurement, Run, Verdict
from muster_agent.acceptance import leader as leader_module
from muster_agent.acceptance.exchange import (
    GroupHosted,
    HostGroup,
    JobConnection,
    JobMessage,
    JoinStep,
    MeasureStep,
    MemberHello,
    StepDone,
)
from muster_agent.acceptance.leader import JobLeader
from muster_agent.acceptance.selection import SelectedCheck

ALONE, TOGETHER = 0, 1
"""The numbers of the steps."""


@pytest.fixture
def steps(check) -> list[SelectedCheck]:
    """One step for each node by itself, and one for all together."""
    made = (check(lambda *_: Measurement(), scope=scope) for scope in (Scope.NODE, Scope.GROUP))
    return [SelectedCheck(check=one, params=Params(), timeout_s=20.0) for one in made]


@asynccontextmanager
async def leading(steps: list[SelectedCheck], size: int) -> AsyncIterator[tuple[JobLeader, int]]:
    """A leader and its port, which is closed at the end."""
    leader, port = JobLeader(size, steps, "digest"), free_port()
    await leader.listen(port)
    try:
        yield leader, port
    finally:
        await leader.close()


async def come(port: int, rank: int, node: str = "", *, host: str = "127.0.0.1", local_size: int = 1) -> JobConnection:
    """A member with its devices that has said who it is."""
    member = JobConnection(*await asyncio.open_connection(host, port))
    devices = tuple(Device(index=index, uuid=f"GPU-{rank}-{index}", model="pretended") for index in range(local_size))
    hello = MemberHello(
        rank=rank,
        node=node or f"node-{rank}",
        local_rank=0,
        local_size=local_size,
        ranks=1,
        inventory=Inventory(devices=devices),
        suite="digest",
    )
    member.send(hello)
    return member


async def until(member: JobConnection, kind: type[JobMessage]) -> JobMessage:
    """The next message of that kind."""
    async with asyncio.timeout(30):
        while not isinstance(message := await member.receive(), kind):
            assert message is not None, "the leader has gone"
    return message


async def host(member: JobConnection, step: int, port: int = 1234) -> HostGroup:
    """The member is told to host a group, and does so."""
    told = await until(member, HostGroup)
    member.send(GroupHosted(step=step, port=port))
    assert isinstance(told, HostGroup)
    return told


def done(step: int, node: str) -> StepDone:
    run = Run(id=node, node=node, check="throwaway", verdict=Verdict.PASS, started_at=time.time(), duration_s=0.0)
    return StepDone(step=step, run=run)


async def test_who_does_not_speak_is_sent_away(steps, monkeypatch):
    """A connection that says nothing is not kept; it costs the members nothing."""
    monkeypatch.setattr(leader_module, "_HELLO_WITHIN_S", 0.05)
    async with leading(steps, 1) as (leader, port):
        silent = JobConnection(*await asyncio.open_connection("127.0.0.1", port))
        async with asyncio.timeout(30):
            assert await silent.receive() is None
        await silent.close()
        monkeypatch.undo()
        member = await come(port, 0)
        await leader.gather(30)
        await member.close()


async def test_strangers_keep_no_member_out(steps):
    """Hundreds that are silent or send garbage replace each other, and the leader keeps only a few."""
    async with leading(steps, 2) as (leader, port), asyncio.timeout(60):
        strangers = []
        for number in range(300):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write((b"", b"x" * 70_000, b'{"kind": "hello"')[number % 3])
            strangers.append((reader, writer))
        members = [await come(port, rank) for rank in range(2)]
        await leader.gather(30)
        assert list(leader.nodes) == ["node-0", "node-1"]
        assert len(leader._connections) <= 2 * 2 + 64
        for _, writer in strangers:
            writer.transport.abort()
        for member in members:
            await member.close()


async def test_a_stranger_cannot_fill_the_memory(steps):
    """The bytes before the end of a hello are bounded; the leader closes a connection whose line never ends."""
    async with leading(steps, 2) as (_, port), asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                writer.write(b"x" * (1 << 16))
                await writer.drain()
            assert await reader.read() == b""
        writer.transport.abort()


async def test_nobody_can_come_later(steps):
    """Neither one who was connected already, nor one in the place of a member that is lost."""
    async with leading(steps, 2) as (leader, port):
        late = JobConnection(*await asyncio.open_connection("127.0.0.1", port))
        members = [await come(port, rank) for rank in range(2)]
        await leader.gather(30)
        with pytest.raises(ConnectionRefusedError):
            await come(port, 1)
        late.send(
            MemberHello(rank=1, node="x", local_rank=0, local_size=1, ranks=1, inventory=Inventory(), suite="digest")
        )
        async with asyncio.timeout(30):
            assert await late.receive() is None
        for one in (late, *members):
            await one.close()


async def test_two_nodes_of_one_name_are_refused(steps):
    """Nobody could tell their findings apart."""
    async with leading(steps, 2) as (leader, port):
        members = [await come(port, rank, "localhost") for rank in range(2)]
        with pytest.raises(Refused, match="2 processes say that they are number 0 of node localhost"):
            await leader.gather(30)
        for member in members:
            await member.close()


async def test_groups_meet_at_an_address_that_others_reach(steps):
    """Debian gives a host's own name the address 127.0.1.1, which is as good as loopback."""
    async with leading(steps, 2) as (leader, port):
        members = [await come(port, 0), await come(port, 1, host="127.0.1.1")]
        await leader.gather(30)
        step = asyncio.create_task(leader.carry_out(TOGETHER))
        await host(members[0], TOGETHER)
        joins = [await until(member, JoinStep) for member in members]
        assert {join.address for join in joins if isinstance(join, JoinStep)} == {"127.0.0.1"}
        assert len({join.secret for join in joins if isinstance(join, JoinStep)}) == 1
        for member in members:
            await member.close()
        assert [run.findings[0].code for run in await step] == ["run.lost"] * 2


async def test_the_report_keeps_a_node_that_is_lost(steps):
    """It took part, and what is UNKNOWN is told of it; without the leader's own member nothing can go on."""
    async with leading(steps, 2) as (leader, port):
        members = [await come(port, rank) for rank in range(2)]
        await leader.gather(30)
        for lost, goes_on in ((1, True), (0, False)):
            assert leader.can_go_on
            step = asyncio.create_task(leader.carry_out(ALONE))
            await until(members[lost], MeasureStep)
            await members[lost].close()
            for rank in range(lost):
                await until(members[rank], MeasureStep)
                members[rank].send(done(ALONE, f"node-{rank}"))
            assert (await step)[lost].findings[0].code == "run.lost"
            assert leader.can_go_on == goes_on
        assert [*leader.nodes] == ["node-0", "node-1"]


async def test_groups_meet_at_their_first_member(steps):
    """At the same time, each at its own node and port; a member that is lost ends its own group only."""
    async with leading(steps, 4) as (leader, port):
        members = [await come(port, rank) for rank in range(4)]
        await leader.gather(30)
        first, second = (
            asyncio.create_task(leader.carry_out(TOGETHER, [f"node-{rank}" for rank in pair]))
            for pair in ((0, 1), (2, 3))
        )
        await host(members[0], TOGETHER, port=1000)
        await host(members[2], TOGETHER, port=2000)
        joins = [await until(member, JoinStep) for member in members]
        assert [(join.port, join.first_rank) for join in joins if isinstance(join, JoinStep)] == [
            (1000, 0),
            (1000, 1),
            (2000, 0),
            (2000, 1),
        ]
        await members[1].close()
        members[0].send(done(TOGETHER, "node-0"))
        assert [run.findings != () for run in await first] == [False, True]
        assert not second.done()
        for rank in (2, 3):
            members[rank].send(done(TOGETHER, f"node-{rank}"))
        assert [run.node for run in await second] == ["node-2", "node-3"]
        for member in members:
            await member.close()


async def test_the_next_member_hosts_a_group_if_the_first_is_lost(steps):
    """The lost one has its run, and the others go on without it."""
    async with leading(steps, 3) as (leader, port):
        members = [await come(port, rank) for rank in range(3)]
        await leader.gather(30)
        step = asyncio.create_task(leader.carry_out(TOGETHER))
        await until(members[0], HostGroup)
        await members[0].close()
        await host(members[1], TOGETHER)
        for rank in (1, 2):
            await until(members[rank], JoinStep)
            members[rank].send(done(TOGETHER, f"node-{rank}"))
        runs = await step
        assert [run.node for run in runs] == ["node-0", "node-1", "node-2"]
        assert [finding.code for run in runs for finding in run.findings] == ["run.lost"]
        for member in members:
            await member.close()


async def test_enough_whole_nodes_go_on_without_the_missing(steps):
    """A node of which only one process came does not count, and its process is sent away."""
    async with leading(steps, 4) as (leader, port):
        first, second, half = await come(port, 0), await come(port, 1), await come(port, 2, local_size=2)
        await leader.gather(0.1, enough=2)
        assert ([*leader.nodes], leader.missing) == (["node-0", "node-1"], [3])
        assert await half.receive() is None
        for member in (first, second, half):
            await member.close()


async def test_half_of_the_node_that_leads_does_not_go_on(steps):
    """It meets the others, and would be sent away itself."""
    async with leading(steps, 3) as (leader, port):
        half, whole = await come(port, 0, local_size=2), await come(port, 2)
        with pytest.raises(Unavailable, match=r"did not connect .*: 1$"):
            await leader.gather(0.1, enough=1)
        for member in (half, whole):
            await member.close()


async def test_too_few_nodes_do_not_go_on(steps):
    """The missing ranks are named."""
    async with leading(steps, 3) as (leader, port):
        first = await come(port, 0)
        with pytest.raises(Unavailable, match=r"these ranks did not connect .*: 1, 2"):
            await leader.gather(0.1, enough=2)
        await first.close()


async def test_64_members_take_part(steps):
    """As many connections as a job of 64 nodes has."""
    async with leading(steps, 64) as (leader, port):
        members = [await come(port, rank) for rank in range(64)]
        await leader.gather(30)
        step = asyncio.create_task(leader.carry_out(ALONE))
        for rank, member in enumerate(members):
            await until(member, MeasureStep)
            member.send(done(ALONE, f"node-{rank}"))
        assert [run.node for run in await step] == [f"node-{rank}" for rank in range(64)]
        for member in members:
            await member.close()


BROKEN: list[Callable[[], Exception]] = [
    lambda: OSError(errno.EHOSTUNREACH, "No route to host"),
    lambda: TimeoutError(errno.ETIMEDOUT, "Connection timed out"),
    ConnectionResetError,
]


@pytest.mark.parametrize("error", BROKEN)
async def test_a_machine_that_vanishes_is_gone(error):
    """However the kernel puts it, and even when it says nothing by itself."""
    async with await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        connection = JobConnection(reader, writer)
        assert writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        reader.set_exception(error())
        assert await connection.receive() is None
        await connection.close()
