"""`muster node`: the nodes as the coordinator sees them."""

import json

import typer

from muster.commands.options import ConfigOption, JsonOption
from muster.model import format_instant
from muster.table import table
from muster_coordinator.commands.connection import DEFAULT_URL, TokenFileOption, UrlOption, connect
from muster_coordinator.records import NodeView, StoryEntry
from muster_coordinator.text import devices, node_table, seen

app = typer.Typer(help="The nodes of the fleet; needs the coordinator.", no_args_is_help=True)


@app.command("list")
def list_(
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every node with its health and service state."""
    answer = connect(url, token_file, config).pages("nodes")
    if as_json:
        print(json.dumps(answer))
        return
    print(node_table(NodeView.model_validate(item) for item in answer["items"]))


@app.command()
def show(
    name: str,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one node: its state and why, its devices, its checks, its findings."""
    answer = connect(url, token_file, config).get("nodes", name)
    print(json.dumps(answer) if as_json else _described(NodeView.model_validate(answer)))


@app.command()
def story(
    name: str,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell how a node came to its state, from the first step to the last."""
    answer = connect(url, token_file, config).pages("nodes", name, "story")
    if as_json:
        print(json.dumps(answer))
        return
    for item in reversed(answer["items"]):
        entry = StoryEntry.model_validate(item)
        print(f"{format_instant(entry.at)}  {entry.kind}  {entry.text}")


def _described(node: NodeView) -> str:
    lines = [
        f"{node.name}: {node.health}, {node.service}, seen {seen(node)}",
        *(f"  because {reason}" for reason in node.reasons),
        f"devices: {devices(node)}",
        *(f"{name}: {place}" for name, place in node.topology if place is not None),
    ]
    if node.checks:
        lines += [
            "",
            table(("CHECK", "VERDICT"), sorted((name, str(verdict)) for name, verdict in node.checks.items())),
        ]
    if node.findings:
        rows = [
            (
                it.code,
                it.severity,
                "-" if it.device is None else str(it.device),
                it.action,
                format_instant(it.since),
                it.summary,
            )
            for it in node.findings
        ]
        lines += ["", table(("FINDING", "SEVERITY", "DEVICE", "ACTION", "SINCE", "SUMMARY"), rows)]
    return "\n".join(lines)
