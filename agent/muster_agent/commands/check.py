"""`muster check`: runs the checks of this node now, without broker or coordinator.

The help needs none of the imports inside the functions, and only `run` imports what runs checks.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.client import Client
from muster.commands.connection import TokenFileOption, UrlOption, connect, connect_by
from muster.commands.options import CheckArgument, JsonOption, load_settings, options_of
from muster.commands.verdict_exit import FailOn, FailOnOption
from muster.errors import Refused, Unavailable
from muster.extras import require_extras
from muster.table import table
from muster.terminal import say, say_items, say_json
from muster_agent.commands.report_options import (
    ExpectGpusOption,
    JoinWithinOption,
    ReportDirOption,
    ReportNameOption,
    SendOption,
    StoreOption,
    VerboseOption,
)

if TYPE_CHECKING:
    from muster.check import AnyCheck
    from muster.config import Settings
    from muster.plugins import Plugins

app = typer.Typer(help="Checks of this machine; need no broker or coordinator.", no_args_is_help=True)


@app.command("list")
@options_of(load_settings)
def list_(settings: "Settings", as_json: JsonOption = False) -> None:
    """List every check of the installed plugins."""
    from muster.check import describe  # noqa: PLC0415 (see above)

    _, checks = _load(settings)
    infos = [describe(checks[name]) for name in sorted(checks)]
    if as_json:
        say_items(infos)
    else:
        rows = ((info.name, info.scope, info.needs, _seconds(info.cadence_s), info.summary) for info in infos)
        say(table(("NAME", "SCOPE", "NEEDS", "EVERY", "SUMMARY"), rows))


@app.command()
@options_of(load_settings)
def show(settings: "Settings", name: CheckArgument, as_json: JsonOption = False) -> None:
    """Show one check: its needs, findings, judged metrics and parameters."""
    from muster.check import describe  # noqa: PLC0415 (see above)
    from muster_agent.acceptance.selection import find  # noqa: PLC0415 (see above)

    found, checks = _load(settings)
    check = find(checks, name, found.failed)
    info = describe(check)
    if as_json:
        say_json(info)
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
@options_of(load_settings)
def clear(settings: "Settings", name: CheckArgument) -> None:
    """Forget the past events that a check reports, after a repair.

    Run it as the agent's user, with the agent's settings: the events are in the agent's data_dir.
    """
    from muster_agent.acceptance.selection import find  # noqa: PLC0415 (see above)

    found, checks = _load(settings)
    check = find(checks, name, found.failed)
    if check.clear is None:
        clearable = ", ".join(sorted(name for name, each in checks.items() if each.clear is not None))
        raise Refused(
            f"nothing to clear for {name}: its findings end when a run no longer has them, at the latest when the "
            f"agent has been restarted; checks that can be cleared: {clearable or 'none'}"
        )
    try:
        check.clear()
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}"
        raise Unavailable(
            f"cannot clear {name}: {problem}; run this as the agent's user, with its settings (--config FILE)"
        ) from None
    say(f"{name}: events until now no longer count from its next run on (data_dir: {settings.data_dir})")


@app.command()
@options_of(load_settings)
def run(
    settings: "Settings",
    names: Annotated[list[str] | None, typer.Argument(metavar="CHECK", help="Checks to run, in this order.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Run every check.")] = False,
    suite: Annotated[str | None, typer.Option(metavar="NAME", help="Run a suite, with all processes of a job.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Use the quick parameters of each check.")] = False,
    param: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help="Parameter of the checks.")] = None,
    expect_gpus: ExpectGpusOption = None,
    report_dir: ReportDirOption = None,
    report_name: ReportNameOption = "report",
    send: SendOption = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    store: StoreOption = False,
    verbose: VerboseOption = False,
    alone: Annotated[bool, typer.Option("--alone", help="Ignore the other processes of the job.")] = False,
    join_within_s: JoinWithinOption = 120.0,
    fail_on: FailOnOption = FailOn.WARN,
    as_json: JsonOption = False,
) -> None:
    """Run checks one after the other.

    In a job (torchrun, srun, RANK and WORLD_SIZE), suites and group checks run with all its processes.
    Exit codes: 0 for PASS or SKIPPED, 1 for WARN, 2 for FAIL, 3 for UNKNOWN.
    With --fail-on fail, WARN gives 0 as well, because torchrun takes 1 for a crash.
    """
    require_extras("check run", "agent")
    if expect_gpus is not None:
        settings = settings.model_copy(update={"expected_gpus": expect_gpus})
    found, checks = _load(settings)
    from muster.params import parse_params  # noqa: PLC0415 (see above)
    from muster_agent.acceptance.suites import AcceptanceRequest  # noqa: PLC0415 (see above)
    from muster_agent.commands.check_run import RunOptions, run_checks  # noqa: PLC0415 (see above)

    params = parse_params(param or ())
    asked = AcceptanceRequest(names=tuple(names or ()), every=every, suite=suite, quick=quick, params=params)
    client = connect_by(settings, url, token_file) if send else None
    options = RunOptions(report_dir, report_name, client, store, verbose, alone, join_within_s, fail_on, as_json)
    raise typer.Exit(run_checks(asked, options, settings, found, checks))


@app.command("send")
@options_of(connect)
def send_(
    client: Client,
    reports: Annotated[list[Path], typer.Argument(metavar="FILE", help="Report in JSON, of `muster check run`.")],
) -> None:
    """Send reports of earlier runs to the coordinator. One that it has already stays as it is."""
    from muster_agent.acceptance.sending import read_report, send  # noqa: PLC0415 (see above)

    for report in [read_report(path) for path in reports]:
        say(f"sent: {send(client, report)}")


def _load(settings: "Settings") -> "tuple[Plugins, dict[str, AnyCheck]]":
    from muster import logs, plugins  # noqa: PLC0415 (see above; the logs first, because they keep rich away)
    from muster.config import Config  # noqa: PLC0415 (see above)

    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    return found, plugins.collect_checks(found)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:g} s"
