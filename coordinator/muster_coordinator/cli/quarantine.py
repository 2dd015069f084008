"""`muster quarantine`: who is out of service and why, and what people decide about it."""

from typing import Annotated, Any

import typer

from muster.commands.options import ConfigOption, JsonOption
from muster.terminal import say, say_json
from muster_coordinator.cli.connection import DEFAULT_URL, TokenFileOption, UrlOption, connect
from muster_coordinator.cli.decision_options import ByOption, ReasonOption, decision
from muster_coordinator.model.quarantine_events import DECIDED
from muster_coordinator.model.quarantine_views import BudgetView, CaseView
from muster_coordinator.views.quarantine_text import alarm_table, budget_text, case_table, decision_table
from muster_coordinator.web.client import PAGE

app = typer.Typer(
    help="Nodes that are out of service, and what people decide about them; needs the coordinator.",
    no_args_is_help=True,
)


@app.command("list")
def list_(
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every node that is away or not plainly in service: why, and what could not be done; then the alarms."""
    connection = connect(url, token_file, config)
    answer = connection.pages("quarantine")
    if as_json:
        say_json(answer)
        return
    say(case_table(CaseView.model_validate(item) for item in answer["items"]))
    alarms = BudgetView.model_validate(connection.get("quarantine", "budget")).quarantine.alarms
    if alarms:
        say(f"\n{alarm_table(alarms)}")


@app.command()
def hold(
    node: str,
    *,
    reason: ReasonOption,
    by: ByOption = None,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep muster's hands off a node, in service or out, until it is released."""
    answer = connect(url, token_file, config).post("nodes", node, "hold", body=decision(by, reason))
    _print_case(answer, as_json)


@app.command()
def release(
    node: str,
    *,
    reason: ReasonOption,
    untested: Annotated[bool, typer.Option("--untested", help="Back to work at once, without any test.")] = False,
    by: ByOption = None,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a hold; a node that is out is tested and comes back when it has passed."""
    body = {**decision(by, reason), "untested": untested}
    _print_case(connect(url, token_file, config).post("nodes", node, "release", body=body), as_json)


@app.command()
def budget(
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many nodes are away and may be, who waits, what is frozen, whether the actors work, and the alarms."""
    _print_budget(connect(url, token_file, config).get("quarantine", "budget"), as_json)


@app.command()
def history(
    node: Annotated[str | None, typer.Argument(help="Only of this node; default: of all.")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="How many at most.")] = 100,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was asked for and decided, by whom and why, and what came of it at each actor, the latest first."""
    answer = connect(url, token_file, config).get("quarantine", "history", node=node, limit=limit)
    if as_json:
        say_json(answer)
        return
    say(decision_table(map(DECIDED.validate_python, answer["items"])))


@app.command()
def unfreeze(
    *,
    reason: ReasonOption,
    by: ByOption = None,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lift a mass-event freeze: the nodes themselves are faulty."""
    answer = connect(url, token_file, config).post("quarantine", "unfreeze", body=decision(by, reason))
    _print_budget(answer, as_json)


def _print_case(answer: Any, as_json: bool) -> None:
    say_json(answer) if as_json else say(case_table([CaseView.model_validate(answer)]))


def _print_budget(answer: Any, as_json: bool) -> None:
    say_json(answer) if as_json else say(budget_text(BudgetView.model_validate(answer)))
