"""`muster sweep`: starts sweeps, follows them, ends them."""

import json
import sys
import time
from typing import Annotated, Any

import typer

from muster.commands.options import ConfigOption, JsonOption
from muster.model import EXIT_CODES, Verdict, format_instant
from muster.params import parse_params
from muster.table import table
from muster_coordinator.client import Client
from muster_coordinator.commands.connection import DEFAULT_URL, TokenFileOption, UrlOption, connect
from muster_coordinator.sweep_records import SweepRecord
from muster_coordinator.text import sweep_news, sweep_report, sweep_rounds

POLL_S = 0.3

app = typer.Typer(help="Sweeps over the fleet; needs the coordinator.", no_args_is_help=True)


@app.command()
def start(
    *,
    check: Annotated[str, typer.Option(metavar="NAME", help="The check that the groups run.")],
    strategy: Annotated[str, typer.Option(metavar="NAME", help="Groups: single, pairs, whole or adaptive.")] = "pairs",
    nodes: Annotated[str | None, typer.Option(metavar="A,B,…", help="Only these nodes; default: all.")] = None,
    param: Annotated[list[str], typer.Option(metavar="KEY=VALUE", help="A parameter of the check.")] = [],  # noqa: B006
    wait: Annotated[bool, typer.Option("--wait", help="Follow it to its end; the exit code is its verdict.")] = False,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a sweep. With --wait, exits with 0 for PASS, 1 WARN, 2 FAIL, 3 UNKNOWN."""
    body: dict[str, Any] = {"check": check, "strategy": strategy, "params": parse_params(param)}
    if nodes is not None:
        body["nodes"] = [name.strip() for name in nodes.split(",")]
    client = connect(url, token_file, config)
    answer = client.post("sweeps", body=body)
    if wait:
        answer = _follow(client, answer)
    sweep = SweepRecord.model_validate(answer)
    if as_json:
        print(json.dumps(answer))
    elif wait:
        print(sweep_report(sweep))
    else:
        print(f"{sweep.id}\nfollow it with: muster sweep show {sweep.id}")
    if wait:
        raise typer.Exit(EXIT_CODES[sweep.verdict or Verdict.UNKNOWN])


@app.command("list")
def list_(
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every sweep, the latest first."""
    answer = connect(url, token_file, config).pages("sweeps")
    if as_json:
        print(json.dumps(answer))
        return
    sweeps = [SweepRecord.model_validate(item) for item in answer["items"]]
    print(table(("SWEEP", "STARTED", "STATE", "VERDICT", "CHECK", "STRATEGY", "NODES", "ROUNDS"), map(_row, sweeps)))


@app.command()
def show(
    id: str,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a sweep: its rounds, and whom it convicts, clears or leaves open."""
    answer = connect(url, token_file, config).get("sweeps", id)
    print(json.dumps(answer) if as_json else _with_rounds(SweepRecord.model_validate(answer)))


@app.command()
def abort(
    id: str,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a sweep now; what it has found so far is kept."""
    answer = connect(url, token_file, config).delete("sweeps", id)
    print(json.dumps(answer) if as_json else sweep_report(SweepRecord.model_validate(answer)))


def _follow(client: Client, answer: Any) -> Any:
    """Polls the sweep until it has ended and says on stderr what each group came to; the last answer."""
    told: set[str] = set()
    sweep = SweepRecord.model_validate(answer)
    try:
        print(f"sweep {sweep.id}: {len(sweep.nodes)} nodes", file=sys.stderr, flush=True)
        while True:
            for line in sweep_news(sweep, told):
                print(line, file=sys.stderr, flush=True)
            if sweep.ended_at is not None:
                return answer
            time.sleep(POLL_S)
            answer = client.get("sweeps", sweep.id)
            sweep = SweepRecord.model_validate(answer)
    except KeyboardInterrupt:
        print(f"sweep {sweep.id} goes on; to end it: muster sweep abort {sweep.id}", file=sys.stderr)
        raise typer.Exit(130) from None


def _with_rounds(sweep: SweepRecord) -> str:
    return f"{sweep_report(sweep)}\n{sweep_rounds(sweep)}"


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
