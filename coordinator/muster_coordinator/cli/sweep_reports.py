"""`muster sweep show` and `muster sweep export`: the result of a sweep, its reasons, and formats for other programs.

The models are imported where they are used: `muster --help` shows these commands without them.
"""

from pathlib import Path
from typing import Annotated

import typer

from muster.client import Client
from muster.commands.connection import connect
from muster.commands.options import JsonOption, options_of
from muster.errors import SettingsError
from muster.terminal import copy_out, say, say_json
from muster_coordinator.cli.arguments import SweepArgument
from muster_coordinator.views.sweeps.export_format import ExportFormat


@options_of(connect)
def show(
    client: Client,
    id: SweepArgument,
    *,
    why: Annotated[
        str | None, typer.Option(metavar="NODE", help="Explain the result for one node, run by run.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a sweep: its rounds, and which nodes failed, passed or stay inconclusive."""
    if why is not None:
        _explain(client, id, why, as_json)
        return
    answer = client.get("sweeps", id)
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.sweep_records import SweepRecord  # noqa: PLC0415 (see above)
    from muster_coordinator.views.sweeps.result import sweep_report  # noqa: PLC0415 (see above)
    from muster_coordinator.views.sweeps.rounds import sweep_rounds  # noqa: PLC0415 (see above)

    sweep = client.read(SweepRecord.model_validate, answer)
    say(f"{sweep_report(sweep)}\n{sweep_rounds(sweep)}")


@options_of(connect)
def export(
    client: Client,
    id: SweepArgument,
    *,
    format: Annotated[
        str,
        typer.Option(
            metavar="|".join(ExportFormat),
            help="json, csv (a line for each rank), nccl-tests (tables) or matrix (SVG).",
        ),
    ],
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file; default: stdout.")] = None,
) -> None:
    """Write a sweep with every group, rank and measurement to a file."""
    text = client.text("sweeps", id, "export", format=format)
    if output is None:
        copy_out(text)
        return
    try:
        output.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise SettingsError(f"--output: cannot write {output}: {error.strerror}") from None


def _explain(client: Client, sweep: str, node: str, as_json: bool) -> None:
    answer = client.get("sweeps", sweep, "explain", node=node)
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.views.sweeps.explained import Explanation  # noqa: PLC0415 (see above)
    from muster_coordinator.views.sweeps.explanation_text import explanation_text  # noqa: PLC0415 (see above)

    say(explanation_text(client.read(Explanation.model_validate, answer)))
