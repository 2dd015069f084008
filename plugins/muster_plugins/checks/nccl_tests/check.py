"""The check `nccl_tests`: runs NVIDIA's own programs over the GPUs of this node and judges their results.

The programs come from the settings or from PATH. Parameters only choose one of the six that muster knows. One process
drives all GPUs (`-g`), so neither MPI nor a launcher is needed.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from pydantic import Field

from muster import Check, Config, Context, Finding, Measurement, Needs, Reference, Scope, Severity, Skip, hookimpl
from muster.home_path import HomePath
from muster.model import Json
from muster.nouns import count
from muster_plugins.checks.nccl_tests.output import NcclTestsOutput, parse_json, parse_text
from muster_plugins.shared.collectives import table
from muster_plugins.shared.collectives.judgement import FINDS, JUDGED, judge_results
from muster_plugins.shared.collectives.params import CollectiveParams
from muster_plugins.shared.nccl import transport
from muster_plugins.shared.nccl.environment import NcclSettings, environment_for, profiles, shown
from muster_plugins.shared.programs import Completed, find_program
from muster_plugins.shared.real_node import must_be_real
from muster_plugins.shared.torch_device import Place, facts
from muster_plugins.shared.unmeasured import Unmeasured, run_within, tail

NAME = "nccl_tests"

_DEFAULT_BYTES = 1 << 30

_MOST_REPORT_BYTES = 16 << 20


class NcclTestsSettings(NcclSettings):
    """The table `[plugins.nccl_tests]`."""

    directory: HomePath | None = Field(None, description="Where all_reduce_perf and the others are; unset: on PATH")
    arguments: tuple[str, ...] = Field((), description="Additional arguments for the programs")
    json_report: bool = Field(False, description="true: read the JSON of -J, which versions since October 2025 support")


_FINDS = {
    "failed": "the program ended with an error of its own",
    "not_started": "the program exists but could not be started",
    "timed_out": "the program did not finish before the deadline",
    "unreadable": "the output contains lines that are not those of nccl-tests, or no results",
    "incomplete": "the program ended before it had checked its results",
}


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Judges in the same way as `collective`."""
    return [*judge_results(NAME, measurement, references), *_judge_output(measurement.facts)]


def _judge_output(facts: Json) -> list[Finding]:
    """Findings about results that are not complete."""
    problems = facts.get("problems")
    return [
        Finding(
            code=f"{NAME}.{word}", summary=str(summary), severity=Severity.UNKNOWN, evidence={"output": facts["said"]}
        )
        for word, summary in (problems.items() if isinstance(problems, dict) else ())
    ]


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, NcclTestsSettings)


@hookimpl
def muster_checks(config: Config) -> list[Check[CollectiveParams]]:
    return [
        Check(
            name=NAME,
            summary="NVIDIA's own nccl-tests over the GPUs of this node, if they are installed",
            scope=Scope.NODE,
            params=CollectiveParams,
            measure=partial(measure, config.plugin(NAME, NcclTestsSettings)),
            judge=judge,
            timeout_s=300.0,
            needs=Needs.IDLE_NODE,
            quick={"iterations": 3, "warmup": 1},
            judged=JUDGED,
            finds={f"{NAME}.{word}": meaning for word, meaning in (FINDS | _FINDS).items()},
            cost_s=20.0,
            precedent="nccl-tests, Azure node health checks",
        )
    ]


def measure(settings: NcclTestsSettings, params: CollectiveParams, context: Context) -> Measurement:
    """The program's bandwidth and latency for all GPUs of this node together."""
    gpus = _gpus(context)
    command = _command(settings, params, len(gpus))
    known = facts(context, gpus, "auto") | {"machine_type": context.machine_type}
    if known["missing"]:
        return Measurement(facts=known)
    profile = params.profile or settings.profile
    environment = environment_for(profile, settings, settings.interface)
    context.progress(f"running {command[0].name} on {count(len(gpus), 'GPU')}")
    try:
        completed, output = _run(settings, context, command, environment)
    except Unmeasured as reason:
        return reason.measurement(known)
    transports = transport.connections(context.scratch)
    known |= {"collective": params.collective, "backend": "nccl", "nodes": 1, "world_size": len(gpus)}
    known |= table.facts(output.rows)
    known |= transport.facts(params.expect_transport or profiles()[profile].transport, transports, transports)
    known |= transport.explanation(known, context.scratch)
    known |= {"environment": dict(shown(environment)), "said": tail(completed.stdout)}
    known |= {"problems": dict(_problems(completed, output))}
    peak = table.expected_peak(known)
    metrics = table.metrics(output.rows, len(gpus), peak)
    if output.wrong is not None:
        metrics["wrong_elements"] = float(output.wrong)
    drawn: Json = {"table": table.text_table(output.rows, peak), "curves": table.curves(output.rows)}
    return Measurement(metrics=metrics, facts=known | drawn)


def _gpus(context: Context) -> list[Place]:
    """The GPUs of this node. The program finds them itself and needs no torch."""
    must_be_real(context)
    if not context.devices and not context.expected_gpus:
        raise Skip("no GPU here, none expected")
    return [Place(device.index, f"cuda:{device.index}", device.model) for device in context.devices]


def _command(settings: NcclTestsSettings, params: CollectiveParams, gpus: int) -> tuple[Path, list[str]]:
    """The program and its arguments. Raises Skip if it is not installed."""
    name = f"{params.collective}_perf"
    program = find_program(name if settings.directory is None else settings.directory / name)
    if program is None:
        raise Skip(f"no {name} {'on PATH' if settings.directory is None else f'in {settings.directory}'}")
    sizes = params.sizes(_DEFAULT_BYTES)
    chosen = {"b": sizes[0], "e": sizes[-1], "f": params.factor, "n": params.iterations, "w": params.warmup, "g": gpus}
    arguments = [word for option, value in chosen.items() for word in (f"-{option}", str(value))]
    return program, [*arguments, *settings.arguments]


def _run(
    settings: NcclTestsSettings, context: Context, command: tuple[Path, list[str]], environment: Mapping[str, str]
) -> tuple[Completed, NcclTestsOutput]:
    """The program's output. Raises Unmeasured if it has no result."""
    program, arguments = command
    report = context.scratch / "nccl_tests.json"
    argv = [program, *arguments, *(("-J", report) if settings.json_report else ())]
    completed = run_within(context, argv, env={**environment, **transport.logging_to(context.scratch)})
    output = _read_report(report) if settings.json_report else parse_text(completed.stdout)
    if output.rows:
        return completed, output
    said = tail(completed.stdout + completed.stderr)
    if completed.exit_code:
        raise Unmeasured("failed", f"{program.name} ended with {completed.exit_code} and no result", output=said)
    raise Unmeasured("unreadable", f"{program.name} printed nothing that looks like nccl-tests", output=said)


def _read_report(report: Path) -> NcclTestsOutput:
    try:
        with report.open(encoding="utf-8", errors="replace") as file:
            return parse_json(file.read(_MOST_REPORT_BYTES))
    except (OSError, ValueError):  # the program has failed, or does not support -J
        return NcclTestsOutput(rows=[], out_of_bounds=None, checked=False, unreadable=[])


def _problems(completed: Completed, output: NcclTestsOutput) -> dict[str, str]:
    """The problems with the results, by the last word of the finding's code."""
    problems = {}
    if output.unreadable:
        problems["unreadable"] = f"the results contain lines that are no row: {output.unreadable[0]}"
    if output.out_of_bounds is None:
        problems["incomplete"] = _FINDS["incomplete"]
    elif completed.exit_code and not output.wrong:
        problems["failed"] = f"the program ended with {completed.exit_code}, although its results are right"
    return problems
