"""`muster baseline`: what the fleet is compared by."""

import typer

from muster.commands.options import JsonOption, options_of
from muster.terminal import say, say_json
from muster_coordinator.cli.connection import connect
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.views.text import baseline_table
from muster_coordinator.web.client import Client

app = typer.Typer(
    help="What is normal in the fleet, as it has shown itself; needs the coordinator.", no_args_is_help=True
)


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """List every baseline: what counts as normal, where the fleet is now, and who is out of line."""
    answer = client.pages("baselines")
    if as_json:
        say_json(answer)
        return
    say(baseline_table(BaselineView.model_validate(item) for item in answer["items"]))


@app.command()
@options_of(connect)
def reset(
    client: Client,
    baseline: str,
    as_json: JsonOption = False,
) -> None:
    """Let what is measured now count as normal, for example after new software made the whole fleet slower."""
    answer = client.delete("baselines", baseline)
    say_json(answer) if as_json else say(baseline_table([BaselineView.model_validate(answer)]))
