"""The rows of nodes: the checks and plugins that a node announces are apart from the rest of its record.

Most nodes of a fleet announce the same, which is nine tenths of a record. A restart reads each text once: 10,000 nodes
that announce the same cost as much as one.
"""

from typing import Any

from muster_coordinator.model.nodes import ANNOUNCED, Announced, NodeRecord, read_announced, read_node
from muster_coordinator.store.rows import read_row


def node_row(node: NodeRecord) -> dict[str, Any]:
    """The row of a node."""
    announced = Announced(checks=node.checks, plugins=node.plugins)
    return {
        "name": node.name,
        "body": node.model_dump_json(exclude=ANNOUNCED),
        "announced": announced.model_dump_json(),
    }


class NodeRows:
    """Reads rows of nodes. Nodes that announce the same get the same objects."""

    def __init__(self) -> None:
        self._announced: dict[str, Announced] = {}

    def read(self, name: str, body: str, announced: str | None) -> NodeRecord:
        """The record in a row. Raises Unreadable if the body is damaged."""
        known = self._read_announced(announced)
        record = read_row("nodes", name, body, read_node)
        # What could not be read must be taken again when the node announces it.
        digest = record.inventory_digest if known.checks else ""
        update = {"checks": known.checks, "plugins": known.plugins, "inventory_digest": digest}
        return record.model_copy(update=update)

    def _read_announced(self, text: str | None) -> Announced:
        if text is None:
            return Announced()
        known = self._announced.get(text)
        if known is None:
            known = self._announced[text] = read_announced(text)
        return known
