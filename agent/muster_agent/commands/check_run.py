"""What `muster check run` does: runs the checks in child processes of a launcher, and delivers the report."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer

from muster import references
from muster.acceptance import AcceptanceReport
from muster.check import AnyCheck, judged_metrics
from muster.client import Client
from muster.commands.verdict_exit import FailOn, exit_code
from muster.config import Settings
from muster.errors import MusterError, Unavailable
from muster.model import Verdict
from muster.plugins import Plugins
from muster.reference_file import read_references
from muster.references import Reference
from muster.start import TERMINATED
from muster.terminal import say, say_items, say_json
from muster_agent.acceptance import files
from muster_agent.acceptance.job import detect
from muster_agent.acceptance.local_runner import LocalRunner, local_runner
from muster_agent.acceptance.procedure import accept
from muster_agent.acceptance.sending import may_send, send
from muster_agent.acceptance.storing import ACCESS, documents, store
from muster_agent.acceptance.suites import AcceptanceRequest, plan_of
from muster_agent.acceptance.terminal import ProgressPrinter, TerminalPrinter, print_result, print_runs
from muster_agent.runs.launcher import launch
from muster_agent.runs.plan_settings import make_plan

R = TypeVar("R")

Work = Callable[[LocalRunner], Coroutine[None, None, R]]
"""What is done with a runner of checks on this node."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of the command beside those that say what to run. The report is sent to `coordinator`, if given."""

    report_dir: Path | None
    report_name: str
    coordinator: Client | None
    store: bool
    verbose: bool
    alone: bool
    join_within_s: float
    fail_on: FailOn
    as_json: bool


def run_checks(
    asked: AcceptanceRequest, options: RunOptions, settings: Settings, found: Plugins, checks: dict[str, AnyCheck]
) -> int:
    """Runs what is asked for and returns the exit code. Raises SettingsError if settings or references do not fit."""
    rows = references_here(settings, found, checks)
    plan = plan_of(asked, settings, checks, found.failed)
    is_suite = asked.suite is not None
    job = None if options.alone or not (is_suite or plan.has_groups) else detect(os.environ)
    printer = TerminalPrinter(verbose=options.verbose) if is_suite and not options.as_json else ProgressPrinter()
    delivery = ReportDelivery(is_suite, options, found)

    async def work(runner: LocalRunner) -> Verdict:
        if job is None or job.leads:
            await delivery.prepare()
        return await accept(plan, runner, job, printer, options.join_within_s, deliver=delivery.deliver)

    with launch(found, checks) as launcher:
        verdict = until_signalled(local_runner(launcher, settings, rows, printer.progress), work)
    # The verdict matters more than a report that could not be written.
    return exit_code(verdict, options.fail_on) or delivery.exit_code


def references_here(settings: Settings, found: Plugins, checks: dict[str, AnyCheck]) -> tuple[Reference, ...]:
    """The references of this machine. Raises SettingsError if they or the settings of a check do not fit the checks."""
    make_plan(checks, settings.checks, complete=not found.failed)
    judged = None if found.failed else judged_metrics(checks)
    return (*references.shipped(), *read_references(settings.references_file, judged))


def until_signalled(opening: AbstractAsyncContextManager[LocalRunner], work: Work[R]) -> R:
    """The result of the work. SIGTERM ends it and what it started; then the command ends with 143."""
    try:
        return asyncio.run(_opened(opening, work))
    except asyncio.CancelledError:
        raise typer.Exit(TERMINATED) from None


async def _opened(opening: AbstractAsyncContextManager[LocalRunner], work: Work[R]) -> R:
    if task := asyncio.current_task():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with opening as runner:
        return await work(runner)


@dataclass
class ReportDelivery:
    """Prints the report; writes its files, sends and stores it, if wanted. `exit_code` is 0 if all succeeded."""

    sections: bool
    options: RunOptions
    plugins: Plugins
    exit_code: int = 0

    async def prepare(self) -> None:
        """Raises Refused or Unavailable, before the runs begin, if the report could not be delivered."""
        options = self.options
        if options.report_dir is not None:
            files.make_ready(options.report_dir, options.report_name)
        if options.coordinator is not None and (warning := await asyncio.to_thread(may_send, options.coordinator)):
            say(f"muster: {warning}", file=sys.stderr)
        if options.store:
            await store(self.plugins, (ACCESS,))

    async def deliver(self, report: AcceptanceReport) -> None:
        _print_report(report, sections=self.sections, as_json=self.options.as_json)
        if self.options.report_dir is not None:
            self._write(report, self.options.report_dir)
        if self.options.coordinator is not None:
            # In a thread: the other processes of the job are still connected.
            await asyncio.to_thread(self._send, report, self.options.coordinator)
        if self.options.store:
            await self._store(report)

    def _write(self, report: AcceptanceReport, directory: Path) -> None:
        try:
            for path in files.write(report, directory, self.options.report_name):
                say(f"written: {path}", file=sys.stderr)
        except Unavailable as error:  # the disk may have filled up since the start
            self._fail(error)

    def _send(self, report: AcceptanceReport, coordinator: Client) -> None:
        try:
            say(f"sent: {send(coordinator, report)}", file=sys.stderr)
        except MusterError as error:
            self._fail(error)
            self._keep(report, "; send it later: muster check send {path}")

    async def _store(self, report: AcceptanceReport) -> None:
        artifacts = documents(report)
        try:
            said = await store(self.plugins, artifacts)
        except Unavailable as error:
            self._fail(error)
            self._keep(report)
        else:
            say(f"stored: {artifacts[0].key.rpartition('/')[0]} ({said})", file=sys.stderr)

    def _keep(self, report: AcceptanceReport, advice: str = "") -> None:
        """Makes sure that the report is in a file, and says where and what to do with it."""
        path = Path(f"muster-report-{report.started_at:.0f}.json")
        if self.options.report_dir is not None:
            path = self.options.report_dir / f"{self.options.report_name}.json"
        try:
            files.write_data(report, path)
        except Unavailable as error:
            self._fail(error)
        else:
            say(f"written: {path}{advice.format(path=path)}", file=sys.stderr)

    def _fail(self, error: MusterError) -> None:
        say(f"muster: {error}", file=sys.stderr)
        self.exit_code = error.exit_code


def _print_report(report: AcceptanceReport, *, sections: bool, as_json: bool) -> None:
    """A suite prints its own report; named checks print their runs."""
    runs = [run for step in report.steps for run in step.runs]
    if sections:
        say_json(report) if as_json else print_result(report)
    else:
        say_items(runs) if as_json else print_runs(runs)
