"""`muster coordinator`. Its help needs none of the imports inside the function."""

from typing import TYPE_CHECKING

from muster.commands.options import load_settings, options_of
from muster.extras import require_extras
from muster.garbage import no_collection

if TYPE_CHECKING:
    from muster.config import Settings


@options_of(load_settings)
def coordinator(settings: "Settings") -> None:
    """Run the coordinator until stopped."""
    require_extras("coordinator", "coordinator")
    with no_collection():
        import asyncio  # noqa: PLC0415 (see above)

        from muster import logs, plugins  # noqa: PLC0415 (see above)
        from muster.config import Config  # noqa: PLC0415 (see above)
        from muster_coordinator import daemon  # noqa: PLC0415 (see above)

    logs.configure(settings.log, component="coordinator")
    asyncio.run(daemon.run(settings, plugins.load(Config(settings))))
