"""Turns a message of a node into an event of the fleet."""

from muster.wire.codec import decode_from_node
from muster.wire.messages import (
    Accepted,
    Declined,
    Finished,
    InventoryReport,
    Presence,
    Progress,
    Ready,
    Report,
)
from muster.wire.topics import NodeTopic
from muster_coordinator.model.events import GroupReplySeen, InventorySeen, PresenceSeen, ReportSeen


def event_of(
    topic: NodeTopic, node: str, payload: bytes, *, kept: bool = False, digest: str = ""
) -> PresenceSeen | InventorySeen | ReportSeen | GroupReplySeen:
    """The event for a message of a node. Raises RemoteError if the message is not valid.

    `kept` means that the broker had retained the message. Such an inventory is no sign of life. Such a presence is one,
    since the last will replaces it, but its data about the outbox is old. That a node was offline when it was kept says
    nothing about now.
    """
    match decode_from_node(topic, node, payload):
        case InventoryReport() as inventory:
            return InventorySeen(inventory, kept=kept, digest=digest)
        case Presence() as presence:
            return PresenceSeen(presence, kept=kept)
        case Report() as report:
            return ReportSeen(report, len(payload))
        case (Accepted() | Declined() | Ready() | Progress() | Finished()) as reply:
            return GroupReplySeen(reply)
        case other:
            raise TypeError(f"nodes do not send {type(other).__name__}")
