"""`muster coordinator`."""

import asyncio

from muster import logs, plugins
from muster.commands.options import ConfigOption, load_settings
from muster.config import Config
from muster.extras import require_extras


def coordinator(config: ConfigOption = None) -> None:
    """Run the coordinator until it is stopped: the fleet's broker link, its database and its HTTP API."""
    require_extras("coordinator", "coordinator")
    from muster_coordinator import daemon  # noqa: PLC0415 (`muster --help` lists this command without its database)

    settings = load_settings(config)
    logs.configure(settings.log, component="coordinator")
    asyncio.run(daemon.run(settings, plugins.load(Config(settings))))
