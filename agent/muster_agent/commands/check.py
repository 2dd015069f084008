"""`muster check`: runs the checks of this node now, without broker or coordinator."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from muster import logs, plugins, references
from muster.check import AnyCheck, describe, judged_metrics
from muster.commands.options import ConfigOption, JsonOption, load_settings
from muster.config import Config, Settings
from muster.errors import Refused, Unavailable
from muster.extras import require_extras
from muster.model import EXIT_CODES
from muster.params import parse_params
from muster.plugins import Plugins
from muster.reference_file import read_references
from muster.table import table
from muster.terminal import say, say_json
from muster_agent.acceptance import files
from muster_agent.acceptance.bench import Bench, bench
from muster_agent.acceptance.job import Job, detect
from muster_agent.acceptance.procedure import AcceptanceResult, accept
from muster_agent.acceptance.report import AcceptanceReport
from muster_agent.acceptance.selection import find
from muster_agent.acceptance.suites import AcceptanceRequest, SuitePlan, plan_of
from muster_agent.acceptance.terminal import ProgressPrinter, TerminalPrinter, print_result, print_runs
from muster_agent.runs.launcher import launch
from muster_agent.runs.plan_settings import make_plan

app = typer.Typer(help="Checks of this machine; no broker or coordinator is needed.", no_args_is_help=True)

_TERMINATED = 128 + signal.SIGTERM


@app.command("list")
def list_(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Lists every check that the plugins bring."""
    _, checks = _load(load_settings(config))
    infos = [describe(checks[name]) for name in sorted(checks)]
    if as_json:
        _print_items(infos)
    else:
        rows = ((info.name, info.scope, info.needs, _seconds(info.cadence_s), info.summary) for info in infos)
        say(table(("NAME", "SCOPE", "NEEDS", "EVERY", "SUMMARY"), rows))


@app.command()
def show(name: str, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Shows one check: needs, findings, judged metrics and parameters."""
    found, checks = _load(load_settings(config))
    check = find(checks, name, found.failed)
    info = describe(check)
    if as_json:
        say_json(info.model_dump(mode="json"))
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
def clear(name: str, config: ConfigOption = None) -> None:
    """Forget what a check has seen happen on this node, after a repair."""
    found, checks = _load(load_settings(config))
    check = find(checks, name, found.failed)
    if check.clear is None:
        clearable = ", ".join(sorted(name for name, each in checks.items() if each.clear is not None))
        raise Refused(f"{name} remembers nothing that can be cleared; checks that do: {clearable or 'none'}")
    try:
        check.clear()
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
        raise Unavailable(f"cannot clear {name}: {problem}; run this as the agent's user, with its settings") from None
    say(f"{name}: nothing that happened until now counts from its next run on")


@app.command()
def run(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Checks to run, in this order.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run every check.")] = False,
    suite: Annotated[str | None, typer.Option(metavar="NAME", help="Run a suite, with all processes of a job.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Take each check's quick parameters.")] = False,
    param: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Set a parameter.")] = None,
    expect_gpus: Annotated[int | None, typer.Option(min=0, metavar="N", help="GPUs that must be here.")] = None,
    report_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Write JSON, JUnit XML and HTML.")] = None,
    report_name: Annotated[str, typer.Option(metavar="NAME", help="Name of the written files.")] = "report",
    verbose: Annotated[bool, typer.Option("--verbose", help="Print what was measured, too.")] = False,
    alone: Annotated[bool, typer.Option("--alone", help="Leave the other processes of a job out.")] = False,
    join_within_s: Annotated[
        float, typer.Option(min=1, max=86_400, help="How long to wait for these, in seconds.")
    ] = 120.0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Runs checks one after the other. Exits with 0 for PASS or SKIPPED, 1 for WARN, 2 for FAIL, 3 for UNKNOWN."""
    require_extras("check run", "agent")
    settings = load_settings(config)
    if expect_gpus is not None:
        settings = settings.model_copy(update={"expected_gpus": expect_gpus})
    found, checks = _load(settings)
    make_plan(checks, settings.checks, complete=not found.failed)  # refuses settings that do not fit
    judged = None if found.failed else judged_metrics(checks)
    rows = (*references.shipped(), *read_references(settings.references_file, judged))
    asked = AcceptanceRequest(
        names=tuple(names or ()), every=every, suite=suite, quick=quick, params=parse_params(param or ())
    )
    plan = plan_of(asked, settings, checks, found.failed)
    job = detect(os.environ) if suite is not None and not alone else None
    if report_dir is not None and (job is None or job.leads):
        files.make_ready(report_dir, report_name)
    audience = TerminalPrinter(verbose=verbose) if suite is not None and not as_json else ProgressPrinter()
    with launch(found, checks) as launcher:
        opening = bench(launcher, settings, rows, audience.progress)
        accepted = _until_signalled(_accept(opening, plan, job, audience, join_within_s))
    if accepted.report is not None:
        _print_report(accepted.report, sections=suite is not None, as_json=as_json)
        if report_dir is not None:
            _write(accepted.report, report_dir, report_name)
    raise typer.Exit(EXIT_CODES[accepted.verdict])


def _load(settings: Settings) -> tuple[Plugins, dict[str, AnyCheck]]:
    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    return found, plugins.collect_checks(found)


def _until_signalled(work: Coroutine[None, None, AcceptanceResult]) -> AcceptanceResult:
    try:
        return asyncio.run(work)
    except asyncio.CancelledError:
        raise typer.Exit(_TERMINATED) from None


async def _accept(
    opening: AbstractAsyncContextManager[Bench],
    plan: SuitePlan,
    job: Job | None,
    audience: ProgressPrinter,
    join_within_s: float,
) -> AcceptanceResult:
    if task := asyncio.current_task():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with opening as machine:
        return await accept(plan, machine, job, audience, join_within_s)


def _write(report: AcceptanceReport, directory: Path, name: str) -> None:
    """Writes the files. A disk that has filled up meanwhile must not hide a verdict that is not good."""
    try:
        for path in files.write(report, directory, name):
            say(f"written: {path}", file=sys.stderr)
    except Unavailable as error:
        say(f"muster: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_CODES[report.verdict] or error.exit_code) from None


def _print_report(report: AcceptanceReport, *, sections: bool, as_json: bool) -> None:
    """A suite has a report of its own; checks that were named give their runs."""
    runs = [run for step in report.steps for run in step.runs]
    if sections:
        say_json(report) if as_json else print_result(report)
    else:
        _print_items(runs) if as_json else print_runs(runs)


def _print_items(items: Iterable[Any]) -> None:
    say_json({"items": [item.model_dump(mode="json") for item in items], "next_cursor": None})


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:g} s"
