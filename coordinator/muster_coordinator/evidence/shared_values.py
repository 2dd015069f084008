"""Keeps one object for all equal values.

Thousands of nodes announce the same checks and plugins, which take about 100 KiB for each node. With one object for all
nodes, 2,000 nodes take half of the memory. A value that no node has any more is forgotten.
"""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TypeVar
from weakref import WeakValueDictionary

from muster.model import Data
from muster.wire.messages import InventoryReport
from muster_coordinator.model.nodes import NodeRecord

ValueT = TypeVar("ValueT", bound=Data)
AnnouncedT = TypeVar("AnnouncedT", InventoryReport, NodeRecord)


class SharedValues:
    """The shared objects, by a digest of their JSON."""

    def __init__(self) -> None:
        self._values: WeakValueDictionary[bytes, Data] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._values)

    def shared(self, value: ValueT) -> ValueT:
        """The object that stands for this value everywhere: an earlier equal one, or else the value itself."""
        kind = type(value)
        digest = blake2b(f"{kind.__name__} {value.model_dump_json()}".encode(), digest_size=16).digest()
        known = self._values.setdefault(digest, value)
        assert isinstance(known, kind)
        return known

    def restored(self, records: Iterable[NodeRecord]) -> Iterator[NodeRecord]:
        """The same for stored records: many have one object for all their checks, which is looked at only once."""
        known: dict[tuple[int, int], tuple[NodeRecord, NodeRecord]] = {}  # the first keeps others from getting its ids
        for record in records:
            key = id(record.checks), id(record.plugins)
            if key not in known:
                known[key] = record, self.with_shared(record)
            _, shared = known[key]
            yield record.model_copy(update={"checks": shared.checks, "plugins": shared.plugins})

    def with_shared(self, announced: AnnouncedT) -> AnnouncedT:
        """The same with the shared objects for its checks and plugins."""
        update = {
            "checks": tuple(map(self.shared, announced.checks)),
            "plugins": tuple(map(self.shared, announced.plugins)),
        }
        return announced.model_copy(update=update)
