"""The rows of nodes: the checks and plugins that a node announces are apart from the rest of its record.

They are nine tenths of a record, and most nodes of a fleet announce the same. So each announcement has one row, by a
digest of its text. A restart of 10,000 nodes reads 20 KB instead of 200 MB, and a change of a node writes a tenth.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from muster_coordinator.model.nodes import ANNOUNCED, Announced, NodeRecord, read_announced, read_node
from muster_coordinator.store.rows import read_row

_NOTHING = Announced()


class WrittenNodes:
    """The rows of nodes and of what they announce, each once."""

    def __init__(self, records: Iterable[NodeRecord]) -> None:
        self.announcements: dict[str, dict[str, Any]] = {}
        self.nodes = [self._row(record) for record in records]

    def _row(self, node: NodeRecord) -> dict[str, Any]:
        text = Announced(checks=node.checks, plugins=node.plugins).model_dump_json()
        key = blake2b(text.encode(), digest_size=16).hexdigest()
        self.announcements[key] = {"id": key, "body": text}
        return {"name": node.name, "body": node.model_dump_json(exclude=ANNOUNCED), "announced": key}


class NodeRows:
    """Reads rows of nodes with these announcements (texts by id). Nodes that announce the same get the same objects."""

    def __init__(self, announcements: Mapping[str, str]) -> None:
        self._announced = {key: read_announced(text) for key, text in announcements.items()}

    def read(self, name: str, body: str, announced: str | None) -> NodeRecord:
        """The record in a row. Raises Unreadable if the body is damaged."""
        record = read_row("nodes", name, body, read_node)
        known = self._announced.get(announced or "", _NOTHING)
        # What could not be read must be taken again when the node announces it.
        digest = record.inventory_digest if known.checks else ""
        update = {"checks": known.checks, "plugins": known.plugins, "inventory_digest": digest}
        return record.model_copy(update=update)
