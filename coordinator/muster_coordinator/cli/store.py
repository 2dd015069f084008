"""`muster store`: the coordinator's database."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.commands.options import JsonOption, load_settings, options_of
from muster.extras import require_extras
from muster.terminal import say, say_json

if TYPE_CHECKING:
    from muster.config import Settings
    from muster_coordinator.store.copying import Checksum

app = typer.Typer(help="The coordinator's database.", no_args_is_help=True)

FromArgument = Annotated[
    str, typer.Argument(metavar="FROM", help="URL of the database, for example sqlite:////var/lib/muster/muster.db.")
]
ToArgument = Annotated[str, typer.Argument(metavar="TO", help="URL of a new, empty database.")]


FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The new file.")]


@app.command()
@options_of(load_settings)
def backup(settings: "Settings", file: FileArgument, as_json: JsonOption = False) -> None:
    """Copy the coordinator's database of SQLite into a file; the coordinator may run."""
    require_extras("store", "coordinator")
    from muster_coordinator.store.backup import back_up  # noqa: PLC0415 (a command without it starts sooner)

    size = back_up(settings, file)
    say_json({"file": str(file), "bytes": size}) if as_json else say(f"{file}: {size / 1e6:.1f} MB")


@app.command(name="copy")
def copy(source: FromArgument, target: ToArgument, *, as_json: JsonOption = False) -> None:
    """Copy a database into an empty one and compare them; no coordinator may use either."""
    require_extras("store", "coordinator")
    import asyncio  # noqa: PLC0415 (a command without it starts sooner)

    from muster_coordinator.store.copying import copy_database  # noqa: PLC0415 (see above)

    tables: dict[str, int] = {}

    def tell(table: str, found: "Checksum") -> None:
        tables[table] = found.rows
        if not as_json:
            say(f"{table}: {found.rows} rows, equal (checksum {found.total:016x})")

    asyncio.run(copy_database(source, target, tell))
    if as_json:
        say_json({"tables": tables})
        return
    say(f"{sum(tables.values())} rows copied. Set store.url to TO, and start the coordinator.")
