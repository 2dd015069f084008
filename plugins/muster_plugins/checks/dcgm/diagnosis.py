"""Runs DCGM's diagnostic for the check `dcgm`, and judges its report."""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue, TypeAdapter

from muster import Action, Context, Finding, Measurement, Reference, Severity, Skip
from muster.model import Json
from muster_plugins.checks.dcgm.advice import UNLISTED, advice
from muster_plugins.checks.dcgm.check import DEADLINES_S, NAME, DcgmParams, DcgmSettings
from muster_plugins.checks.dcgm.report import DcgmOutcome, DcgmReport, UnreadableReport, read_report
from muster_plugins.shared.programs import Completed, find_program
from muster_plugins.shared.unmeasured import Unmeasured, run_within, tail, unmeasured_finding

_METRICS = {"pass": "passed", "fail": "failed", "warn": "warned", "skip": "skipped", "skipped": "skipped"}
"""The metric that counts a result, by its status. Any other status means that the test did not finish."""

_ACTIONS = list(Action)

_SEVERITIES = list(Severity)

_OUTCOMES = TypeAdapter(tuple[DcgmOutcome, ...])


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """The findings. DCGM has judged already; its problems get the severity and action from `advice.toml`."""
    if finding := unmeasured_finding(NAME, measurement):
        return [finding]
    outcomes = _OUTCOMES.validate_python(measurement.facts["outcomes"])
    findings = [_failed(outcome) for outcome in outcomes if outcome.status == "fail"]
    findings += [_warned(outcome) for outcome in outcomes if outcome.status == "warn" or _passed_with_problems(outcome)]
    findings += _named(
        "skipped", Severity.SKIPPED, (each for each in outcomes if _METRICS.get(each.status) == "skipped")
    )
    findings += _named("not_run", Severity.UNKNOWN, (each for each in outcomes if each.status not in _METRICS))
    if error := measurement.facts["runtime_error"]:
        findings.append(_unknown("runtime_error", f"the diagnostic stopped early: {error}"))
    elif not any(measurement.metrics[name] for name in ("passed", "failed", "warned")):
        findings.append(_unknown("nothing_tested", "the diagnostic ran no test"))
    return findings


def _failed(outcome: DcgmOutcome) -> Finding:
    weighed = [advice(problem.warning, problem.error_severity) for problem in outcome.problems] or [UNLISTED]
    return _about(
        outcome,
        "failed",
        max((row.severity for row in weighed), key=_SEVERITIES.index),
        max((row.action for row in weighed), key=_ACTIONS.index),
    )


def _warned(outcome: DcgmOutcome) -> Finding:
    return _about(outcome, "warned", Severity.WARNING, Action.NONE)


def _passed_with_problems(outcome: DcgmOutcome) -> bool:
    return outcome.status == "pass" and bool(outcome.problems)


def _about(outcome: DcgmOutcome, word: str, severity: Severity, action: Action) -> Finding:
    where = f" on {outcome.entity}" if outcome.entity else ""
    why = f": {outcome.problems[0].warning}" if outcome.problems else ""
    return Finding(
        code=f"{NAME}.{word}",
        summary=f"{outcome.test} {word}{where}{why}",
        severity=severity,
        device=outcome.device,
        action=action,
        evidence=outcome.model_dump(mode="json"),
    )


def _named(word: str, severity: Severity, outcomes: Iterable[DcgmOutcome]) -> list[Finding]:
    """At most one finding, which names the tests and their devices."""
    tests: dict[str, list[JsonValue]] = {}
    for outcome in outcomes:
        tests.setdefault(outcome.test, []).append(outcome.entity or "the node")
    if not tests:
        return []
    summary = f"{word.replace('_', ' ')}: {', '.join(tests)}"
    return [Finding(code=f"{NAME}.{word}", summary=summary, severity=severity, evidence={"tests": {**tests}})]


def _unknown(word: str, summary: str) -> Finding:
    return Finding(code=f"{NAME}.{word}", summary=summary, severity=Severity.UNKNOWN)


def measure(settings: DcgmSettings, params: DcgmParams, context: Context) -> Measurement:
    """Counts of results that passed, failed, warned and were skipped. The facts list every result that did not pass."""
    program = find_program(settings.dcgmi)
    if program is None:
        raise Skip(f"{settings.dcgmi} is not installed")
    context.progress(f"dcgmi diag, level {params.level}")
    try:
        done = run_within(
            context, [program, "diag", "-r", str(params.level), "-j"], timeout_s=DEADLINES_S[params.level]
        )
        report = _report(done)
    except Unmeasured as why:
        return why.measurement({"level": params.level})
    return _measurement(report, params.level)


def _report(done: Completed) -> DcgmReport:
    """Reads dcgmi's report before its exit code, because dcgmi also ends with an error if a test fails."""
    said = f"{done.stdout}\n{done.stderr}"
    if "host engine" in said.lower() and "{" not in done.stdout:
        raise Unmeasured("no_hostengine", "nv-hostengine does not answer: start nvidia-dcgm.service", output=tail(said))
    try:
        return read_report(done.stdout)
    except UnreadableReport as garbage:
        summary = f"dcgmi ended with {done.exit_code} and no readable report: {garbage}"
        raise Unmeasured("garbage", summary, output=tail(said)) from None


def _measurement(report: DcgmReport, level: int) -> Measurement:
    metrics = dict.fromkeys(_METRICS.values(), 0.0)
    for outcome in report.outcomes:
        if outcome.status in _METRICS:
            metrics[_METRICS[outcome.status]] += 1
    unusual = [outcome for outcome in report.outcomes if outcome.status != "pass" or outcome.problems]
    facts: Json = {
        "level": level,
        "dcgm": report.dcgm,
        "driver": report.driver,
        "runtime_error": report.runtime_error,
        "outcomes": _OUTCOMES.dump_python(tuple(unusual), mode="json"),
    }
    return Measurement(metrics=dict(metrics), facts=facts)
