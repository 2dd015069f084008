"""`muster reference`: the references that measurements are judged by.

The models are imported where they are used: `muster --help` shows this command without them.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.client import Client
from muster.commands.connection import TokenFileOption, connect, url_option
from muster.commands.decision_options import ByOption, author
from muster.commands.options import CheckArgument, ConfigOption, JsonOption, load_settings, options_of
from muster.errors import Refused, unknown
from muster.terminal import line_width, say, say_items, say_json
from muster_coordinator.cli.arguments import MetricArgument

if TYPE_CHECKING:
    from muster.model import Run
    from muster.references import Reference

app = typer.Typer(
    help="References that judge measurements: of this machine, or of the fleet with --url.",
    no_args_is_help=True,
)

WhenOption = Annotated[
    list[str],
    typer.Option(
        "--when",
        metavar="FACT=VALUE",
        help='Condition: a value, a list "[1, 2]", or a range \'{"at_least": 1, "at_most": 8}\'.',
    ),
]
BoundOption = Annotated[float | None, typer.Option(metavar="NUMBER", help="Bound; a value equal to it is good.")]

SourceUrlOption = Annotated[str | None, url_option("references of this machine")]


@dataclass(frozen=True, slots=True)
class Source:
    """Where references are read: from a coordinator if `url` is given, else on this machine."""

    url: str | None
    token_file: Path | None
    config: Path | None

    def rows(self) -> "list[Reference]":
        from muster.reference_file import read_references  # noqa: PLC0415 (see above)
        from muster.references import Reference, shipped  # noqa: PLC0415 (see above)

        if self.url is None:
            return [*shipped(), *read_references(load_settings(self.config).references_file)]
        client = self.client()
        return client.read_items(Reference.model_validate, client.pages("references"))

    def run(self, run_id: str) -> "Run":
        """A run that a coordinator has stored, also if the references are those of this machine."""
        from muster.model import Run  # noqa: PLC0415 (see above)

        client = self.client()
        return client.read(Run.model_validate, client.get("runs", run_id))

    def refusal(self, what: str, name: str, valid: Iterable[str]) -> Refused:
        """The error for a name without a reference here; the fleet may have one."""
        elsewhere = "" if self.url else "; these are references of this machine, --url URL shows those of the fleet"
        return Refused(unknown(what, name, valid) + elsewhere)

    def client(self) -> Client:
        return connect(self.url, self.token_file, self.config)


def source_of(url: SourceUrlOption = None, token_file: TokenFileOption = None, config: ConfigOption = None) -> Source:
    """The source that the options name."""
    return Source(url, token_file, config)


@app.command("list")
@options_of(source_of)
def list_(
    source: Source,
    check: Annotated[str | None, typer.Option(metavar="NAME", help="Only for this check.")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="One line for each, however long.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List references of this machine, or with --url those of the fleet.

    Shipped references come first, then the operator's, which override them. `muster reference show` tells the source.
    """
    rows = source.rows()
    checks = {row.check for row in rows}
    if check is not None and check not in checks:
        raise source.refusal("check with references:", check, checks)
    rows = [row for row in rows if check in (None, row.check)]
    if as_json:
        say_items(rows)
        return
    from muster_coordinator.views.reference_text import reference_list  # noqa: PLC0415 (see above)

    say(reference_list(rows, None if wide else line_width()))


@app.command()
@options_of(source_of)
def show(
    source: Source,
    check: CheckArgument,
    metric: MetricArgument,
    as_json: JsonOption = False,
) -> None:
    """Show the references for one metric of a check, with their sources.

    They are those of this machine, or with --url those of the fleet.
    """
    rows = source.rows()
    found = [row for row in rows if (row.check, row.metric) == (check, metric)]
    if not found:
        raise source.refusal("reference", f"{check} {metric}", {f"{row.check} {row.metric}" for row in rows})
    if as_json:
        say_items(found)
        return
    from muster_coordinator.views.reference_text import described  # noqa: PLC0415 (see above)

    say("\n\n".join(map(described, found)))


@app.command("set")
@options_of(connect)
def set_(
    client: Client,
    check: CheckArgument,
    metric: MetricArgument,
    *,
    when: WhenOption = [],  # noqa: B006 (typer copies it)
    fail_below: BoundOption = None,
    warn_below: BoundOption = None,
    warn_above: BoundOption = None,
    fail_above: BoundOption = None,
    source: Annotated[str, typer.Option(metavar="TEXT", help="Where the values come from.")],
    unit: Annotated[str, typer.Option(metavar="TEXT", help="The unit of the bounds.")] = "",
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set a reference for the fleet; `muster reference list --url URL` shows it.

    It replaces the operator's reference with the same check, metric and conditions.
    """
    from muster.params import parse_params  # noqa: PLC0415 (see above)

    bounds = {
        "fail_below": fail_below,
        "warn_below": warn_below,
        "warn_above": warn_above,
        "fail_above": fail_above,
    }
    body = {"check": check, "metric": metric, "when": parse_params(when, "condition"), "source": source, "unit": unit}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    answer = client.put("references", body={**body, **given, "by": author(by)})
    if as_json:
        say_json(answer)
        return
    from muster.references import Reference  # noqa: PLC0415 (see above)
    from muster_coordinator.views.reference_text import described  # noqa: PLC0415 (see above)

    say(described(client.read(Reference.model_validate, answer)))


@app.command()
@options_of(connect)
def remove(
    client: Client,
    check: CheckArgument,
    metric: MetricArgument,
    *,
    when: WhenOption = [],  # noqa: B006 (typer copies it)
    by: ByOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a reference of the fleet; the shipped one applies again."""
    from muster.params import parse_params  # noqa: PLC0415 (see above)

    conditions = json.dumps(parse_params(when, "condition"))
    answer = client.delete("references", check=check, metric=metric, when=conditions, by=author(by))
    say_json(answer) if as_json else say("removed")


@app.command("explain")
@options_of(source_of)
def explain_(
    source: Source,
    run_id: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Id of a run that the coordinator has stored.")
    ] = None,
    *,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON output of `muster check run`; - for stdin.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain which reference applies to each metric of a run, and why.

    References are those of this machine, or with --url those of the fleet.
    """
    if (run_id is None) == (file is None):
        raise Refused("give either the id of a run that the coordinator has, or --file FILE")
    from muster_coordinator.references.explanation import explain_run  # noqa: PLC0415 (see above)
    from muster_coordinator.views.reference_text import explanation  # noqa: PLC0415 (see above)

    runs = [source.run(str(run_id))] if file is None else _read_runs(file)
    rows = source.rows()
    explained = [explain_run(run, rows) for run in runs]
    say_items(explained) if as_json else say("\n\n".join(map(explanation, explained)))


def _read_runs(file: str) -> "list[Run]":
    try:
        return _runs_in(json.loads(sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")))
    except OSError as error:
        raise Refused(f"--file: cannot read {file}: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Refused(f"--file: {file} is not the JSON output of `muster check run`") from None


def _runs_in(written: Any) -> "list[Run]":
    """The runs in a list of runs, or in all steps of a suite's report."""
    from muster.model import Run  # noqa: PLC0415 (see above)

    steps = [{"runs": written["items"]}] if "items" in written else written["steps"]
    return [run for step in steps for run in map(Run.model_validate, step["runs"])]
