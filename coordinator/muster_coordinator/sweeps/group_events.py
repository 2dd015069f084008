"""What happens to a group: the replies of its members, and what the coordinator learns about them otherwise."""

from dataclasses import dataclass

from muster.wire.messages import AnyGroupReply
from muster_coordinator.model.events import Ticked


@dataclass(frozen=True, slots=True)
class MemberLost:
    """A node's heartbeat has stopped, its last will is believed, or its agent was restarted."""

    node: str


@dataclass(frozen=True, slots=True)
class MemberDoubted:
    """The last will of a node has come. Whether the node is lost is known at `until`."""

    node: str
    until: float


@dataclass(frozen=True, slots=True)
class CalledOff:
    """The sweep of the group is over."""

    reason: str


GroupEvent = AnyGroupReply | MemberLost | MemberDoubted | CalledOff | Ticked
