"""`muster audit`: who has changed what.

The models are imported where they are used: `muster --help` shows this command without them.
"""

from itertools import takewhile
from typing import Annotated

import typer

from muster.client import PAGE, Client
from muster.commands.connection import connect
from muster.commands.options import JsonOption, options_of
from muster.errors import Refused
from muster.terminal import say, say_json

app = typer.Typer(help="The audit log: who has changed what, when, from where and why.", no_args_is_help=True)


@app.command("list")
@options_of(connect)
def list_(
    client: Client,
    subject: Annotated[
        str | None, typer.Argument(metavar="SUBJECT", help="Only changes of this node, sweep or baseline.")
    ] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="Maximum number of entries.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """List changes, latest first."""
    answer = client.get("audit", subject=subject, limit=limit)
    if as_json:
        say_json(answer)
        return
    from muster_coordinator.model.audit import AuditEntry  # noqa: PLC0415 (see above)
    from muster_coordinator.views.audit_text import audit_table  # noqa: PLC0415 (see above)

    say(audit_table(client.read_items(AuditEntry.model_validate, answer)))


@app.command()
@options_of(connect)
def export(
    client: Client,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="Only changes after this one: the id of the last that you have.")
    ] = None,
) -> None:
    """Write changes as lines of JSON, earliest first."""
    from muster_coordinator.model.audit import AuditEntry  # noqa: PLC0415 (see above)

    entries = client.read_items(AuditEntry.model_validate, client.pages("audit"))
    later = [*takewhile(lambda entry: entry.id != after, entries)]
    if after is not None and len(later) == len(entries):
        raise Refused(f"--after: the audit log has no entry {after!r}; leave it out to export all")
    for entry in reversed(later):
        say(entry.model_dump_json())
