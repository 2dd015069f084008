"""`muster plugin`: lists plugins with their origin, their checks and their errors.

Its help needs none of the imports inside the function.
"""

from typing import TYPE_CHECKING

import typer

from muster.commands.options import JsonOption, load_settings, options_of
from muster.table import table
from muster.terminal import say, say_items

if TYPE_CHECKING:
    from muster.config import Settings
    from muster.wire.messages import PluginInfo

app = typer.Typer(help="Installed plugins.", no_args_is_help=True)


@app.command("list")
@options_of(load_settings)
def list_(settings: "Settings", as_json: JsonOption = False) -> None:
    """List every plugin: loaded, disabled, or failed and why.

    The exit code is 0 also when a plugin has failed to load.
    """
    from muster import logs, plugins  # noqa: PLC0415 (see above)
    from muster.config import Config  # noqa: PLC0415 (see above)

    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    plugins.collect_checks(found)
    if as_json:
        say_items(found.infos)
    else:
        say(table(("NAME", "DISTRIBUTION", "VERSION", "STATUS", "CHECKS", "ERROR"), map(_row, found.infos)))


def _row(info: "PluginInfo") -> tuple[str, ...]:
    return (
        info.name,
        info.distribution or "-",
        info.version or "-",
        info.status,
        ",".join(info.checks) or "-",
        info.error or "",
    )
