"""`muster sweep show` and `muster sweep export`: what came of a sweep, why, and in forms that go elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from muster.commands.options import ConfigOption, JsonOption
from muster.errors import SettingsError
from muster.terminal import copy_out, say, say_json
from muster_coordinator.cli.connection import DEFAULT_URL, TokenFileOption, UrlOption, connect
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.explained import Explanation
from muster_coordinator.views.sweeps.explanation_text import explanation_text
from muster_coordinator.views.sweeps.exports import ExportFormat
from muster_coordinator.views.sweeps.result import sweep_report
from muster_coordinator.views.sweeps.rounds import sweep_rounds
from muster_coordinator.web.client import Client


def show(
    id: str,
    *,
    why: Annotated[
        str | None, typer.Option(metavar="NODE", help="Explain what was judged about one node, run by run.")
    ] = None,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a sweep: its rounds, and whom it convicts, clears or leaves open; with --why, why."""
    client = connect(url, token_file, config)
    if why is not None:
        _explain(client, id, why, as_json)
        return
    answer = client.get("sweeps", id)
    if as_json:
        say_json(answer)
        return
    sweep = SweepRecord.model_validate(answer)
    say(f"{sweep_report(sweep)}\n{sweep_rounds(sweep)}")


def export(
    id: str,
    *,
    format: Annotated[
        str,
        typer.Option(
            metavar="|".join(ExportFormat),
            help="All of it, a line per rank, tables as nccl-tests prints them, or an SVG picture of the pairs.",
        ),
    ],
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file; default: stdout.")] = None,
    url: UrlOption = DEFAULT_URL,
    token_file: TokenFileOption = None,
    config: ConfigOption = None,
) -> None:
    """Write a sweep in another form, with every group, rank and measurement."""
    text = connect(url, token_file, config).text("sweeps", id, "export", format=format)
    if output is None:
        copy_out(text)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise SettingsError(f"--output: cannot write {output}: {error.strerror}") from None


def _explain(client: Client, sweep: str, node: str, as_json: bool) -> None:
    answer = client.get("sweeps", sweep, "explain", node=node)
    say_json(answer) if as_json else say(explanation_text(Explanation.model_validate(answer)))
