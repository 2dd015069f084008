"""Starts the coordinator. It is imported before the settings are read, so it imports what runs inside the function."""

import gc
from typing import TYPE_CHECKING

from muster.extras import require_extras
from muster.garbage import no_collection

if TYPE_CHECKING:
    from muster.config import Settings


def start(settings: "Settings") -> None:
    """Runs the coordinator until it is stopped."""
    require_extras("coordinator", "coordinator")
    with no_collection():
        import asyncio  # noqa: PLC0415 (see above)

        from muster import logs, plugins  # noqa: PLC0415 (see above)
        from muster.config import Config  # noqa: PLC0415 (see above)
        from muster_coordinator import daemon  # noqa: PLC0415 (see above)

        gc.freeze()  # none of it is garbage, but Python would look for some as soon as it may

    logs.configure(settings.log, component="coordinator")
    asyncio.run(daemon.run(settings, plugins.load(Config(settings))))
