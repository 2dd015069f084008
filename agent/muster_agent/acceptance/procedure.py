"""Carries a suite out, with this machine alone or with all processes of a job."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from muster.errors import MusterError
from muster.model import Inventory, Run, Verdict
from muster_agent.acceptance.bench import Bench
from muster_agent.acceptance.exchange import EndJob
from muster_agent.acceptance.job import Job
from muster_agent.acceptance.leader import JobLeader
from muster_agent.acceptance.member import JobMember
from muster_agent.acceptance.report import AcceptanceReport, StepReport, report, step_report
from muster_agent.acceptance.suites import SuitePlan, SuiteStep
from muster_agent.acceptance.terminal import ProgressPrinter
from muster_agent.runs.plugins_run import plugins_run

_LAST_WORDS_S = 5.0


class StepRunner(Protocol):
    """Those who carry a step out."""

    @property
    def nodes(self) -> Mapping[str, Inventory]:
        """What each node is made of, by name."""

    @property
    def can_go_on(self) -> bool:
        """Whether another step can be carried out."""

    async def carry_out(self, step: int) -> list[Run]:
        """The runs of the step with this number."""


class SingleMachine:
    """One machine by itself."""

    can_go_on = True

    def __init__(self, bench: Bench, steps: Sequence[SuiteStep]) -> None:
        self.nodes = {bench.node: bench.inventory}
        self._bench = bench
        self._steps = steps

    async def carry_out(self, step: int) -> list[Run]:
        return [await self._bench.run(self._steps[step].selected)]


@dataclass(frozen=True, slots=True)
class AcceptanceResult:
    """What it came to. Only the process that leads a job has the report, but all know the verdict."""

    verdict: Verdict
    report: AcceptanceReport | None


async def accept(
    plan: SuitePlan, bench: Bench, job: Job | None, audience: ProgressPrinter, join_within_s: float
) -> AcceptanceResult:
    """Carries the suite out; Unavailable or Refused when the processes of the job do not come together."""
    if job is None:
        told = await _carry_out(plan, SingleMachine(bench, plan.steps), audience)
    elif job.leads:
        async with _leading(job, plan, bench, join_within_s) as leader:
            told = await _carry_out(plan, leader, audience)
            leader.end(told.verdict)
    else:
        end = await JobMember(job, plan.selected, bench).follow(job.address, plan.digest, join_within_s)
        return AcceptanceResult(end.verdict, None)
    return AcceptanceResult(told.verdict, told)


@asynccontextmanager
async def _leading(job: Job, plan: SuitePlan, bench: Bench, within_s: float) -> AsyncIterator[JobLeader]:
    """All processes of the job, once they have come, with this process among them; errors as in `JobLeader`."""
    leader = JobLeader(job.size, plan.selected, plan.digest)
    await leader.listen(job.port)
    member = JobMember(job, plan.selected, bench, leader.take_listener)
    own = asyncio.create_task(member.follow("localhost", plan.digest, within_s), name="own member")
    try:
        await leader.gather(within_s)
        yield leader
    finally:
        await leader.close()
        await asyncio.wait([own], timeout=_LAST_WORDS_S)
        own.cancel()
        await asyncio.wait([own])
        _raise_bug(own)


def _raise_bug(own: "asyncio.Task[EndJob]") -> None:
    """That the job ended early is told already; anything else that ended the member must not be lost."""
    error = None if own.cancelled() else own.exception()
    if error is not None and not isinstance(error, MusterError):
        raise error


async def _carry_out(plan: SuitePlan, crew: StepRunner, audience: ProgressPrinter) -> AcceptanceReport:
    """Every step in turn, and what came of it all."""
    started_at, start = time.time(), time.monotonic()
    steps = [_plugins(plan, crew)] if plan.failed else []
    for step in steps:
        audience.end(step)
    for number in _numbers(plan, start):
        if not crew.can_go_on:
            break
        planned = plan.steps[number]
        audience.begin(planned)
        check = planned.selected.check
        steps.append(step_report(planned.section, check.name, check.summary, await crew.carry_out(number)))
        audience.end(steps[-1])
    return report(plan.suite, steps, crew.nodes, started_at, time.monotonic() - start)


def _numbers(plan: SuitePlan, start: float) -> Iterator[int]:
    """The numbers of the steps, as often as the suite is to be repeated; a pass that was begun is finished."""
    while True:
        yield from range(len(plan.steps))
        if time.monotonic() - start >= plan.repeat_for_s:
            return


def _plugins(plan: SuitePlan, crew: StepRunner) -> StepReport:
    """What did not load cannot be run, and must not go for done."""
    run = plugins_run(next(iter(crew.nodes)), plan.failed, time.time())
    return step_report("ENV", run.check, "Plugins that did not load", [run])
