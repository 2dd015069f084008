"""Runs of a group: their ranks wait for each other, share their memory, and name each other if one breaks."""

import asyncio
import os
import resource
import signal
import socket
import time
from dataclasses import replace

import pytest

from muster.check import Scope
from muster.model import Finding, Measurement, Severity, Verdict
from muster_agent.runs.launcher import ChildProcess


async def test_a_group_says_it_once_for_each_node(running, check, places):
    """Not every rank on the node names what has no reference."""

    def measure(_params, context):
        context.rendezvous()
        return Measurement(metrics={"speed": 1.0})

    group = check(measure, scope=Scope.GROUP, judged=("speed",))
    async with running(group) as runs:
        run = await runs.start(group, places=places(2))
        await runs.until("ready")
        runs.runner.go(run)
        ended = await runs.ended()
    assert [finding.code for finding in ended.run.findings] == ["run.not_judged"]


def meets(_params, context):
    meeting = context.rendezvous()
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT GLOO_SOCKET_IFNAME"
    variables = " ".join(os.environ[name] for name in names.split())
    listens = meeting.listen_fd is not None
    return Measurement(metrics={"rank": meeting.rank}, facts={"listens": listens, "variables": variables})


async def test_the_ranks_of_a_run_share_its_memory(running, check, places):
    """Each gets an equal part of the limit, so that a hostile peer cannot make all of them together exceed it."""
    group = check(
        lambda _params, _context: Measurement(facts={"data": [*resource.getrlimit(resource.RLIMIT_DATA)]}),
        scope=Scope.GROUP,
    )
    async with running(group, memory_limit_bytes=3 << 30) as runs:
        ended = await runs.run(group, places=places(3), group="group-1")
        assert [rank.facts["data"] for rank in ended.ranks] == [[1 << 30, 1 << 30]] * 3
        alone = await runs.run(group)
        assert alone.run.facts["data"] == [3 << 30, 3 << 30]


async def test_the_ranks_of_a_group_wait_for_each_other_and_for_go(running, check, places):
    """RanksReady comes when every rank waits, nothing ends before go, and rank 0 alone has the listening socket."""
    group = check(meets, scope=Scope.GROUP)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    async with running(group) as runs:
        run = await runs.start(group, listener=listener, places=places(2, port), group="group-1")
        assert listener.fileno() == -1
        await runs.until("ready")
        assert runs.events.empty()
        runs.runner.go(run)
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.PASS
    assert (ended.run.group, ended.run.metrics) == ("group-1", {"rank": 0})
    assert [rank.facts["listens"] for rank in ended.ranks] == [True, False]
    assert ended.ranks[1].facts["variables"] == f"1 2 1 2 127.0.0.1 {port} lo"


async def test_a_group_run_is_as_bad_as_its_worst_rank(running, check, places):
    """Findings of all ranks are joined and the worst verdict stands; that a rank was killed is a finding."""

    def measure(_params, context):
        if context.rendezvous().rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return Measurement()

    def judge(_measurement, _references):
        return [Finding(code="throwaway.note", summary="fine", severity=Severity.INFO)]

    group = check(measure, scope=Scope.GROUP, judge=judge)
    async with running(group) as runs:
        run = await runs.start(group, places=places(2))
        runs.runner.go(run)
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.UNKNOWN
    assert [finding.code for finding in ended.run.findings] == ["throwaway.note", "run.killed"]
    assert [rank.verdict for rank in ended.ranks] == [Verdict.PASS, Verdict.UNKNOWN]


@pytest.mark.parametrize(
    ("go", "world_size"),
    [(True, 4), (True, 1), (False, 4)],
    ids=["after the meeting", "on one node", "before the meeting"],
)
async def test_a_rank_that_breaks_after_the_meeting_names_its_group(running, check, places, go, world_size):
    """Ranks of other nodes may be the cause. Before the meeting, or on one node, only this node can be."""

    def measure(_params, context):
        if go:
            context.rendezvous()
        os.kill(os.getpid(), signal.SIGKILL)

    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        run = await runs.start(group, places=[replace(place, world_size=world_size) for place in places(1)])
        if go:
            runs.runner.go(run)
        ended = await runs.ended()
    (finding,) = ended.run.findings
    met = {"rank": 0, "world_size": 4, "rank_0": "127.0.0.1:1"}
    assert (finding.code, finding.evidence.get("met")) == ("run.killed", met if go and world_size > 1 else None)


async def test_the_timeout_of_a_group_starts_when_its_ranks_may_meet(running, check, places):
    """A rank that waits for a member that is never ready has not hung; the timeout applies after `go`."""

    def measure(_params, context):
        context.rendezvous()
        time.sleep(60)

    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        run = await runs.start(group, places=places(1), group="g", timeout_s=0.3)
        await runs.until("ready")
        await asyncio.sleep(0.6)
        assert runs.events.empty()
        runs.runner.go(run)
        ended = await runs.ended()
    assert [finding.code for finding in ended.run.findings] == ["run.timeout"]


async def test_a_rank_that_breaks_before_the_rendezvous_ends_the_run(running, check, places):
    """The ranks that wait for one that will never come are stopped at once, and it is told whom they waited for."""

    def measure(_params, context):
        if os.environ["RANK"] == "1":
            raise RuntimeError("no device")
        context.rendezvous()
        return Measurement()

    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        ended = await runs.run(group, places=places(2))
    assert ended.run.verdict is Verdict.UNKNOWN
    assert [finding.code for finding in ended.run.findings] == ["run.preempted", "run.raised"]
    assert "rank 1" in ended.run.findings[0].summary


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_stopped_group_is_skipped_even_where_a_rank_had_finished(running, check, places, monkeypatch, is_gone):
    """A stopped run claims nothing: what some of its ranks had measured already does not count."""

    def measure(_params, context):
        meeting = context.rendezvous()
        context.progress(f"rank {meeting.rank}")
        if meeting.rank == 1:
            time.sleep(60)
        return Measurement()

    gone, rank_0_is_gone = ChildProcess.gone, asyncio.Event()

    async def noted(child):
        ending = await gone(child)
        rank_0_is_gone.set()
        return ending

    monkeypatch.setattr(ChildProcess, "gone", noted)
    group = check(measure, scope=Scope.GROUP)
    async with running(group) as runs:
        run = await runs.start(group, places=places(2))
        runs.runner.go(run)
        await runs.until("rank 0")
        await runs.until("rank 1")
        if is_gone:
            await asyncio.wait_for(rank_0_is_gone.wait(), 30)
        runs.runner.stop(run, "enough")
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.SKIPPED
    assert {rank.verdict for rank in ended.ranks} == {Verdict.SKIPPED}


def all_reduce(_params, context):
    from datetime import timedelta  # noqa: PLC0415 -- as in a plugin, only the child imports what torch needs

    import torch  # noqa: PLC0415 -- see above
    from torch import distributed  # noqa: PLC0415 -- see above

    meeting = context.rendezvous()
    store = distributed.TCPStore(  # type: ignore[attr-defined] # torch leaves it out of __all__
        meeting.master_addr,
        meeting.master_port,
        meeting.world_size,
        is_master=meeting.rank == 0,
        master_listen_fd=meeting.listen_fd,
        timeout=timedelta(seconds=20),
        wait_for_workers=False,
        use_libuv=False,  # Debian's torch has none
    )
    rank, size, timeout = meeting.rank, meeting.world_size, timedelta(seconds=20)
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timeout)
    numbers = torch.full((4,), float(rank + 1))
    distributed.all_reduce(numbers)
    distributed.barrier()
    distributed.destroy_process_group()
    return Measurement(metrics={"sum": numbers.sum().item()})


@pytest.mark.torch
async def test_torch_meets_on_the_socket_that_was_handed_over(running, check, places):
    """Two gloo ranks reduce a tensor over the listening socket that rank 0 got from the daemon."""
    group = check(all_reduce, scope=Scope.GROUP, timeout_s=60.0)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    async with running(group) as runs:
        run = await runs.start(group, listener=listener, places=places(2, port))
        await runs.until("ready")
        runs.runner.go(run)
        ended = await runs.ended()
    assert ended.run.verdict is Verdict.PASS, ended.run.findings
    assert [rank.metrics for rank in ended.ranks] == [{"sum": 12.0}, {"sum": 12.0}]
