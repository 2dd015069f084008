"""`muster plugin`: which plugins there are, where they come from, what they bring and what failed."""

import typer

from muster import logs, plugins
from muster.commands.options import ConfigOption, JsonOption, load_settings
from muster.config import Config
from muster.table import table
from muster.terminal import say, say_json
from muster.wire.messages import PluginInfo

app = typer.Typer(help="Plugins that are installed.", no_args_is_help=True)


@app.command("list")
def list_(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Lists every plugin that was found: loaded, disabled, or failed and why.

    Exits with 0 also when a plugin failed: that is what the list is there to tell.
    """
    settings = load_settings(config)
    logs.configure(settings.log)
    found = plugins.load(Config(settings))
    plugins.collect_checks(found)
    if as_json:
        say_json({"items": [info.model_dump(mode="json") for info in found.infos], "next_cursor": None})
    else:
        say(table(("NAME", "DISTRIBUTION", "VERSION", "STATUS", "CHECKS", "ERROR"), map(_row, found.infos)))


def _row(info: PluginInfo) -> tuple[str, ...]:
    return (
        info.name,
        info.distribution or "-",
        info.version or "-",
        info.status,
        ",".join(info.checks) or "-",
        info.error or "",
    )
