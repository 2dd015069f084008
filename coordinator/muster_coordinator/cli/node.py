"""`muster node`: the nodes as the coordinator sees them."""

from typing import Annotated

import typer

from muster.commands.options import ConfigOption, JsonOption
from muster.model import format_instant
from muster.table import table
from muster.terminal import in_one_line, say, say_json
from muster_coordinator.cli.connection import DEFAULT_URL, TokenFileOption, UrlOption, connect
from muster_coordinator.cli.decision_options import ByOption, ReasonOption, decision
from muster_coordinator.evidence.node_clock import clock_in_words
from muster_coordinator.model.history import HistoryPoint
from muster_coordinator.model.nodes import FleetView, NodeView, StoryEntry
from muster_coordinator.model.quarantine_views import BudgetView, CaseView
from muster_coordinator.views.quarantine_text import not_done, state, why
from muster_coordinator.views.text import devices, history_table, node_table, seen
from muster_coordinator.web.client import PAGE

app = typer.Typer(help="The nodes of the fleet; needs the coordinator.", no_args_is_help=True)


@app.command("list")
def list_(
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List every node with its health and service state."""
    client = connect(url, token_file, config)
    answer = client.pages("nodes")
    if as_json:
        say_json(answer)
        return
    say(node_table(NodeView.model_validate(item) for item in answer["items"]))
    for finding in FleetView.model_validate(client.get("fleet")).findings:
        say(f"{finding.code}: {in_one_line(finding.summary)}")


@app.command()
def show(
    name: str,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one node: its state and why, its devices, its checks, its findings."""
    client = connect(url, token_file, config)
    answer = client.get("nodes", name)
    if as_json:
        say_json(answer)
        return
    case = CaseView.model_validate(client.get("nodes", name, "case"))
    say(_described(NodeView.model_validate(answer), case))


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
        say_json(answer)
        return
    for item in reversed(answer["items"]):
        entry = StoryEntry.model_validate(item)
        say(f"{format_instant(entry.at)}  {entry.kind}  {in_one_line(entry.text)}")


@app.command()
def history(
    name: str,
    *,
    metric: Annotated[str, typer.Option(metavar="NAME", help="What was measured.")],
    check: Annotated[str | None, typer.Option(metavar="NAME", help="Only by this check.")] = None,
    device: Annotated[int | None, typer.Option(metavar="INDEX", help="Only of this device.")] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="ISO 8601 with a time zone.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Before this time.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="How many runs or hours at most.")] = 100,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a node has measured over time, the latest first."""
    wanted = {"metric": metric, "check": check, "device": device, "since": since, "until": until, "limit": limit}
    answer = connect(url, token_file, config).get("nodes", name, "history", **wanted)
    if as_json:
        say_json(answer)
        return
    say(history_table(HistoryPoint.model_validate(item) for item in answer["items"]))


@app.command()
def forget(
    name: str,
    *,
    reason: ReasonOption,
    by: ByOption = None,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a node that is silent for good out of the fleet; when it is heard of again, it joins as a new one."""
    answer = connect(url, token_file, config).post("nodes", name, "forget", body=decision(by, reason))
    if as_json:
        say_json(answer)
        return
    left = BudgetView.model_validate(answer).quarantine
    say(f"{name} is forgotten; of {left.nodes} nodes, {left.away} are away now")


def _described(node: NodeView, case: CaseView) -> str:
    lines = [
        f"{node.name}: {node.health}, {state(node.service, node.dry_run)}, seen {seen(node)}",
        *(f"  because {reason}" for reason in node.reasons),
        *(f"  {reason}" for reason in why(case)),
        *(f"  {line}" for line in not_done(case)),
        *([] if node.clock_ahead_s is None else [f"  its clock is {clock_in_words(node.clock_ahead_s)}"]),
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
