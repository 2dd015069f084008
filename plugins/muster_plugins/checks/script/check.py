"""The checks `script.<name>`: executables of the operator, such as Nagios plugins, run unchanged.

Only the settings of the node define scripts; nothing sent over the network can. A script gets no input and the
environment of the agent, with MUSTER_NODE (the node's name), MUSTER_RUN (the id of the run) and TMPDIR. TMPDIR is an
empty directory, which is also the working directory and is removed after the run.
"""

from collections.abc import Mapping
from functools import partial

from pydantic import JsonValue, TypeAdapter

from muster import Check, Context, Finding, Measurement, Reference, Scope, Severity, judge_value
from muster.model import Json
from muster_plugins.checks.script.output import ReportedFinding, ScriptOutput, UnreadableOutput, read_output
from muster_plugins.checks.script.settings import ScriptCheck
from muster_plugins.checks.script.trust import distrust
from muster_plugins.shared.no_params import NoParams
from muster_plugins.shared.programs import MOST_OUTPUT_BYTES
from muster_plugins.shared.unmeasured import Unmeasured, run_within, tail, unmeasured_finding

_SAYS: Mapping[str, Mapping[int, tuple[str, Severity] | None]] = {
    "nagios": {
        0: None,
        1: ("warning", Severity.WARNING),
        2: ("failed", Severity.ERROR),
        3: ("unknown", Severity.UNKNOWN),
    },
    "npd": {0: None, 1: ("failed", Severity.ERROR), 2: ("unknown", Severity.UNKNOWN)},
}
"""The name of the finding by protocol and exit code: Monitoring Plugins guidelines, node-problem-detector."""

_FINDS = {
    "failed": "the script reports a problem",
    "warning": "the script warns",
    "unknown": "the script reports that it could not find out",
    "unexpected_exit": "the script ended by a signal, or with a code that its protocol does not define",
    "out_of_bounds": "a metric of the script is beyond the operator's reference",
    "truncated": "the script printed more than is read, and the rest was dropped",
    "garbage": "the script's JSON cannot be read or does not have the documented form",
    "untrusted": "the script is missing, is not executable, or any user could replace it",
    "not_started": "the script could not be started",
    "timed_out": "the script did not finish before its deadline and was killed",
    "*": "the findings of the script itself, under its own codes",
}

_FINDINGS = TypeAdapter(tuple[ReportedFinding, ...])


def judge(name: str, measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """The script's own findings, the finding of its exit code, and metrics judged by the operator's references."""
    if finding := unmeasured_finding(name, measurement):
        return [finding]
    findings = [reported.of(name) for reported in _FINDINGS.validate_python(measurement.facts.get("findings", ()))]
    if reason := measurement.facts.get("garbage"):
        findings.append(_finding(name, "garbage", Severity.UNKNOWN, f"the JSON on stdout {reason}", measurement))
    if measurement.facts["truncated"]:
        summary = f"printed more than {MOST_OUTPUT_BYTES >> 20} MiB, the rest of which was not read"
        findings.append(_finding(name, "truncated", Severity.UNKNOWN, summary, measurement))
    findings += _of_exit_code(name, measurement, {finding.severity for finding in findings})
    for metric, reference in references.items():
        value = measurement.metrics.get(metric)
        by_device = dict(enumerate(value)) if isinstance(value, list) else {None: value}
        for device, number in by_device.items():
            findings += judge_value(number, reference, code=f"{name}.out_of_bounds", device=device)
    return findings


def _of_exit_code(name: str, measurement: Measurement, reported: set[Severity]) -> list[Finding]:
    """The finding of the exit code; none if the script itself reports a finding of that severity."""
    exit_code = measurement.facts["exit_code"]
    says = _SAYS[str(measurement.facts["protocol"])]
    assert isinstance(exit_code, int)
    if exit_code not in says:
        summary = f"exit code {exit_code}" if exit_code >= 0 else f"killed by signal {-exit_code}"
        return [_finding(name, "unexpected_exit", Severity.UNKNOWN, summary, measurement)]
    said = says[exit_code]
    if said is None or said[1] in reported:
        return []
    code, severity = said
    summary = str(measurement.facts["summary"]) or f"exit code {exit_code}, without any output"
    return [_finding(name, code, severity, summary, measurement)]


def _finding(name: str, code: str, severity: Severity, summary: str, measurement: Measurement) -> Finding:
    evidence: Json = {key: measurement.facts[key] for key in ("exit_code", "stderr") if measurement.facts.get(key)}
    return Finding(code=f"{name}.{code}", summary=summary, severity=severity, evidence=evidence)


def make_check(name: str, script: ScriptCheck) -> Check[NoParams]:
    """The check `name`, which runs the script."""
    return Check(
        name=name,
        summary=f"Output of the operator's {script.path.name}",
        scope=Scope.NODE,
        params=NoParams,
        measure=partial(measure, script),
        judge=partial(judge, name),
        timeout_s=script.timeout_s,
        cadence_s=script.interval_s,
        needs=script.needs,
        finds={f"{name}.{code}": meaning for code, meaning in _FINDS.items()},
        precedent="Nagios plugins, node-problem-detector, NHC",
    )


def measure(script: ScriptCheck, params: NoParams, context: Context) -> Measurement:
    """The script's metrics. The facts hold its exit code, the line that says what it found and its own findings."""
    facts: Json = {"path": str(script.path), "protocol": script.protocol}
    try:
        if reason := distrust(script.path):  # again, because the file may have changed since the start
            raise Unmeasured("untrusted", reason)
        done = run_within(
            context,
            [script.path, *script.args],
            env={"MUSTER_NODE": context.node, "TMPDIR": str(context.scratch)},
            cwd=context.scratch,
        )
    except Unmeasured as why:
        return why.measurement(facts)
    facts |= {"exit_code": done.exit_code, "stderr": tail(done.stderr), "truncated": done.truncated}
    try:
        output = read_output(done.stdout, performance_data=script.protocol == "nagios", failed=done.exit_code != 0)
    except UnreadableOutput as garbage:
        return Measurement(facts=facts | {"garbage": str(garbage), "summary": ""})
    return Measurement(metrics=output.metrics, facts=facts | _facts(output))


def _facts(output: ScriptOutput) -> Json:
    units: dict[str, JsonValue] = dict(output.units)
    findings: list[JsonValue] = _FINDINGS.dump_python(output.findings, mode="json")
    return {"summary": output.summary, "units": units, "findings": findings}
