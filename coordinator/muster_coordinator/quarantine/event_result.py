"""The result of taking in an event."""

from typing import NamedTuple

from muster.model import Name
from muster_coordinator.model.quarantine_events import Command


class EventResult(NamedTuple):
    """The commands that follow from an event, and the node to reconcile now, if any."""

    commands: list[Command]
    node: Name | None = None


NOTHING = EventResult([])
