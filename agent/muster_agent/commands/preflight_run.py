"""What `muster preflight` does: runs it in child processes of a launcher, and writes what the job needs to start."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from muster import logs, plugins
from muster.acceptance import AcceptanceReport, GangDecision
from muster.config import Config, Settings
from muster.errors import Unavailable
from muster.model import EXIT_CODES
from muster_agent.acceptance.exchange import EndJob, Gang
from muster_agent.acceptance.job import detect
from muster_agent.acceptance.local_runner import LocalRunner, local_runner
from muster_agent.acceptance.preflight import PreflightRequest, preflight
from muster_agent.acceptance.suites import AcceptanceRequest, plan_of
from muster_agent.acceptance.terminal import ProgressPrinter, TerminalPrinter
from muster_agent.commands.check_run import (
    ReportDelivery,
    RunOptions,
    references_here,
    until_signalled,
)
from muster_agent.commands.preflight import ExitFor
from muster_agent.runs.launcher import launch

_EXIT_CODES = {GangDecision.GO: 0, GangDecision.SPARE: 4, GangDecision.BLOCKED: 5}
"""The exit codes of nodes that passed; a rejected node has that of its verdict."""


@dataclass(frozen=True, slots=True)
class GangFiles:
    """Where to write the place of this node among those that go on, and, from rank 0, the names of them all."""

    env: Path | None
    nodes: Path | None

    def write_nodes(self, report: AcceptanceReport) -> None:
        """Writes the names of the nodes that go on; none, if the job cannot start."""
        going = [each.node for each in report.conclusions if each.decision is GangDecision.GO]
        _write(self.nodes, "".join(f"{node}\n" for node in going))

    def write_place(self, node: str, gang: Gang) -> None:
        """Writes the place of a node in the gang as variables of a shell."""
        values = {
            "GANG_RANK": str(gang.nodes.index(node)),
            "GANG_SIZE": str(len(gang.nodes)),
            "GANG_ADDRESS": gang.address,
            "GANG_NODES": ",".join(gang.nodes),
        }
        _write(self.env, "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()))


@dataclass(frozen=True, slots=True)
class PreflightOptions:
    """The options of the command beside those of every report. `need` is None if the job needs all nodes."""

    suite: str
    need: int | None
    gang_files: GangFiles
    exit_for: ExitFor


def run_preflight(options: PreflightOptions, report_options: RunOptions, settings: Settings) -> int:
    """Runs a preflight and returns the exit code. Raises SettingsError if settings do not fit."""
    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    checks = plugins.collect_checks(found)
    rows = references_here(settings, found, checks)
    asked = AcceptanceRequest(names=(), every=False, suite=options.suite, quick=False, params={})
    plan = plan_of(asked, settings, checks, found.failed)
    request = PreflightRequest(plan=plan, need=options.need, join_within_s=report_options.join_within_s)
    job = detect(os.environ)
    _remove(options.gang_files.env)
    if job is None or job.leads:
        _remove(options.gang_files.nodes)
    as_json = report_options.as_json
    printer = ProgressPrinter() if as_json else TerminalPrinter(verbose=report_options.verbose)
    delivery = ReportDelivery(True, report_options, found)

    async def deliver(report: AcceptanceReport) -> None:
        options.gang_files.write_nodes(report)
        await delivery.deliver(report)

    async def work(runner: LocalRunner) -> EndJob:
        if job is None or job.leads:
            await delivery.prepare()
        return await preflight(request, runner, job, printer, deliver=deliver)

    with launch(found, checks) as launcher:
        end = until_signalled(local_runner(launcher, settings, rows, printer.progress), work)
    return _finish(end, options)


def _finish(end: EndJob, options: PreflightOptions) -> int:
    """Writes the place of this node, if the job starts on it, and returns the exit code.

    A report that could not be sent does not keep a job from its nodes.
    """
    if end.conclusion is None:
        raise Unavailable("the process with rank 0 runs `muster check run`; start `muster preflight` on all nodes")
    if end.gang is not None and end.conclusion.decision is GangDecision.GO:
        options.gang_files.write_place(end.conclusion.node, end.gang)
    if end.gang is not None and options.exit_for is ExitFor.JOB:
        return 0
    return _EXIT_CODES.get(end.conclusion.decision, EXIT_CODES[end.conclusion.verdict])


def _remove(path: Path | None) -> None:
    """Removes the file of an earlier preflight. Raises Unavailable if that is not possible."""
    if path is None:
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _not_written(path, error) from None


def _write(path: Path | None, text: str) -> None:
    if path is None:
        return
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _not_written(path, error) from None


def _not_written(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"cannot write {path}: {error.strerror} (see --env-file and --nodes-file)")
