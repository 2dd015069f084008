"""`muster up`: broker, coordinator and agent on one host. Its help needs none of the imports inside the function."""

import typer

from muster.commands.options import ConfigOption, load_settings
from muster.extras import require_extras


def up(config_file: ConfigOption = None) -> None:
    """Run broker, coordinator and agent on this host until stopped."""
    require_extras("up", "agent", "coordinator")
    import asyncio  # noqa: PLC0415 (see above)

    from muster import logs  # noqa: PLC0415 (see above)
    from muster.client import page_url  # noqa: PLC0415 (see above)
    from muster.terminal import say  # noqa: PLC0415 (see above)
    from muster_coordinator.local import up as local  # noqa: PLC0415 (see above)

    settings = load_settings(config_file)
    logs.configure(settings.log, component="up")
    if not settings.http.listen.endswith(":0"):  # of a port that is not yet known, only the coordinator's log tells
        say(f"the fleet in a browser, as soon as the coordinator is ready: {page_url(settings.http.listen)}")
    raise typer.Exit(asyncio.run(local.run(config_file)))
