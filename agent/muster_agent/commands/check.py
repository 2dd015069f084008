"""`muster check`: the checks of this machine, run here and now without broker or coordinator."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from muster import logs, plugins, references
from muster.check import AnyCheck, Scope, describe
from muster.commands.options import ConfigOption, JsonOption, load_settings
from muster.config import Config, Settings
from muster.errors import Refused
from muster.model import EXIT_CODES, Action, Finding, Run, worst
from muster.params import parse_params
from muster.plugins import Plugins
from muster.table import table
from muster.wire.messages import new_id
from muster_agent.launcher import Launcher, launch
from muster_agent.orders import Order, RanksReady, RunEnded, RunnerEvent, RunProgressed, Surroundings
from muster_agent.planning import make_plan, memory_limit_bytes
from muster_agent.plugins_run import plugins_run
from muster_agent.ports import alone
from muster_agent.resident import Resident
from muster_agent.runner import Runner
from muster_agent.selection import Selected, find, select_all, select_named

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
        print(table(("NAME", "SCOPE", "NEEDS", "EVERY", "SUMMARY"), rows))


@app.command()
def show(name: str, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Shows one check and its parameters."""
    found, checks = _load(load_settings(config))
    info = describe(find(checks, name, found.failed))
    if as_json:
        print(json.dumps(info.model_dump(mode="json")))
        return
    facts = info.model_dump(mode="json", exclude={"params"})
    print("\n".join(f"{key:<12}{'-' if value is None else value}" for key, value in facts.items()))
    fields = checks[name].params.model_fields
    if fields:
        rows = ((key, repr(field.get_default()), field.description or "") for key, field in fields.items())
        print("\n" + table(("PARAMETER", "DEFAULT", "MEANING"), rows))


@app.command()
def run(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME…", help="Checks to run, in this order.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run every check.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Take each check's quick parameters.")] = False,
    param: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Set a parameter.")] = None,
    expect_gpus: Annotated[int | None, typer.Option(min=0, metavar="N", help="GPUs that must be here.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Runs checks one after the other. Exits with 0 for PASS or SKIPPED, 1 for WARN, 2 for FAIL, 3 for UNKNOWN."""
    settings = load_settings(config)
    if expect_gpus is not None:
        settings = settings.model_copy(update={"expected_gpus": expect_gpus})
    found, checks = _load(settings)
    make_plan(checks, settings.checks, complete=not found.failed)  # refuses settings that do not fit
    params = parse_params(param or ())
    if every and not names:
        selected = select_all([checks[name] for name in sorted(checks)], settings.checks, params, quick=quick)
    elif names and not every:
        named = [find(checks, name, found.failed) for name in dict.fromkeys(names)]
        selected = select_named(named, settings.checks, params, quick=quick)
    else:
        raise Refused(f"either name the checks to run, or give --all (valid: {', '.join(sorted(checks))})")
    with launch(found, checks) as launcher:
        runs = _until_signalled(launcher, settings, selected)
    if every and found.failed:
        runs.append(plugins_run(settings.node, found.failed, time.time()))
    _print_items(runs) if as_json else _print_runs(runs)
    raise typer.Exit(EXIT_CODES[worst([run.verdict for run in runs])])


def _load(settings: Settings) -> tuple[Plugins, dict[str, AnyCheck]]:
    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    return found, plugins.collect_checks(found)


def _until_signalled(launcher: Launcher, settings: Settings, selected: Sequence[Selected]) -> list[Run]:
    try:
        return asyncio.run(_run_each(launcher, settings, selected))
    except asyncio.CancelledError:
        raise typer.Exit(_TERMINATED) from None


async def _run_each(launcher: Launcher, settings: Settings, selected: Sequence[Selected]) -> list[Run]:
    """Runs one check after the other; whatever ends this early, what runs is killed and cleaned up after."""
    if task := asyncio.current_task():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    events: asyncio.Queue[RunnerEvent] = asyncio.Queue()
    memory_limit = memory_limit_bytes(settings.agent)
    resident = Resident(launcher, memory_limit)
    surroundings = Surroundings(
        node=settings.node,
        devices=(),
        expected_gpus=settings.expected_gpus,
        references=references.shipped(),
        memory_limit_bytes=memory_limit,
    )
    runner = Runner(launcher, resident, surroundings, events.put_nowait)
    try:
        found = await resident.inventory()
        runner.surroundings = replace(surroundings, devices=found.devices if found else ())
        return [await _run_one(runner, events, one) for one in selected]
    finally:
        await runner.close()


async def _run_one(runner: Runner, events: asyncio.Queue[RunnerEvent], one: Selected) -> Run:
    order, listener = Order(run=new_id(), check=one.check, params=one.params, timeout_s=one.timeout_s), None
    if one.check.scope is Scope.GROUP:
        order, listener = alone(order, ranks=max(1, len(runner.surroundings.devices)))
    _say(f"{one.check.name}: started")
    await runner.start(order, listener)
    while True:
        match await events.get():
            case RanksReady(run):
                runner.go(run)
            case RunProgressed(text=text):
                _say(f"{one.check.name}: {text}")
            case RunEnded(run=ended):
                return ended


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _print_items(items: Iterable[Any]) -> None:
    print(json.dumps({"items": [item.model_dump(mode="json") for item in items], "next_cursor": None}))


def _print_runs(runs: Sequence[Run]) -> None:
    """A table of the runs, then what each of them found and measured."""
    rows = ((run.check, _verdict(run), f"{run.duration_s:.2f} s", str(len(run.findings))) for run in runs)
    print(table(("CHECK", "VERDICT", "TOOK", "FINDINGS"), rows))
    for run in runs:
        if run.findings or run.metrics:
            print(f"\n{run.check}")
        for finding in run.findings:
            print(f"  {_finding(finding)}")
        for name, value in run.metrics.items():
            print(f"  {name} = {_number(value)}")


def _verdict(run: Run) -> str:
    return f"{run.verdict} (simulated)" if run.simulated else run.verdict


def _finding(finding: Finding) -> str:
    where = "" if finding.device is None else f" on device {finding.device}"
    action = "" if finding.action is Action.NONE else f" ({finding.action})"
    return f"{finding.severity} {finding.code}{where}: {finding.summary}{action}"


def _number(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_number, value))
    return "-" if value is None else f"{value:.6g}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:g} s"
