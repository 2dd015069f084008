"""`muster baseline`: the values that nodes are compared with.

The models are imported where they are used: `muster --help` shows this command without them.
"""

from typing import Annotated, Any

import typer

from muster.client import Client
from muster.commands.connection import connect
from muster.commands.decision_options import ByOption, author
from muster.commands.options import JsonOption, options_of
from muster.terminal import say, say_json

app = typer.Typer(help="Baselines: what is normal in the fleet; needs the coordinator.", no_args_is_help=True)


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    as_json: JsonOption = False,
) -> None:
    """List baselines: the normal value, the value now, and how many nodes differ."""
    answer = client.pages("baselines")
    if as_json:
        say_json(answer)
        return
    say(_table(client, answer))


@app.command()
@options_of(connect)
def reset(
    client: Client,
    baseline: Annotated[
        str, typer.Argument(metavar="BASELINE", help="Id of the baseline, as `muster baseline list` shows it.")
    ],
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept the present measurements as normal, for example after a software update."""
    answer = client.delete("baselines", baseline, by=author(by))
    say_json(answer) if as_json else say(_table(client, {"items": [answer]}))


def _table(client: Client, page: Any) -> str:
    from muster_coordinator.model.baselines import BaselineView  # noqa: PLC0415 (see above)
    from muster_coordinator.views.text import baseline_table  # noqa: PLC0415 (see above)

    return baseline_table(client.read_items(BaselineView.model_validate, page))
