"""A report as JUnit XML for CI systems: a suite for each section, a case for each check and node.

Written by hand: the format has no standard, and CI systems read these few elements. A package for them would be one
more dependency on every node, for twenty lines.
"""

import re
from collections import Counter
from xml.etree.ElementTree import Element, SubElement, tostring

from muster.acceptance import AcceptanceReport, StepReport
from muster.model import Finding, Run, Verdict, format_instant

_ELEMENTS = {Verdict.FAIL: "failure", Verdict.UNKNOWN: "error", Verdict.SKIPPED: "skipped"}

_COUNTED = {"failures": Verdict.FAIL, "errors": Verdict.UNKNOWN, "skipped": Verdict.SKIPPED}

_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids. The output of a program may contain them."""


def junit(report: AcceptanceReport) -> str:
    """The XML document."""
    root = Element("testsuites", {"name": f"muster {report.suite}", "time": f"{report.duration_s:.3f}"})
    for section, steps in report.sections.items():
        runs = [run for step in steps for run in step.runs]
        counts = {name: str(sum(run.verdict is verdict for run in runs)) for name, verdict in _COUNTED.items()}
        suite = SubElement(root, "testsuite", {"name": section, "tests": str(len(runs)), **counts})
        suite.set("timestamp", format_instant(report.started_at))
        suite.set("time", f"{sum(step.duration_s for step in steps):.3f}")
        times: Counter[tuple[str, str]] = Counter()
        for step in steps:
            for run in step.runs:
                times[step.check, run.node] += 1
                _add_case(suite, step, run, times[step.check, run.node])
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: Element, step: StepReport, run: Run, time: int) -> None:
    """Adds a case. If a check runs several times on a node, its name has a number: CI systems keep one per name."""
    name = step.check if time == 1 else f"{step.check} #{time}"
    case = SubElement(suite, "testcase", {"classname": f"{step.section}.{run.node}", "name": name})
    case.set("time", f"{run.duration_s:.3f}")
    lines = "\n".join(map(_line, run.findings))
    if element := _ELEMENTS.get(run.verdict):
        SubElement(case, element, {"message": _text(_worst_first(run))}).text = _text(lines)
    elif lines:
        SubElement(case, "system-out").text = _text(lines)


def _worst_first(run: Run) -> str:
    """The findings, worst first: a CI system shows the first in its list."""
    telling = [finding for finding in run.findings if finding.severity in ("ERROR", "UNKNOWN")]
    return (telling or [*run.findings])[0].summary if run.findings else run.verdict


def _line(finding: Finding) -> str:
    device = "" if finding.device is None else f" on device {finding.device}"
    return f"{finding.severity} {finding.code}{device}: {finding.summary} ({finding.action})"


def _text(value: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", value)
