"""The topics of a fleet. A node may publish only below its own name, which a broker's ACL can enforce."""

from dataclasses import dataclass
from enum import StrEnum

from muster.errors import RemoteError

ROOT = "muster/v1"


class NodeTopic(StrEnum):
    """The last level of the topics below a node. The node publishes four of them, the coordinator two."""

    PRESENCE = "presence"
    INVENTORY = "inventory"
    REPORT = "report"
    GROUP = "group"
    ACK = "ack"
    COMMAND = "command"


FROM_NODE = (NodeTopic.PRESENCE, NodeTopic.INVENTORY, NodeTopic.REPORT, NodeTopic.GROUP)
TO_NODE = (NodeTopic.ACK, NodeTopic.COMMAND)


def client_id(fleet: str, node: str) -> str:
    """The client id of an agent. A broker ends the earlier connection of a client id, so an agent has one."""
    return f"muster-{fleet}-{node}"


@dataclass(frozen=True, slots=True)
class Topics:
    """The topic names of one fleet."""

    fleet: str

    def node(self, node: str, topic: NodeTopic) -> str:
        return f"{ROOT}/{self.fleet}/node/{node}/{topic}"

    def every_node(self, topic: NodeTopic) -> str:
        """A subscription to one topic of all nodes."""
        return self.node("+", topic)

    @property
    def coordinator(self) -> str:
        return f"{ROOT}/{self.fleet}/coordinator"

    @property
    def coordinator_echo(self) -> str:
        """The topic on which a coordinator sends to itself, to see how long messages take."""
        return f"{self.coordinator}/echo"

    @property
    def references(self) -> str:
        return f"{ROOT}/{self.fleet}/references"

    def parse_node(self, topic: str) -> tuple[str, NodeTopic]:
        """The node and the kind of a topic. Raises RemoteError if it is not a node's topic of this fleet."""
        prefix = f"{ROOT}/{self.fleet}/node/"
        node, _, kind = topic.removeprefix(prefix).partition("/")
        if not topic.startswith(prefix) or not node:
            raise RemoteError("unknown_topic", topic)
        try:
            return node, NodeTopic(kind)
        except ValueError:
            raise RemoteError("unknown_topic", topic) from None
