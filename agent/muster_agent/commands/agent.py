"""`muster agent`: the daemon on a node."""

from typing import TYPE_CHECKING

from muster.commands.options import load_settings, options_of
from muster_agent.commands.start import start

if TYPE_CHECKING:
    from muster.config import Settings


@options_of(load_settings)
def agent(settings: "Settings") -> None:
    """Run the agent of this node until stopped."""
    start(settings)
