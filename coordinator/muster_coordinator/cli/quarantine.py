"""`muster quarantine`: nodes out of service, and decisions of people about them.

The models are imported where they are used: `muster --help` shows this command without them.
"""

from typing import Annotated, Any

import typer

from muster.client import PAGE, Client
from muster.commands.connection import connect
from muster.commands.decision_options import ByOption, ReasonOption, decision
from muster.commands.options import JsonOption, options_of
from muster.terminal import say, say_json
from muster_coordinator.cli.arguments import NodeArgument
from muster_coordinator.cli.quarantine_replay import replay

app = typer.Typer(
    help="Nodes out of service: list, hold, release, budget, replay.",
    no_args_is_help=True,
)
app.command()(replay)


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """List nodes that are out of service, new, on hold or to be drained, and alarms.

    Nodes for which an actor failed are listed too.
    """
    answer = client.pages("quarantine")
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.quarantine_views import BudgetView, CaseView  # noqa: PLC0415 (see above)
    from muster_coordinator.views.quarantine_text import alarm_table, case_table  # noqa: PLC0415 (see above)

    say(case_table(client.read_items(CaseView.model_validate, answer)))
    alarms = client.read(BudgetView.model_validate, client.get("quarantine", "budget")).quarantine.alarms
    if alarms:
        say(f"\n{alarm_table(alarms)}")


@app.command()
@options_of(connect)
def hold(
    client: Client,
    node: NodeArgument,
    *,
    reason: ReasonOption,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep a node in its present state until it is released."""
    answer = client.post("nodes", node, "hold", body=decision(by, reason))
    _print_case(client, answer, as_json)


@app.command()
@options_of(connect)
def release(
    client: Client,
    node: NodeArgument,
    *,
    reason: ReasonOption,
    untested: Annotated[
        bool, typer.Option("--untested", help="Return the node to service at once, without a test.")
    ] = False,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """End a hold; a node that is out of service is tested before it returns."""
    body = {**decision(by, reason), "untested": untested}
    _print_case(client, client.post("nodes", node, "release", body=body), as_json)


@app.command()
@options_of(connect)
def budget(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """Show the budget, waiting nodes, mass events, alarms and the state of actors."""
    _print_budget(client, client.get("quarantine", "budget"), as_json)


@app.command()
@options_of(connect)
def history(
    client: Client,
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="Only this node; default: all.")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="Maximum number of entries.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show requests, decisions and their outcome at each actor, latest first."""
    answer = client.get("quarantine", "history", node=node, limit=limit)
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.quarantine_events import DECIDED  # noqa: PLC0415 (see above)
    from muster_coordinator.views.quarantine_text import decision_table  # noqa: PLC0415 (see above)

    say(decision_table(client.read_items(DECIDED.validate_python, answer)))


@app.command()
@options_of(connect)
def unfreeze(
    client: Client,
    *,
    reason: ReasonOption,
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lift a mass-event freeze: the nodes themselves are faulty."""
    answer = client.post("quarantine", "unfreeze", body=decision(by, reason))
    _print_budget(client, answer, as_json)


def _print_case(client: Client, answer: Any, as_json: bool) -> None:
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.quarantine_views import CaseView  # noqa: PLC0415 (see above)
    from muster_coordinator.views.quarantine_text import case_table  # noqa: PLC0415 (see above)

    say(case_table([client.read(CaseView.model_validate, answer)]))


def _print_budget(client: Client, answer: Any, as_json: bool) -> None:
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.quarantine_views import BudgetView  # noqa: PLC0415 (see above)
    from muster_coordinator.views.quarantine_text import budget_text  # noqa: PLC0415 (see above)

    say(budget_text(client.read(BudgetView.model_validate, answer)))
