"""`muster node`: the nodes and the coordinator's data about them.

Commands that show more than the list import the models of nodes inside the function: the import takes longer than the
list.
"""

import time
from typing import Annotated, Any

import typer

from muster.client import PAGE, Client
from muster.commands.connection import connect
from muster.commands.decision_options import ByOption, ReasonOption, decision
from muster.commands.options import JsonOption, options_of
from muster.errors import Refused
from muster.nouns import count
from muster.terminal import line_width, say, say_json
from muster_coordinator.cli.arguments import NodeArgument
from muster_coordinator.cli.watching import watch
from muster_coordinator.views.node_groups import group_list, listed_group
from muster_coordinator.views.node_list import database_warning, fleet_findings, listed_node, load_warning, node_list

NOTHING_YET = "No node has reported yet. On a node, `muster doctor agent` says what its agent lacks."

app = typer.Typer(help="The nodes of the fleet; needs the coordinator.", no_args_is_help=True)


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    terms: Annotated[
        list[str] | None,
        typer.Argument(metavar="TERM", help="Only nodes that match, for example health=FAILED rack=r1."),
    ] = None,
    *,
    sort: Annotated[str | None, typer.Option(metavar="KEY", help="Order: name, urgency, rack, label:POOL…")] = None,
    group: Annotated[str | None, typer.Option(metavar="KEY", help="Count nodes by rack, leaf, label:POOL…")] = None,
    shows_all: Annotated[bool, typer.Option("--all", help="List many healthy nodes, too, in a terminal.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Do not cut lines to the width of the terminal.")] = False,
    watches: Annotated[bool, typer.Option("--watch", help="Show the list again every 2 s, until Ctrl-C.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List nodes with health and service state, faulty ones first.

    A TERM is KEY=VALUE,VALUE or KEY!=VALUE, as for `muster sweep start --nodes`.
    """
    if watches and as_json:
        raise Refused("--watch shows text again and again: leave out --json")
    if sort and group:
        raise Refused("--group counts nodes instead of listing them: leave out --sort")
    select = " ".join(map(_quoted, terms)) if terms else None
    if as_json:
        say_json(_groups(client, group, select) if group else client.pages("nodes", select=select, sort=sort))
        return

    def text() -> str:
        width = None if wide else line_width()
        if group:
            found = client.read_items(listed_group, _groups(client, group, select))
            return group_list(found, group, shows_all=shows_all or width is None)
        nodes = client.read_items(listed_node, _summaries(client, select, sort))
        if not nodes and not select and width is not None:
            return NOTHING_YET
        is_whole = shows_all or width is None or bool(select or sort)
        listed = node_list(nodes, time.time(), width, is_sorted=sort is not None, shows_all=is_whole)
        return "\n".join([listed, *([] if select else _warnings(client, width))])

    if watches:
        watch(text)
    else:
        say(text())


def _warnings(client: Client, width: int | None) -> list[str]:
    """What is wrong with the whole fleet or with the coordinator."""
    fleet = client.get("fleet")
    found = fleet_findings(fleet["findings"], width), database_warning(fleet, width), load_warning(fleet, width)
    return [text for text in found if text]


def _groups(client: Client, by: str, select: str | None) -> dict[str, Any]:
    return client.pages("fleet", "groups", by=by, select=select)


def _summaries(client: Client, select: str | None, sort: str | None) -> dict[str, Any]:
    """What the list needs of each node; from an older coordinator the whole nodes, which it serves alone."""
    try:
        return client.pages("fleet", "nodes", select=select, sort=sort)
    except Refused:
        return client.pages("nodes", select=select, sort=sort)


def _quoted(term: str) -> str:
    """The term with quotes around a value with spaces, because the shell has removed them: `gpu_model=NVIDIA L4`."""
    key, equals, value = term.partition("=")
    is_one_term = equals and not set(value) & set("=;'\"")
    return f'{key}="{value}"' if is_one_term and " " in value else term


@app.command()
@options_of(connect)
def show(client: Client, node: NodeArgument, as_json: JsonOption = False) -> None:
    """Show one node: state, reasons, devices, checks and findings."""
    answer = client.get("nodes", node)
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.nodes import NodeView  # noqa: PLC0415 (see above)
    from muster_coordinator.model.quarantine_views import CaseView  # noqa: PLC0415 (see above)
    from muster_coordinator.views.node_text import node_text  # noqa: PLC0415 (see above)

    case = client.read(CaseView.model_validate, client.get("nodes", node, "case"))
    say(node_text(client.read(NodeView.model_validate, answer), case, time.time()))


@app.command()
@options_of(connect)
def story(client: Client, node: NodeArgument, as_json: JsonOption = False) -> None:
    """Show each step that led to the state of a node, oldest first."""
    answer = client.pages("nodes", node, "story")
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.nodes import StoryEntry  # noqa: PLC0415 (see above)
    from muster_coordinator.views.node_text import story_text  # noqa: PLC0415 (see above)

    say(story_text(reversed(client.read_items(StoryEntry.model_validate, answer))))


@app.command()
@options_of(connect)
def history(
    client: Client,
    node: NodeArgument,
    *,
    metric: Annotated[str, typer.Option(metavar="NAME", help="Metric to show.")],
    check: Annotated[str | None, typer.Option(metavar="NAME", help="Only from this check.")] = None,
    device: Annotated[int | None, typer.Option(metavar="INDEX", help="Only of this device.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start of the period: ISO 8601 with a time zone.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="End of the period, not included.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="Maximum number of runs or hours.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show measurements of a node over time, latest first."""
    wanted = {"metric": metric, "check": check, "device": device, "since": since, "until": until, "limit": limit}
    answer = client.get("nodes", node, "history", **wanted)
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.history import HistoryPoint  # noqa: PLC0415 (see above)
    from muster_coordinator.views.text import history_table  # noqa: PLC0415 (see above)

    say(history_table(client.read_items(HistoryPoint.model_validate, answer), metric))


@app.command()
@options_of(connect)
def forget(
    client: Client, node: NodeArgument, *, reason: ReasonOption, by: ByOption = None, as_json: JsonOption = False
) -> None:
    """Remove a silent node; if it reports again, it joins as a new one."""
    answer = client.post("nodes", node, "forget", body=decision(by, reason))
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.quarantine_views import BudgetView  # noqa: PLC0415 (see above)

    left = client.read(BudgetView.model_validate, answer).quarantine
    say(f"{node} is forgotten; {left.away} of {count(left.nodes, 'node')} are out of service now")
