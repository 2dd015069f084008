"""Measures the check `nccl_tests`: runs one of NVIDIA's programs and reads what it prints."""

from collections.abc import Mapping
from pathlib import Path

from muster import Context, Measurement, Skip
from muster.model import Json
from muster.nouns import count
from muster_plugins.checks.nccl_tests.check import INCOMPLETE, NcclTestsSettings
from muster_plugins.checks.nccl_tests.output import NcclTestsOutput, parse_json, parse_text
from muster_plugins.shared.collectives import table
from muster_plugins.shared.collectives.params import CollectiveParams
from muster_plugins.shared.nccl import transport
from muster_plugins.shared.nccl.environment import environment_for, profiles, shown
from muster_plugins.shared.programs import Completed, find_program
from muster_plugins.shared.real_node import must_be_real
from muster_plugins.shared.torch_device import Place, facts
from muster_plugins.shared.unmeasured import Unmeasured, run_within, tail

_DEFAULT_BYTES = 1 << 30

_MOST_REPORT_BYTES = 16 << 20


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
        problems["incomplete"] = INCOMPLETE
    elif completed.exit_code and not output.wrong:
        problems["failed"] = f"the program ended with {completed.exit_code}, although its results are right"
    return problems
