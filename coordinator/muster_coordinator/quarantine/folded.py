"""What taking in an event comes to."""

from typing import NamedTuple

from muster.model import Name
from muster_coordinator.model.quarantine_events import Command


class Folded(NamedTuple):
    """What is to be done about an event, and the node that is to be reconciled now, if any."""

    commands: list[Command]
    node: Name | None = None


NOTHING = Folded([])
