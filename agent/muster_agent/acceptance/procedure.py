"""Runs a suite, on this node alone or with all processes of a job."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from muster.acceptance import AcceptanceReport, StepReport, report, step_report
from muster.errors import MusterError
from muster.model import Inventory, Run, Verdict
from muster_agent.acceptance.comparison import with_outliers
from muster_agent.acceptance.exchange import EndJob
from muster_agent.acceptance.job import AcceptanceJob
from muster_agent.acceptance.leader import JobLeader
from muster_agent.acceptance.local_runner import LocalRunner
from muster_agent.acceptance.member import JobMember
from muster_agent.acceptance.suites import SuitePlan, SuiteStep
from muster_agent.acceptance.terminal import ProgressPrinter
from muster_agent.runs.plugins_run import plugins_run

_LAST_WORDS_S = 5.0


class StepRunner(Protocol):
    """Runs the steps: this node alone, or the leader of a job."""

    @property
    def nodes(self) -> Mapping[str, Inventory]:
        """The inventory of each node by name."""

    @property
    def can_go_on(self) -> bool:
        """Whether another step can run."""

    async def carry_out(self, step: int, nodes: Collection[str] | None = None) -> list[Run]:
        """The runs of the step with this number, on all nodes or on these."""

    def address_of_first(self, nodes: Collection[str]) -> str:
        """An address at which the others of these nodes reach the first."""


class SingleNode:
    """Runs every step on this node alone."""

    can_go_on = True

    def __init__(self, local_runner: LocalRunner, steps: Sequence[SuiteStep]) -> None:
        self.nodes = {local_runner.node: local_runner.inventory}
        self._local_runner = local_runner
        self._steps = steps

    async def carry_out(self, step: int, nodes: Collection[str] | None = None) -> list[Run]:
        return [await self._local_runner.run(self._steps[step].selected)]

    def address_of_first(self, nodes: Collection[str]) -> str:
        return "127.0.0.1"


async def accept(
    plan: SuitePlan,
    local_runner: LocalRunner,
    job: AcceptanceJob | None,
    printer: ProgressPrinter,
    join_within_s: float,
    *,
    deliver: Callable[[AcceptanceReport], Awaitable[None]],
) -> Verdict:
    """Runs the suite and returns the verdict, which all processes of a job share. The leader delivers the report.

    It delivers the report before the members may end: torchrun and srun kill the rest of a job as soon as one process
    exits with an error, and a member does that for the verdict WARN. Raises Unavailable or Refused if the processes of
    the job do not get together.
    """
    if job is None:
        result = await _carry_out(plan, SingleNode(local_runner, plan.steps), printer)
        await deliver(result)
        return result.verdict
    if job.leads:
        async with leading(job, plan, local_runner, join_within_s) as leader:
            result = await _carry_out(plan, leader, printer)
            await deliver(result)
            leader.end(result.verdict)
        return result.verdict
    end = await JobMember(job, plan.selected, local_runner).follow(job.address, plan.digest, join_within_s)
    return end.verdict


@asynccontextmanager
async def leading(
    job: AcceptanceJob, plan: SuitePlan, local_runner: LocalRunner, within_s: float, enough: int | None = None
) -> AsyncIterator[JobLeader]:
    """Leads the job: yields the leader once the processes have joined, this one among them.

    After `within_s` seconds, it goes on with `enough` nodes. Raises as `JobLeader.gather`.
    """
    leader = JobLeader(job.size, plan.selected, plan.digest)
    await leader.listen(job.port)
    member = JobMember(job, plan.selected, local_runner)
    own = asyncio.create_task(member.follow("localhost", plan.digest, within_s), name="own member")
    try:
        await leader.gather(within_s, enough)
        yield leader
    finally:
        await leader.close()
        await asyncio.wait([own], timeout=_LAST_WORDS_S)
        own.cancel()
        await asyncio.wait([own])
        _raise_bug(own)


def _raise_bug(own: "asyncio.Task[EndJob]") -> None:
    """Raises the error that ended the own member, unless it is the early end of the job, which is reported already."""
    error = None if own.cancelled() else own.exception()
    if error is not None and not isinstance(error, MusterError):
        raise error


async def _carry_out(plan: SuitePlan, step_runner: StepRunner, printer: ProgressPrinter) -> AcceptanceReport:
    """Runs every step in turn and returns the report."""
    started_at, start = time.time(), time.monotonic()
    steps = [plugins_step(plan, step_runner)] if plan.failed else []
    for step in steps:
        printer.end(step)
    for number in _numbers(plan, start):
        if not step_runner.can_go_on:
            break
        planned = plan.steps[number]
        printer.begin(planned)
        check = planned.selected.check
        runs = with_outliers(await step_runner.carry_out(number), check.compared)
        steps.append(step_report(planned.section, check.name, check.summary, runs))
        printer.end(steps[-1])
    return report(plan.suite, steps, step_runner.nodes, started_at, time.monotonic() - start)


def _numbers(plan: SuitePlan, start: float) -> Iterator[int]:
    """The numbers of the steps, repeated for `repeat_for_s`; a pass that has begun is finished."""
    while True:
        yield from range(len(plan.steps))
        if time.monotonic() - start >= plan.repeat_for_s:
            return


def plugins_step(plan: SuitePlan, step_runner: StepRunner) -> StepReport:
    """A step that reports plugins that did not load: their checks are missing, and the report must say so."""
    run = plugins_run(next(iter(step_runner.nodes)), plan.failed, time.time())
    return step_report("ENV", run.check, "Plugins that did not load", [run])
