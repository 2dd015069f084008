"""The operator's references of the fleet: set, removed, stored, and published to the agents.

After each change all rows are published in one retained message, so that agents that connect later get them, too.
"""

from collections.abc import Iterable, Mapping

from muster.errors import Refused, unknown
from muster.references import Origin, Reference, pointless
from muster.wire.codec import MAX_MESSAGE_BYTES, encode
from muster.wire.messages import References
from muster_coordinator.evidence.node import Node
from muster_coordinator.model.events import EraseReference, FleetCommand, PublishReferences, SaveReference
from muster_coordinator.model.orders import Orders
from muster_coordinator.model.references import ReferenceRecord


class ReferenceBook:
    """All rows by key. A row that is set again comes last, with the highest number."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._records: dict[str, ReferenceRecord] = {}
        self._last_number = 0

    @property
    def records(self) -> tuple[ReferenceRecord, ...]:
        """All rows, by number."""
        return tuple(self._records.values())

    def restore(self, records: Iterable[ReferenceRecord], now: float) -> list[FleetCommand]:
        """Restores the stored rows and publishes them: the broker may have lost them."""
        for record in records:
            self._records[record.reference.key] = record
            self._last_number = record.number
        return [PublishReferences(self._message(self._records.values(), now))]

    def set(self, reference: Reference, now: float) -> list[FleetCommand]:
        """Adds a row, or replaces the one with the same key. Raises Refused if all rows would exceed one message."""
        reference = reference.model_copy(update={"origin": Origin.OPERATOR})
        record = ReferenceRecord(number=self._last_number + 1, reference=reference)
        records = {key: kept for key, kept in self._records.items() if key != reference.key}
        message = self._message([*records.values(), record], now)
        size = len(encode(message))
        if size > MAX_MESSAGE_BYTES:
            raise Refused(
                f"all references of a fleet must fit into a message of {MAX_MESSAGE_BYTES} bytes, and with this one "
                f"they take {size}: remove some, or let a row cover several by a list in `when`"
            )
        replaced = self._records.get(reference.key)
        self._records = {**records, reference.key: record}
        self._last_number = record.number
        erased = [] if replaced is None else [EraseReference(replaced.number)]
        return [*erased, SaveReference(record), PublishReferences(message)]

    def remove(self, key: str, now: float) -> list[FleetCommand]:
        """Removes a row. Raises Refused if there is none with this key."""
        if key not in self._records:
            raise Refused(unknown("operator's reference", key, self._records))
        record = self._records.pop(key)
        return [EraseReference(record.number), PublishReferences(self._message(self._records.values(), now))]

    def _message(self, records: Iterable[ReferenceRecord], now: float) -> References:
        rows = tuple(record.reference for record in records)
        return References(id=self._orders.new_id(), sent_at=now, rows=rows)


def require_use(reference: Reference, nodes: Mapping[str, Node]) -> None:
    """Raises Refused for a row that no check of the fleet uses. Accepts every row while plugins have failed to load."""
    offered: dict[str, set[str]] = {}
    for node in nodes.values():
        for check in node.checks.values():
            offered.setdefault(check.name, set()).update(check.judged)
    complete = not any(plugin.status == "failed" for node in nodes.values() for plugin in node.plugins)
    if offered and complete and (reason := pointless(reference, offered)):
        raise Refused(reason)
