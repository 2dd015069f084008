"""`muster baseline`: what the fleet is compared by."""

import typer

from muster.commands.options import ConfigOption, JsonOption
from muster.terminal import say, say_json
from muster_coordinator.cli.connection import DEFAULT_URL, TokenFileOption, UrlOption, connect
from muster_coordinator.model.baselines import BaselineView
from muster_coordinator.views.text import baseline_table

app = typer.Typer(
    help="What is normal in the fleet, as it has shown itself; needs the coordinator.", no_args_is_help=True
)


@app.command("list")
def list_(
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every baseline: what counts as normal, where the fleet is now, and who is out of line."""
    answer = connect(url, token_file, config).pages("baselines")
    if as_json:
        say_json(answer)
        return
    say(baseline_table(BaselineView.model_validate(item) for item in answer["items"]))


@app.command()
def reset(
    baseline: str,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let what is measured now count as normal, for example after new software made the whole fleet slower."""
    answer = connect(url, token_file, config).delete("baselines", baseline)
    say_json(answer) if as_json else say(baseline_table([BaselineView.model_validate(answer)]))
