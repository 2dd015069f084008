"""Parses a script's stdout: a JSON object of muster's form, or the text and performance data of a Nagios plugin.

    {"metrics": {"<name>": <number or list with one per device>},
     "findings": [{"code": "<what>", "summary": "<a sentence>", "severity": "WARNING", "device": 0,
                   "action": "RESET_GPU", "evidence": {}}]}

Both keys are optional, and others are ignored. A finding needs only code, summary and severity. The object begins on a
new line and may span several; text may precede it. The text of a Nagios plugin is `<summary> |
<label>=<value>[<unit>];<warn>;<crit>;<min>;<max> …`.
"""

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from muster import Action, Finding, Severity
from muster.explain import explain
from muster.model import MOST_DEVICES, Code, Data, Json, Metric
from muster_plugins.checks.script.summary import summary_line
from muster_plugins.shared.program_json import json_in

MOST_METRICS = 256
_MOST_FINDINGS = 64
_MOST_CHARACTERS = 500
_MOST_EVIDENCE_BYTES = 8192


class UnreadableOutput(Exception):
    """The output has a JSON object that is unreadable or not of the form."""


class ScriptOutput(NamedTuple):
    """A script's parsed output. `units` holds the units of performance data by metric."""

    summary: str
    metrics: dict[str, Metric]
    findings: tuple["ReportedFinding", ...]
    units: dict[str, str]


def _bounded(evidence: Json) -> Json:
    try:
        size = len(to_json(evidence))
    except PydanticSerializationError:
        raise ValueError("must be text that UTF-8 can write") from None
    if size > _MOST_EVIDENCE_BYTES:
        raise ValueError(f"must have at most {_MOST_EVIDENCE_BYTES} bytes as JSON")
    return evidence


class ReportedFinding(Data):
    """A finding as a script reports it. Its code is without the name of the check."""

    code: str = Field(pattern=r"^[a-z0-9][a-z0-9_]{0,63}$")
    summary: str = Field(min_length=1, max_length=_MOST_CHARACTERS)
    severity: Severity
    device: int | None = Field(None, ge=0, lt=MOST_DEVICES)
    action: Action = Action.NONE
    evidence: Annotated[Json, AfterValidator(_bounded)] = {}

    def of(self, check: str) -> Finding:
        """The finding of the check `check`."""
        return Finding(**self.model_dump() | {"code": f"{check}.{self.code}"})


class _ScriptReport(Data):
    metrics: dict[Annotated[Code, Field(max_length=128)], Metric] = Field({}, max_length=MOST_METRICS)
    findings: tuple[ReportedFinding, ...] = Field((), max_length=_MOST_FINDINGS)


def read_output(stdout: str, *, performance_data: bool, failed: bool = False) -> ScriptOutput:
    """Parses `stdout`, of a script that has `failed` or not, with or without a JSON object.

    Raises UnreadableOutput if the object cannot be read.
    """
    if begin := _OBJECT.search(stdout):
        report = _read_object(stdout[begin.end() - 1 :])
        return ScriptOutput(_summary(stdout[: begin.start()], failed), report.metrics, report.findings, {})
    if performance_data and not stdout.lstrip().startswith("|"):  # a table begins so, and no Nagios plugin
        return _read_performance_data(stdout, failed)
    return ScriptOutput(_summary(stdout, failed), {}, (), {})


_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)


def _read_object(text: str) -> _ScriptReport:
    try:
        return _ScriptReport.model_validate(json_in(text))
    except ValidationError as error:
        raise UnreadableOutput("; ".join(explain(_ScriptReport, error, what="key")[:3])) from None
    except ValueError as error:
        raise UnreadableOutput(f"is not JSON: {error}") from None


def _summary(text: str, failed: bool) -> str:
    return summary_line(text, failed=failed)[:_MOST_CHARACTERS]


_DATUM = re.compile(
    r"""(?<!\S)(?:'(?P<quoted>(?:[^']|'')+)'|(?P<plain>[^\s'=|]+))
        =(?P<value>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?P<unit>[a-zA-Z%]*)(?=[;\s]|$)""",
    re.VERBOSE,
)


_NOT_IN_A_NAME = re.compile("[^!-~]")
"""Names of metrics have no spaces, which labels may have: `'/srv/my disk'=5GB`."""


def _read_performance_data(stdout: str, failed: bool) -> ScriptOutput:
    first, _, rest = stdout.lstrip().partition("\n")
    said, _, data = first.partition("|")
    more, _, more_data = rest.partition("|")
    data += "\n" + more_data
    metrics: dict[str, Metric] = {}
    units: dict[str, str] = {}
    for found in _DATUM.finditer(data):
        if len(metrics) == MOST_METRICS:
            break
        label = _NOT_IN_A_NAME.sub("_", found["plain"] or found["quoted"].replace("''", "'"))[:128]
        metrics[label] = float(found["value"])
        if found["unit"]:
            units[label] = found["unit"]
    return ScriptOutput(_summary(f"{said}\n{more}", failed), metrics, (), units)
