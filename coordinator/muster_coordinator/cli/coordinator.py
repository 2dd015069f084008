"""`muster coordinator`: the daemon that looks after the fleet."""

from typing import TYPE_CHECKING

from muster.commands.options import load_settings, options_of
from muster_coordinator.cli.start import start

if TYPE_CHECKING:
    from muster.config import Settings


@options_of(load_settings)
def coordinator(settings: "Settings") -> None:
    """Run the coordinator until stopped."""
    start(settings)
