"""`muster quarantine`: who is out of service and why, and what people decide about it."""

from typing import Annotated, Any

import typer

from muster.commands.options import JsonOption, options_of
from muster.terminal import say, say_json
from muster_coordinator.cli.connection import connect
from muster_coordinator.cli.decision_options import ByOption, ReasonOption, decision
from muster_coordinator.model.quarantine_events import DECIDED
from muster_coordinator.model.quarantine_views import BudgetView, CaseView
from muster_coordinator.views.quarantine_text import budget_text, case_table, decision_table
from muster_coordinator.web.client import PAGE, Client

app = typer.Typer(
    help="Nodes that are out of service, and what people decide about them; needs the coordinator.",
    no_args_is_help=True,
)


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """List every node that is away or not plainly in service: its state, why, and what could not be done about it."""
    answer = client.pages("quarantine")
    if as_json:
        say_json(answer)
        return
    say(case_table(CaseView.model_validate(item) for item in answer["items"]))


@app.command()
@options_of(connect)
def hold(
    client: Client,
    node: str,
    *,
    reason: ReasonOption,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep muster's hands off a node, in service or out, until it is released."""
    answer = client.post("nodes", node, "hold", body=decision(by, reason))
    _print_case(answer, as_json)


@app.command()
@options_of(connect)
def release(
    client: Client,
    node: str,
    *,
    reason: ReasonOption,
    untested: Annotated[bool, typer.Option("--untested", help="Back to work at once, without any test.")] = False,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a hold; a node that is out is tested and comes back when it has passed."""
    body = {**decision(by, reason), "untested": untested}
    _print_case(client.post("nodes", node, "release", body=body), as_json)


@app.command()
@options_of(connect)
def budget(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """Show how many nodes are away and may be, who waits, what is frozen, and whether the actors work."""
    _print_budget(client.get("quarantine", "budget"), as_json)


@app.command()
@options_of(connect)
def history(
    client: Client,
    node: Annotated[str | None, typer.Argument(help="Only of this node; default: of all.")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="How many at most.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show what was asked for and decided, by whom and why, and what came of it at each actor, the latest first."""
    answer = client.get("quarantine", "history", node=node, limit=limit)
    if as_json:
        say_json(answer)
        return
    say(decision_table(map(DECIDED.validate_python, answer["items"])))


@app.command()
@options_of(connect)
def unfreeze(
    client: Client,
    *,
    reason: ReasonOption,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let nodes be taken out again although so many have the same trouble: it is their own, says whoever calls this."""
    answer = client.post("quarantine", "unfreeze", body=decision(by, reason))
    _print_budget(answer, as_json)


def _print_case(answer: Any, as_json: bool) -> None:
    say_json(answer) if as_json else say(case_table([CaseView.model_validate(answer)]))


def _print_budget(answer: Any, as_json: bool) -> None:
    say_json(answer) if as_json else say(budget_text(BudgetView.model_validate(answer)))
