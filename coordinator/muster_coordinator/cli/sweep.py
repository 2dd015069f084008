"""`muster sweep`: starts sweeps, follows them, ends them.

The models are imported where they are used: `muster --help` and `muster sweep list` need none of them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from muster.client import Client
from muster.commands.connection import connect
from muster.commands.decision_options import ByOption, author
from muster.commands.options import JsonOption, options_of
from muster.commands.verdict_exit import FailOn, exit_code
from muster.errors import Refused
from muster.terminal import copy_out, say, say_json
from muster_coordinator.cli.arguments import SweepArgument
from muster_coordinator.cli.sweep_reports import export, show
from muster_coordinator.views.sweeps.export_format import ExportFormat
from muster_coordinator.views.sweeps.sweep_list import listed_sweep, sweep_list

if TYPE_CHECKING:
    from muster_coordinator.model.sweep_records import SweepRecord

CHECK_HELP = "The check that each group runs: one of `muster check list`; needed."
NODES_HELP = "names or places, for example rack=r1,r2; default: all."
STRATEGY_HELP = "adaptive (default), single, pairs, round_robin, whole or bisect."
PARALLEL_HELP = "Maximum number of nodes tested at once."
PAIRING_HELP = "For pairs: random (default), intra_rack, inter_rack or rail."

NodesOption = Annotated[str | None, typer.Option(metavar="A,B,…|KEY=VALUE", help=f"Only these nodes: {NODES_HELP}")]
WaitedFailOnOption = Annotated[
    FailOn | None, typer.Option("--fail-on", help="With --wait: the mildest verdict for which the exit code is not 0.")
]
WaitedFormatOption = Annotated[
    ExportFormat | None, typer.Option("--format", help="With --wait: print the sweep in this format.")
]

app = typer.Typer(help="Sweeps over the fleet; needs the coordinator.", no_args_is_help=True)
app.command()(show)
app.command()(export)


@app.command()
@options_of(connect)
def start(
    client: Client,
    *,
    check: Annotated[str | None, typer.Option(metavar="NAME", help=CHECK_HELP)] = None,
    nodes: NodesOption = None,
    strategy: Annotated[str | None, typer.Option(metavar="NAME", help=STRATEGY_HELP)] = None,
    pairing: Annotated[str | None, typer.Option(metavar="NAME", help=PAIRING_HELP)] = None,
    passes: Annotated[int, typer.Option(help="Minimum number of runs for each node.")] = 1,
    max_parallel: Annotated[str | None, typer.Option(metavar="N|N%", help=PARALLEL_HELP)] = None,
    max_rounds: Annotated[int | None, typer.Option(help="Maximum number of rounds.")] = None,
    max_node_s: Annotated[float | None, typer.Option(help="Maximum number of node-seconds.")] = None,
    priority: Annotated[int, typer.Option(help="The sweep with the highest priority gets shared nodes first.")] = 0,
    param: Annotated[list[str], typer.Option(metavar="KEY=VALUE", help="Parameter of the check.")] = [],  # noqa: B006
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends; the exit code is its verdict.")] = False,
    fail_on: WaitedFailOnOption = None,
    format: WaitedFormatOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and its cost; start nothing.")] = False,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a sweep.

    With --wait, the exit code is 0 for PASS, 2 for FAIL and 3 for UNKNOWN.
    No sweep ends with WARN, so --fail-on warn and fail mean the same here.
    """
    _require_wait(wait, {"--fail-on": fail_on, "--format": format})
    body = _given(
        check=_named(check),
        params=_params(param),
        strategy=strategy,
        pairing=pairing,
        passes=passes,
        select=nodes,
        max_parallel=max_parallel,
        max_rounds=max_rounds,
        max_node_s=max_node_s,
        priority=priority,
    )
    if dry_run:
        _show_plan(client, body, as_json)
    else:
        ended = _begin(client, body | {"by": author(by)}, wait, as_json, format)
        if wait:
            _exit_by(ended, fail_on or FailOn.WARN)


def _named(check: str | None) -> str:
    if check is None:
        raise Refused("--check: missing; name a check, for example collective; `muster check list` lists all")
    return check


def _params(given: list[str]) -> dict[str, Any]:
    from muster.params import parse_params  # noqa: PLC0415 (see above)

    return parse_params(given)


def _given(**asked: Any) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value is not None}


def _require_wait(wait: bool, options: Mapping[str, object]) -> None:
    for option, value in options.items():
        if value is not None and not wait:
            raise Refused(f"{option} needs --wait: without it, the command ends before there is a verdict")


def _exit_by(ended: "SweepRecord", fail_on: FailOn) -> NoReturn:
    from muster.model import Verdict  # noqa: PLC0415 (see above)

    raise typer.Exit(exit_code(ended.verdict or Verdict.UNKNOWN, fail_on))


def _show_plan(client: Client, body: dict[str, Any], as_json: bool) -> None:
    plan = client.post("sweeps", "plan", body=body)
    if as_json:
        say_json(plan)
        return
    from muster_coordinator.sweeps.forecast import Forecast  # noqa: PLC0415 (see above)
    from muster_coordinator.views.sweeps.forecast_text import forecast_text  # noqa: PLC0415 (see above)

    say(forecast_text(client.read(Forecast.model_validate, plan)))


def _begin(
    client: Client, body: dict[str, Any], wait: bool, as_json: bool, format: ExportFormat | None
) -> "SweepRecord":
    from muster_coordinator.cli.following import follow  # noqa: PLC0415 (see above)
    from muster_coordinator.model.sweep_records import SweepRecord  # noqa: PLC0415 (see above)
    from muster_coordinator.views.sweeps.result import sweep_report  # noqa: PLC0415 (see above)

    answer = client.post("sweeps", body=body)
    if wait:
        answer = follow(client, answer)
    sweep = client.read(SweepRecord.model_validate, answer)
    if format is not None:
        copy_out(client.text("sweeps", sweep.id, "export", format=format))
    elif as_json:
        say_json(answer)
    elif wait:
        say(sweep_report(sweep))
    else:
        say(f"{sweep.id}\nfollow it with: muster sweep show {sweep.id}")
    return sweep


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """List sweeps, latest first."""
    answer = client.pages("sweeps")
    if as_json:
        say_json(answer)
        return
    say(sweep_list(client.read_items(listed_sweep, answer)))


@app.command()
@options_of(connect)
def abort(
    client: Client,
    id: SweepArgument,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Abort a sweep; its results so far are kept."""
    answer = client.delete("sweeps", id, by=author(by))
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.sweep_records import SweepRecord  # noqa: PLC0415 (see above)
    from muster_coordinator.views.sweeps.result import sweep_report  # noqa: PLC0415 (see above)

    say(sweep_report(client.read(SweepRecord.model_validate, answer)))
