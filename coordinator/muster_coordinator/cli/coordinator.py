"""`muster coordinator`."""

import asyncio

from muster import logs, plugins
from muster.commands.options import load_settings, options_of
from muster.config import Config, Settings
from muster.extras import require_extras
from muster.quick_import import quick_import


@options_of(load_settings)
def coordinator(settings: Settings) -> None:
    """Run the coordinator until stopped."""
    require_extras("coordinator", "coordinator")
    with quick_import():
        from muster_coordinator import daemon  # noqa: PLC0415 (`muster --help` lists this command without its database)

    logs.configure(settings.log, component="coordinator")
    asyncio.run(daemon.run(settings, plugins.load(Config(settings))))
