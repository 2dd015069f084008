"""`muster sweep`: starts sweeps, follows them, ends them."""

from typing import Annotated, Any

import typer

from muster.commands.options import JsonOption, options_of
from muster.model import EXIT_CODES, Verdict, format_instant
from muster.params import parse_params
from muster.table import table
from muster.terminal import say, say_json
from muster_coordinator.cli.connection import connect
from muster_coordinator.cli.following import follow
from muster_coordinator.cli.sweep_reports import export, show
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.sweeps.forecast import Forecast
from muster_coordinator.views.sweeps.forecast_text import forecast_text
from muster_coordinator.views.sweeps.result import sweep_report
from muster_coordinator.web.client import Client

NODES_HELP = "names, or where they stand, for example rack=r1,r2; default: all."
STRATEGY_HELP = "adaptive (default), single, pairs, round_robin, whole or bisect."
PAIRING_HELP = "For pairs: random (default), intra_rack, inter_rack or rail."

app = typer.Typer(help="Sweeps over the fleet; needs the coordinator.", no_args_is_help=True)
app.command()(show)
app.command()(export)


@app.command()
@options_of(connect)
def start(
    client: Client,
    *,
    check: Annotated[str, typer.Option(metavar="NAME", help="The check that the groups run.")],
    nodes: Annotated[str | None, typer.Option(metavar="A,B,…|KEY=VALUE", help=f"Only these; {NODES_HELP}")] = None,
    strategy: Annotated[str | None, typer.Option(metavar="NAME", help=STRATEGY_HELP)] = None,
    pairing: Annotated[str | None, typer.Option(metavar="NAME", help=PAIRING_HELP)] = None,
    passes: Annotated[int, typer.Option(help="Runs that every node takes part in at least.")] = 1,
    max_parallel: Annotated[str | None, typer.Option(metavar="N|N%", help="Nodes in groups at the same time.")] = None,
    max_rounds: Annotated[int | None, typer.Option(help="End after so many rounds.")] = None,
    max_node_s: Annotated[float | None, typer.Option(help="Spend at most so many node-seconds.")] = None,
    priority: Annotated[int, typer.Option(help="Of sweeps that wait for the same nodes, the highest goes first.")] = 0,
    param: Annotated[list[str], typer.Option(metavar="KEY=VALUE", help="A parameter of the check.")] = [],  # noqa: B006
    wait: Annotated[bool, typer.Option("--wait", help="Follow it to its end; the exit code is its verdict.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would do and cost.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start a sweep. With --wait, exits with 0 for PASS, 2 FAIL, 3 UNKNOWN."""
    asked = {
        "check": check,
        "params": parse_params(param),
        "strategy": strategy,
        "pairing": pairing,
        "passes": passes,
        "select": nodes,
        "max_parallel": max_parallel,
        "max_rounds": max_rounds,
        "max_node_s": max_node_s,
        "priority": priority,
    }
    body = {name: value for name, value in asked.items() if value is not None}
    if dry_run:
        _show_plan(client, body, as_json)
    else:
        _begin(client, body, wait, as_json)


def _show_plan(client: Client, body: dict[str, Any], as_json: bool) -> None:
    plan = client.post("sweeps", "plan", body=body)
    say_json(plan) if as_json else say(forecast_text(Forecast.model_validate(plan)))


def _begin(client: Client, body: dict[str, Any], wait: bool, as_json: bool) -> None:
    answer = client.post("sweeps", body=body)
    if wait:
        answer = follow(client, answer)
    sweep = SweepRecord.model_validate(answer)
    if as_json:
        say_json(answer)
    elif wait:
        say(sweep_report(sweep))
    else:
        say(f"{sweep.id}\nfollow it with: muster sweep show {sweep.id}")
    if wait:
        raise typer.Exit(EXIT_CODES[sweep.verdict or Verdict.UNKNOWN])


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """List every sweep, the latest first."""
    answer = client.pages("sweeps")
    if as_json:
        say_json(answer)
        return
    sweeps = [SweepRecord.model_validate(item) for item in answer["items"]]
    say(table(("SWEEP", "STARTED", "STATE", "VERDICT", "CHECK", "STRATEGY", "NODES", "ROUNDS"), map(_row, sweeps)))


@app.command()
@options_of(connect)
def abort(
    client: Client,
    id: str,
    as_json: JsonOption = False,
) -> None:
    """End a sweep now; what it has found so far is kept."""
    answer = client.delete("sweeps", id)
    say_json(answer) if as_json else say(sweep_report(SweepRecord.model_validate(answer)))


def _row(sweep: SweepRecord) -> tuple[str, ...]:
    return (
        sweep.id,
        format_instant(sweep.created_at),
        sweep.state,
        sweep.verdict or "-",
        sweep.check,
        sweep.strategy,
        str(len(sweep.nodes)),
        str(len(sweep.rounds)),
    )
