"""Prints an acceptance for people while it runs, and its result."""

import sys
from collections.abc import Iterator, Sequence

from muster.acceptance import AcceptanceReport, StepReport
from muster.model import Action, Finding, Run
from muster.table import table
from muster.terminal import for_terminal, in_one_line, say
from muster.units import metric_text
from muster_agent.acceptance.suites import SuiteStep


class ProgressPrinter:
    """Prints the progress of an acceptance to stderr, and nothing else."""

    def begin(self, step: SuiteStep) -> None:
        """A step begins."""
        self.progress(step.selected.check.name, "started")

    def progress(self, check: str, text: str) -> None:
        """A run reports its progress."""
        say(f"{check}: {in_one_line(text)}", file=sys.stderr)

    def end(self, step: StepReport) -> None:
        """A step has ended."""


class TerminalPrinter(ProgressPrinter):
    """Prints sections, verdicts and findings to stdout as they come; `verbose` adds what was measured."""

    def __init__(self, *, verbose: bool) -> None:
        self._verbose = verbose
        self._section = ""

    def begin(self, step: SuiteStep) -> None:
        if step.section != self._section:
            self._section = step.section
            say(f"== {step.section}")
        super().begin(step)

    def end(self, step: StepReport) -> None:
        say("\n".join(_step_lines(step, verbose=self._verbose)))


def report_text(report: AcceptanceReport) -> str:
    """All that is printed about an acceptance with its measurements, apart from progress."""
    sections = (
        line
        for section, steps in report.sections.items()
        for line in (f"== {section}", *(line for step in steps for line in _step_lines(step, verbose=True)))
    )
    return for_terminal("\n".join([*sections, *_result_lines(report), ""]))


def print_result(report: AcceptanceReport) -> None:
    """The section RESULT."""
    say("\n".join(_result_lines(report)))


def _step_lines(step: StepReport, *, verbose: bool) -> Iterator[str]:
    yield f"{step.check:<14} {step.verdict:<8} {step.duration_s:7.1f} s"
    for run in step.runs:
        where = f"{run.node}: " if len(step.runs) > 1 else ""
        for line in run_lines(run) if verbose else map(finding_line, run.findings):
            yield f"  {where}{line}"


def _result_lines(report: AcceptanceReport) -> Iterator[str]:
    yield "== RESULT"
    rows = ((step.section, step.check, step.verdict, f"{step.duration_s:.1f} s") for step in report.steps)
    yield table(("SECTION", "CHECK", "VERDICT", "TOOK"), rows)
    if report.conclusions:
        concluded = ((each.node, each.decision, each.verdict, each.reason) for each in report.conclusions)
        yield "\n" + table(("NODE", "DECISION", "VERDICT", "REASON"), concluded)
    simulated = " (simulated devices)" if report.simulated else ""
    nodes = f"{len(report.nodes)} node" + ("" if len(report.nodes) == 1 else "s")
    if report.cause:
        yield f"\nCause: {report.cause}"
    yield f"\n{report.suite}: {report.verdict}{simulated}, {nodes}, {report.duration_s:.1f} s"
    if note := no_gpu(report):
        yield note


def no_gpu(report: AcceptanceReport) -> str:
    """Names the nodes on which no GPU was tested, if any."""
    names = ", ".join(report.without_gpu)
    return names and f"No GPU was tested on {names}: none was found there (--expect-gpus says how many there must be)"


def print_runs(runs: Sequence[Run]) -> None:
    """Prints a table of runs, then the findings and measurements of each."""
    rows = ((run.check, _verdict(run), f"{run.duration_s:.2f} s", str(len(run.findings))) for run in runs)
    say(table(("CHECK", "VERDICT", "TOOK", "FINDINGS"), rows))
    for run in runs:
        if lines := run_lines(run):
            say("\n".join([f"\n{run.check}", *(f"  {line}" for line in lines)]))


def _verdict(run: Run) -> str:
    return f"{run.verdict} (simulated)" if run.simulated else run.verdict


def run_lines(run: Run) -> list[str]:
    """One line for each finding and metric of a run."""
    metrics = [f"{name} = {metric_text(value, name)}" for name, value in run.metrics.items()]
    shown = run.facts.get("table")
    return [*map(finding_line, run.findings), *metrics, *(shown.splitlines() if isinstance(shown, str) else [])]


def finding_line(finding: Finding) -> str:
    """A finding with its device and what to do."""
    where = "" if finding.device is None else f" on device {finding.device}"
    action = "" if finding.action is Action.NONE else f" ({finding.action})"
    return f"{finding.severity} {finding.code}{where}: {in_one_line(finding.summary)}{action}"
