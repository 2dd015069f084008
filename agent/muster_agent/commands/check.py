"""`muster check`: runs the checks of this node now, without broker or coordinator."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from muster import logs, plugins, references
from muster.check import AnyCheck, describe, judged_metrics
from muster.commands.options import CheckArgument, JsonOption, load_settings, options_of
from muster.commands.verdict_exit import FailOn, FailOnOption, exit_code
from muster.config import Config, Settings
from muster.errors import Refused, Unavailable
from muster.extras import require_extras
from muster.model import Verdict
from muster.params import parse_params
from muster.plugins import Plugins
from muster.reference_file import read_references
from muster.references import Reference
from muster.table import table
from muster.terminal import say, say_items, say_json
from muster_agent.acceptance import files
from muster_agent.acceptance.job import AcceptanceJob, detect
from muster_agent.acceptance.local_runner import LocalRunner, local_runner
from muster_agent.acceptance.procedure import accept
from muster_agent.acceptance.report import AcceptanceReport
from muster_agent.acceptance.selection import find
from muster_agent.acceptance.suites import AcceptanceRequest, SuitePlan, plan_of
from muster_agent.acceptance.terminal import ProgressPrinter, TerminalPrinter, print_result, print_runs
from muster_agent.runs.launcher import launch
from muster_agent.runs.plan_settings import make_plan

app = typer.Typer(help="Checks of this machine; need no broker or coordinator.", no_args_is_help=True)

_TERMINATED = 128 + signal.SIGTERM


@app.command("list")
@options_of(load_settings)
def list_(settings: Settings, as_json: JsonOption = False) -> None:
    """List every check of the installed plugins."""
    _, checks = _load(settings)
    infos = [describe(checks[name]) for name in sorted(checks)]
    if as_json:
        say_items(infos)
    else:
        rows = ((info.name, info.scope, info.needs, _seconds(info.cadence_s), info.summary) for info in infos)
        say(table(("NAME", "SCOPE", "NEEDS", "EVERY", "SUMMARY"), rows))


@app.command()
@options_of(load_settings)
def show(settings: Settings, name: CheckArgument, as_json: JsonOption = False) -> None:
    """Show one check: its needs, findings, judged metrics and parameters."""
    found, checks = _load(settings)
    check = find(checks, name, found.failed)
    info = describe(check)
    if as_json:
        say_json(info)
        return
    facts = info.model_dump(mode="json", exclude={"params", "compared", "judged"})
    say("\n".join(f"{key:<12}{'-' if value is None else value}" for key, value in facts.items()))
    if check.judged:
        say(f"{'judged':<12}{', '.join(check.judged)} (see muster reference list --check {name})")
    if check.finds:
        say("\n" + table(("FINDING", "MEANING"), check.finds.items()))
    if fields := check.params.model_fields:
        rows = ((key, repr(field.get_default()), field.description or "") for key, field in fields.items())
        say("\n" + table(("PARAMETER", "DEFAULT", "MEANING"), rows))


@app.command()
@options_of(load_settings)
def clear(settings: Settings, name: CheckArgument) -> None:
    """Forget the past events that a check reports, after a repair.

    Run it as the agent's user, with the agent's settings: the events are in the agent's data_dir.
    """
    found, checks = _load(settings)
    check = find(checks, name, found.failed)
    if check.clear is None:
        clearable = ", ".join(sorted(name for name, each in checks.items() if each.clear is not None))
        raise Refused(
            f"nothing to clear for {name}: its findings end when a run no longer has them, at the latest when the "
            f"agent has been restarted; checks that can be cleared: {clearable or 'none'}"
        )
    try:
        check.clear()
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
        raise Unavailable(
            f"cannot clear {name}: {problem}; run this as the agent's user, with its settings (--config FILE)"
        ) from None
    say(f"{name}: events until now no longer count from its next run on (data_dir: {settings.data_dir})")


@app.command()
@options_of(load_settings)
def run(
    settings: Settings,
    names: Annotated[list[str] | None, typer.Argument(metavar="CHECK", help="Checks to run, in this order.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run every check.")] = False,
    suite: Annotated[str | None, typer.Option(metavar="NAME", help="Run a suite, with all processes of a job.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use the quick parameters of each check.")] = False,
    param: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Parameter of the checks.")] = None,
    expect_gpus: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Number of GPUs that this machine must have.")
    ] = None,
    report_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for the reports: JSON, JUnit XML and HTML.")
    ] = None,
    report_name: Annotated[str, typer.Option(metavar="NAME", help="Name of the report files.")] = "report",
    verbose: Annotated[bool, typer.Option("--verbose", help="Print measurements, too.")] = False,
    alone: Annotated[bool, typer.Option("--alone", help="Ignore the other processes of the job.")] = False,
    join_within_s: Annotated[
        float, typer.Option(min=1, max=86_400, help="Seconds to wait for the other processes of the job.")
    ] = 120.0,
    fail_on: FailOnOption = FailOn.WARN,
    as_json: JsonOption = False,
) -> None:
    """Run checks one after the other.

    Exit codes: 0 for PASS or SKIPPED, 1 for WARN, 2 for FAIL, 3 for UNKNOWN.
    With --fail-on fail, WARN gives 0 as well, because torchrun takes 1 for a crash.
    """
    require_extras("check run", "agent")
    if expect_gpus is not None:
        settings = settings.model_copy(update={"expected_gpus": expect_gpus})
    found, checks, rows = _load_to_run(settings)
    params = parse_params(param or ())
    asked = AcceptanceRequest(names=tuple(names or ()), every=every, suite=suite, quick=quick, params=params)
    plan = plan_of(asked, settings, checks, found.failed)
    job = detect(os.environ) if suite is not None and not alone else None
    if report_dir is not None and (job is None or job.leads):
        files.make_ready(report_dir, report_name)
    printer = TerminalPrinter(verbose=verbose) if suite is not None and not as_json else ProgressPrinter()
    delivery = _Delivery(suite is not None, as_json, report_dir, report_name)
    with launch(found, checks) as launcher:
        opening = local_runner(launcher, settings, rows, printer.progress)
        verdict = _until_signalled(_accept(opening, plan, job, printer, join_within_s, deliver=delivery.deliver))
    # The verdict matters more than a report that could not be written.
    raise typer.Exit(exit_code(verdict, fail_on) or delivery.exit_code)


def _load(settings: Settings) -> tuple[Plugins, dict[str, AnyCheck]]:
    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    return found, plugins.collect_checks(found)


def _load_to_run(settings: Settings) -> tuple[Plugins, dict[str, AnyCheck], tuple[Reference, ...]]:
    """Plugins, checks and references. Raises SettingsError if the settings of a check or a reference do not fit."""
    found, checks = _load(settings)
    make_plan(checks, settings.checks, complete=not found.failed)
    judged = None if found.failed else judged_metrics(checks)
    return found, checks, (*references.shipped(), *read_references(settings.references_file, judged))


def _until_signalled(work: Coroutine[None, None, Verdict]) -> Verdict:
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise typer.Exit(_TERMINATED) from None


async def _accept(
    opening: AbstractAsyncContextManager[LocalRunner],
    plan: SuitePlan,
    job: AcceptanceJob | None,
    printer: ProgressPrinter,
    join_within_s: float,
    *,
    deliver: Callable[[AcceptanceReport], None],
) -> Verdict:
    if task := asyncio.current_task():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with opening as machine:
        return await accept(plan, machine, job, printer, join_within_s, deliver=deliver)


@dataclass
class _Delivery:
    """Prints the report, and writes its files into `directory` if there is one. `exit_code` is 0 if that succeeded."""

    sections: bool
    as_json: bool
    directory: Path | None
    name: str
    exit_code: int = 0

    def deliver(self, report: AcceptanceReport) -> None:
        _print_report(report, sections=self.sections, as_json=self.as_json)
        if self.directory is None:
            return
        try:
            for path in files.write(report, self.directory, self.name):
                say(f"written: {path}", file=sys.stderr)
        except Unavailable as error:  # the disk may have filled up since the start
            say(f"muster: {error}", file=sys.stderr)
            self.exit_code = error.exit_code


def _print_report(report: AcceptanceReport, *, sections: bool, as_json: bool) -> None:
    """A suite prints its own report; named checks print their runs."""
    runs = [run for step in report.steps for run in step.runs]
    if sections:
        say_json(report) if as_json else print_result(report)
    else:
        say_items(runs) if as_json else print_runs(runs)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:g} s"
