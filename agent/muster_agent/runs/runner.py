"""Runs checks in child processes and turns every outcome into a Run.

A run of scope NODE has one rank, a run of scope GROUP one rank for each place on this node. Each rank is its own child;
only checks marked resident share the resident child. The child reports the result of its rank. If it reports none, or
if the runner had to end the run, the result is a finding `run.*` with the reason.
"""

import asyncio
import contextlib
import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muster.model import MOST_NAMES, Finding, Json, RankResult, Run, Severity, Verdict, verdict_of, worst
from muster_agent.decide import findings
from muster_agent.decide.orders import (
    Assignment,
    ChildExit,
    Order,
    RankPlace,
    RanksReady,
    RunEnded,
    RunnerEvent,
    RunProgressed,
    Surroundings,
)
from muster_agent.runs import child, process_control
from muster_agent.runs.launcher import ChildProcess, Launcher, LauncherLost, ProtocolError
from muster_agent.runs.resident import NoResidentAnswer, ResidentChild

__all__ = ["Order", "RankPlace", "RanksReady", "RunEnded", "RunProgressed", "Runner", "RunnerEvent", "Surroundings"]

CLOSE_S = 2.0
CLOSE_RESIDENT_S = 1.0

_MOST_PROGRESS_CHARACTERS = 200


@dataclass(slots=True)
class _CurrentRun:
    """A current run. `released` is set when its ranks may pass the rendezvous, `ending` when the runner ends it."""

    order: Order
    simulated: bool
    scratch: Path
    started_at: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)
    kills_before: int = field(default_factory=process_control.out_of_memory_kills)
    children: list[ChildProcess] = field(default_factory=list)
    asked: asyncio.Task[RankResult] | None = None
    task: asyncio.Task[None] | None = None
    ready: int = 0
    released: bool = False
    stopped: bool = False
    ending: Finding | None = None
    deadline: asyncio.TimerHandle | None = None

    def stop(self, reason: str) -> None:
        """Ends the run and drops all results, even of ranks that have already reported one."""
        self.stopped = True
        self.end(findings.preempted(reason))

    def end(self, why: Finding) -> None:
        """Kills every rank. Ranks without a result get the first reason given."""
        self.ending = self.ending or why
        for rank in self.children:
            rank.kill()
        if self.asked:
            self.asked.cancel()


class Runner:
    """Carries out orders and reports through `emit`, which it always calls from the event loop.

    Create it inside the running loop. `surroundings` may be replaced at any time, for later orders.
    """

    def __init__(
        self,
        launcher: Launcher,
        resident: ResidentChild,
        surroundings: Surroundings,
        emit: Callable[[RunnerEvent], None],
    ) -> None:
        self.surroundings = surroundings
        self._launcher = launcher
        self._resident = resident
        self._emit = emit
        self._current: dict[str, _CurrentRun] = {}

    async def start(self, order: Order, listener: socket.socket | None = None) -> None:
        """Starts a run; raises LauncherLost if the launcher is gone.

        `listener` is rank 0's listening socket. This method takes it over and closes it.
        """
        run = _CurrentRun(
            order=order,
            simulated=any(device.simulated for device in self.surroundings.devices),
            scratch=self._launcher.scratch / order.run,
        )
        self._current[order.run] = run
        with listener or contextlib.nullcontext():
            if order.check.resident:
                run.asked = asyncio.create_task(self._ask(run), name=f"ask-{order.run}")
            else:
                await self._spawn_ranks(run, listener)
        run.task = asyncio.create_task(self._carry_out(run), name=f"run-{order.run}")
        run.task.add_done_callback(_raise_bugs)

    def go(self, run: str) -> None:
        """Lets the ranks of a run pass their rendezvous."""
        if current := self._current.get(run):
            current.released = True
            self._limit_time(current)
            for rank in current.children:
                rank.send({"go": True})

    def stop(self, run: str, reason: str) -> None:
        """Kills a run; RunEnded follows as SKIPPED with the finding run.preempted. Unknown runs are ignored."""
        if current := self._current.get(run):
            current.stop(reason)

    def own_pids(self) -> frozenset[int]:
        """The process ids of all current runs and the resident child, with all their descendants."""
        roots = {rank.pid for run in self._current.values() for rank in run.children} | {self._resident.pid}
        known = {pid for pid in roots if pid is not None}
        return frozenset(known | process_control.descendants(known, process_control.table())) if known else frozenset()

    async def close(self) -> None:
        """Kills all runs within CLOSE_S, then the resident child within CLOSE_RESIDENT_S."""
        await self.stop_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_RESIDENT_S):
                await self._resident.close()
        self._launcher.detach()

    async def stop_all(self) -> None:
        """Kills every run, within CLOSE_S. RunEnded follows if there is still time."""
        for run in self._current.values():
            run.stop("the agent stops")
        if tasks := [run.task for run in self._current.values() if run.task]:
            await asyncio.wait(tasks, timeout=CLOSE_S)

    async def _spawn_ranks(self, run: _CurrentRun, listener: socket.socket | None) -> None:
        places = run.order.places or (None,)
        for place in places:
            spawned = await self._launcher.spawn(
                child.RUN,
                memory_limit_bytes=self._share_of_memory(len(places)),
                listener=listener if place is not None and place.rank == 0 else None,
            )
            spawned.send({"assignment": self._assignment(run, place).model_dump(mode="json")})
            run.children.append(spawned)
        if run.ending:  # the run was stopped while its ranks were being started
            run.end(run.ending)

    def _share_of_memory(self, ranks: int) -> int | None:
        """The memory limit of one rank. A hostile peer that makes all ranks grow cannot exceed the limit of a run."""
        limit = self.surroundings.memory_limit_bytes
        return limit // ranks if limit is not None else None

    def _assignment(self, run: _CurrentRun, place: RankPlace | None) -> Assignment:
        check, around = run.order.check, self.surroundings
        return Assignment(
            run=run.order.run,
            check=check.name,
            params=run.order.params.model_dump(mode="json"),
            timeout_s=run.order.timeout_s,
            node=around.node,
            devices=around.devices,
            expected_gpus=around.expected_gpus,
            references=tuple(row for row in around.references if row.check == check.name),
            scratch=run.scratch / str(place.rank if place else 0),
            machine_type=around.machine_type,
            place=place,
        )

    async def _carry_out(self, run: _CurrentRun) -> None:
        order = run.order
        places = order.places or (None,)
        if run.asked:
            ended = [(await self._answered(run, run.asked), ChildExit())]
        else:
            if order.group is None:
                self._limit_time(run)
            pairs = zip(places, run.children, strict=True)
            ended = await asyncio.gather(*(self._attend(run, place, spawned) for place, spawned in pairs))
            if run.deadline:
                run.deadline.cancel()
        await asyncio.to_thread(shutil.rmtree, run.scratch, ignore_errors=True)
        ranks = [_settled(run, place, *each) for place, each in zip(places, ended, strict=True)]
        del self._current[order.run]
        self._emit(RunEnded(_sum(run, ranks, self.surroundings.node), tuple(ranks)))

    def _limit_time(self, run: _CurrentRun) -> None:
        """Ends the run after its timeout, counted from now.

        In a group, the time starts when all ranks may pass the rendezvous. Until then the deadlines of the session
        apply: a rank that waits for another node does not hang.
        """
        if run.deadline is None:
            timeout_s = run.order.timeout_s
            run.deadline = asyncio.get_running_loop().call_later(timeout_s, run.end, findings.timeout(timeout_s))

    async def _attend(
        self, run: _CurrentRun, place: RankPlace | None, spawned: ChildProcess
    ) -> tuple[RankResult, ChildExit]:
        """Listens to one rank until it is gone."""
        result: RankResult | None = None
        problem: Finding | None = None
        try:
            async for message in spawned.messages():
                result = self._heard(run, message) or result
        except (ProtocolError, ValidationError) as error:
            problem = findings.garbage(error)
            spawned.kill()
        ending = await spawned.gone()
        if run.stopped or problem or result is None:
            ran_out = process_control.out_of_memory_kills() > run.kills_before
            why = (
                problem
                or run.ending
                or findings.ended_without_result(ending, memory_ran_out=ran_out, output=spawned.recent_output)
            )
            result = _without_measurement(run, place, findings.with_tail(why, spawned.tail))
        if place and result.verdict is Verdict.UNKNOWN and not run.released:
            run.end(findings.preempted(f"rank {result.rank} ended before the rendezvous"))
        return _with_peers_met(result, run, place), ending

    def _heard(self, run: _CurrentRun, message: dict[str, Any]) -> RankResult | None:
        match message:
            case {"result": result}:
                return RankResult.model_validate(result)
            case {"progress": str(text)}:
                self._progressed(run, text)
            case {"ready": True}:
                run.ready += 1
                if run.ready == len(run.children):
                    self._emit(RanksReady(run.order.run))
            case _:
                raise ProtocolError(f"unknown message {str(message)[:200]}")
        return None

    async def _ask(self, run: _CurrentRun) -> RankResult:
        return await self._resident.measure(self._assignment(run, None), partial(self._progressed, run))

    def _progressed(self, run: _CurrentRun, text: str) -> None:
        self._emit(RunProgressed(run.order.run, text[:_MOST_PROGRESS_CHARACTERS]))

    async def _answered(self, run: _CurrentRun, asked: asyncio.Task[RankResult]) -> RankResult:
        """The result of asking the resident child."""
        try:
            return await asked
        except NoResidentAnswer as problem:
            return _without_measurement(run, None, problem.finding)
        except LauncherLost as error:
            lost = findings.ended_without_result(ChildExit(error=str(error)), memory_ran_out=False)
            return _without_measurement(run, None, lost)
        except asyncio.CancelledError:
            if run.ending is None:
                raise
            return _without_measurement(run, None, run.ending)


def _without_measurement(run: _CurrentRun, place: RankPlace | None, why: Finding) -> RankResult:
    return RankResult(
        rank=place.rank if place else 0,
        verdict=Verdict.SKIPPED if why.severity is Severity.SKIPPED else verdict_of((why,)),
        findings=(why,),
        duration_s=time.monotonic() - run.started,
    )


def _settled(run: _CurrentRun, place: RankPlace | None, result: RankResult, ending: ChildExit) -> RankResult:
    """The result that counts once all ranks are gone. A rank may have ended before its run was stopped."""
    if run.stopped and run.ending and result.verdict is not Verdict.SKIPPED:
        result = _without_measurement(run, place, run.ending)
    return _with_aftermath(result, ending)


def _with_peers_met(result: RankResult, run: _CurrentRun, place: RankPlace | None) -> RankResult:
    """Adds the group to the finding of a rank that failed after meeting other nodes: one of them may be the cause."""
    if place is None or not run.released or place.world_size == place.local_world_size:
        return result
    rank_0 = f"{place.master_addr}:{place.master_port}"
    met: Json = {"rank": place.rank, "world_size": place.world_size, "rank_0": rank_0}
    found = (findings.with_peers_met(finding, met) for finding in result.findings)
    return result.model_copy(update={"findings": tuple(found)})


def _with_aftermath(result: RankResult, ending: ChildExit) -> RankResult:
    """Adds findings about processes left behind or stuck. Only stuck processes change the verdict."""
    return result.model_copy(
        update={
            "findings": (*result.findings, *findings.after_the_end(ending)),
            "verdict": worst([result.verdict, *([Verdict.UNKNOWN] if ending.stuck else [])]),
        }
    )


def _sum(run: _CurrentRun, ranks: list[RankResult], node: str) -> Run:
    """The node's Run: the worst verdict, all findings, and the numbers of its first rank."""
    order = run.order
    return Run(
        id=order.run,
        node=node,
        check=order.check.name,
        verdict=worst([rank.verdict for rank in ranks]),
        findings=tuple(finding for rank in ranks for finding in rank.findings)[:MOST_NAMES],
        metrics=ranks[0].metrics,
        facts=ranks[0].facts,
        params=order.params.model_dump(mode="json"),
        started_at=run.started_at,
        duration_s=time.monotonic() - run.started,
        group=order.group,
        cause=order.cause,
        simulated=run.simulated,
    )


def _raise_bugs(task: asyncio.Task[None]) -> None:
    """Passes an unexpected exception to the loop's exception handler at once."""
    if not task.cancelled():
        task.result()
