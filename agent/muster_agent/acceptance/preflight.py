"""Runs a preflight: finds the nodes of a job on which it may start, before it starts.

Checks of single nodes come first. Each group check then runs in pairs of those that passed, and over the chosen nodes
together. `gang.py` decides.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from muster.acceptance import AcceptanceReport, GangDecision, NodeConclusion, StepReport, report, step_report
from muster.check import Scope
from muster.errors import Refused
from muster.model import Run
from muster.nouns import count
from muster_agent.acceptance.exchange import EndJob, Gang
from muster_agent.acceptance.gang import GangSelection
from muster_agent.acceptance.job import AcceptanceJob
from muster_agent.acceptance.local_runner import LocalRunner
from muster_agent.acceptance.member import JobMember
from muster_agent.acceptance.procedure import SingleNode, StepRunner, leading, plugins_step
from muster_agent.acceptance.suites import SuitePlan, SuiteStep
from muster_agent.acceptance.terminal import ProgressPrinter

Deliver = Callable[[AcceptanceReport], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightRequest:
    """`need` is the number of nodes that the job needs, None for all. The processes have `join_within_s` to meet."""

    plan: SuitePlan
    need: int | None
    join_within_s: float


async def preflight(
    request: PreflightRequest,
    local_runner: LocalRunner,
    job: AcceptanceJob | None,
    printer: ProgressPrinter,
    *,
    deliver: Deliver,
) -> EndJob:
    """What it came to for this node. The process with rank 0 delivers the report before the others may end.

    Raises Unavailable or Refused if the processes do not get together.
    """
    plan = request.plan
    if job is None:
        runner = SingleNode(local_runner, plan.steps)
        ends = await _Preflight(request, runner, printer).carry_out(deliver)
    elif job.leads:
        async with leading(job, plan, local_runner, request.join_within_s, request.need) as leader:
            if leader.missing:
                ranks = ", ".join(map(str, leader.missing))
                printer.progress("preflight", f"leaves out these ranks, which did not connect: {ranks}")
            ends = await _Preflight(request, leader, printer).carry_out(deliver)
            leader.end_each(ends)
    else:
        return await JobMember(job, plan.selected, local_runner).follow(job.address, plan.digest, request.join_within_s)
    return ends[local_runner.node]


class _Preflight:
    """One preflight over the nodes of a step runner."""

    def __init__(self, request: PreflightRequest, runner: StepRunner, printer: ProgressPrinter) -> None:
        nodes = [*runner.nodes]
        self._plan = request.plan
        self._need = len(nodes) if request.need is None else request.need
        if self._need > len(nodes):
            raise Refused(f"--need {self._need} is more than the {count(len(nodes), 'node')} of the job")
        self._runner = runner
        self._printer = printer
        self._selection = GangSelection(nodes, self._need)
        self._steps: list[StepReport] = []

    async def carry_out(self, deliver: Deliver) -> dict[str, EndJob]:
        """Runs everything, delivers the report, and returns the end for each node."""
        started_at, start = time.time(), time.monotonic()
        if self._plan.failed:
            self._steps.append(plugins_step(self._plan, self._runner))
            self._printer.end(self._steps[-1])
            self._selection.note_alone(self._steps[-1].runs)
        await self._run_alone()
        await self._run_pairs()
        await self._run_together()
        conclusions = self._selection.conclusions()
        took_s = time.monotonic() - start
        result = report(self._plan.suite, self._steps, self._runner.nodes, started_at, took_s, conclusions=conclusions)
        await deliver(result)
        gang = self._gang(conclusions)
        return {each.node: EndJob(verdict=result.verdict, conclusion=each, gang=gang) for each in conclusions}

    def _gang(self, conclusions: list[NodeConclusion]) -> Gang | None:
        nodes = [each.node for each in conclusions if each.decision is GangDecision.GO]
        return Gang(nodes=tuple(nodes), address=self._runner.address_of_first(nodes)) if nodes else None

    async def _run_alone(self) -> None:
        for number in self._numbers(Scope.NODE):
            planned = self._plan.steps[number]
            if not (fit := self._selection.fit):
                return
            self._printer.begin(planned)
            runs = await self._runner.carry_out(number, fit)
            self._note(planned, runs)
            self._selection.note_alone(runs)

    async def _run_pairs(self) -> None:
        if len(self._runner.nodes) == 1:
            return
        for number in self._numbers(Scope.GROUP):
            planned = SuiteStep("PAIRS", self._plan.steps[number].selected)
            self._selection.begin_pairs(planned.selected.check.name)
            while pairs := self._selection.next_pairs():
                self._printer.begin(planned)
                found = await asyncio.gather(*(self._runner.carry_out(number, pair) for pair in pairs))
                self._note(planned, [run for runs in found for run in runs])
                self._selection.note_pairs(zip(pairs, found, strict=True))
            self._selection.end_pairs()

    async def _run_together(self) -> None:
        """Group checks over the chosen nodes; again with others if a node is lost."""
        for number in self._numbers(Scope.GROUP):
            planned = self._plan.steps[number]
            choose_again = True
            while choose_again and (chosen := self._selection.chosen):
                self._printer.begin(planned)
                runs = await self._runner.carry_out(number, chosen)
                self._note(planned, runs)
                choose_again = self._selection.note_together(runs)

    def _numbers(self, scope: Scope) -> Collection[int]:
        return [number for number, step in enumerate(self._plan.steps) if step.selected.check.scope is scope]

    def _note(self, planned: SuiteStep, runs: list[Run]) -> None:
        check = planned.selected.check
        self._steps.append(step_report(planned.section, check.name, check.summary, runs))
        self._printer.end(self._steps[-1])
