"""The result of taking in an event."""

from typing import NamedTuple

from muster.model import Name
from muster_coordinator.model.quarantine_events import QuarantineCommand


class EventResult(NamedTuple):
    """The commands that follow from an event, and the node to reconcile now, if any."""

    commands: list[QuarantineCommand]
    node: Name | None = None


NOTHING = EventResult([])
