"""`muster up`: broker, coordinator and agent on one host."""

import asyncio

import typer

from muster import logs
from muster.commands.options import ConfigOption, load_settings
from muster.extras import require_extras
from muster_coordinator.local import up as local


def up(config_file: ConfigOption = None) -> None:
    """Run broker, coordinator and agent on this host until stopped."""
    require_extras("up", "agent", "coordinator")
    settings = load_settings(config_file)
    logs.configure(settings.log, component="up")
    raise typer.Exit(asyncio.run(local.run(config_file)))
