"""Inflates the messages of nodes, and compresses acknowledgements for those that can read them.

An agent that sends its reports compressed can read compressed messages. An older one after a downgrade sends JSON, and
gets JSON again. Decoding a message costs as much as its JSON is long, so a node is charged for that length.
"""

import time

from muster.wire import codec
from muster.wire.deflate import DEFLATED, deflated, inflated
from muster.wire.messages import Ack
from muster.wire.topics import NodeTopic
from muster_coordinator.runtime.rate_limits import Allowances


class Compression:
    """The nodes whose last report was compressed."""

    def __init__(self, allowances: Allowances) -> None:
        self._allowances = allowances
        self._nodes: set[str] = set()

    def read(self, node: str, topic: NodeTopic, payload: bytes) -> bytes:
        """A message of a node as JSON. Raises RemoteError if it is compressed and cannot be inflated."""
        message = inflated(payload, codec.MAX_MESSAGE_BYTES)
        if topic is NodeTopic.REPORT:
            (self._nodes.add if payload.startswith(DEFLATED) else self._nodes.discard)(node)
        if (grown := len(message) - len(payload)) > 0:
            self._allowances.charge_inflated(node, topic, grown, time.monotonic())
        return message

    def write(self, node: str, ack: Ack) -> bytes:
        """An acknowledgement as the node can read it."""
        short = codec.encode_short(ack)
        return deflated(short) if node in self._nodes else short
