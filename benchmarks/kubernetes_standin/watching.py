"""Watches: the changes of the objects that somebody has chosen, one line of JSON for each, as they happen."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

from benchmarks.kubernetes_standin.resources import Resource
from benchmarks.kubernetes_standin.selectors import Chosen
from benchmarks.kubernetes_standin.statuses import Refused, too_old
from benchmarks.kubernetes_standin.store import Change, Store, Stored


@dataclass(frozen=True)
class Selection:
    """Which objects a list or a watch is about; an empty namespace stands for all."""

    resource: Resource
    namespace: str
    chosen: Chosen

    def has(self, stored: Stored | None) -> bool:
        if stored is None:
            return False
        namespace = stored.item["metadata"].get("namespace", "")
        return self.namespace in {"", namespace} and self.chosen(stored.item)


@dataclass(frozen=True)
class Ended:
    """The watch is over; `refused` is what its last line says."""

    refused: Refused | None


class Watches:
    """Every watch that goes on. `bookmark_every_s` is how long one is silent at most, if it asks for bookmarks."""

    def __init__(self, store: Store) -> None:
        self.bookmark_every_s = 60.0
        self._store = store
        self._open: set[asyncio.Queue[Change | Ended]] = set()

    def end(self, *, expired: bool) -> None:
        """Ends all watches, with the event that says 410 or by just closing them."""
        refused = too_old(f"too old resource version: {self._store.version - 1} ({self._store.version})")
        for queue in self._open:
            queue.put_nowait(Ended(refused if expired else None))

    async def lines(self, selection: Selection, version: int | None, *, bookmarks: bool) -> AsyncIterator[bytes]:
        """The events since a version, or with None those that add what is there and then what follows."""
        queue: asyncio.Queue[Change | Ended] = asyncio.Queue()
        self._open.add(queue)
        self._store.watchers.add(queue.put_nowait)
        try:
            for line in self._past(selection, version):
                yield line
            async for line in self._future(selection, queue, bookmarks=bookmarks):
                yield line
        except Refused as refused:
            yield _line("ERROR", json.dumps(refused.body).encode())
        finally:
            self._store.watchers.discard(queue.put_nowait)
            self._open.discard(queue)

    def _past(self, selection: Selection, version: int | None) -> list[bytes]:
        if version is None:
            items = (stored for _, stored in self._store.all(selection.resource) if selection.has(stored))
            return [_line("ADDED", stored.encoded) for stored in items]
        return [line for change in self._store.after(version) if (line := _event(selection, change))]

    async def _future(
        self, selection: Selection, queue: asyncio.Queue[Change | Ended], *, bookmarks: bool
    ) -> AsyncIterator[bytes]:
        while True:
            try:
                change = await asyncio.wait_for(queue.get(), self.bookmark_every_s if bookmarks else None)
            except TimeoutError:
                yield _line("BOOKMARK", _bookmark(selection.resource, self._store.version))
                continue
            if isinstance(change, Ended):
                if change.refused:
                    raise change.refused
                return
            if line := _event(selection, change):
                yield line


def _event(selection: Selection, change: Change) -> bytes | None:
    """A change as it looks from within the selection: who comes into it is added, who leaves it is deleted."""
    if change.resource != selection.resource:
        return None
    was, is_now = selection.has(change.before), selection.has(change.after)
    if not was and not is_now:
        return None
    kind = "DELETED" if not is_now else "MODIFIED" if was else "ADDED"
    return _line(kind, change.last.encoded)


def _line(kind: str, encoded: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), encoded)


def _bookmark(resource: Resource, version: int) -> bytes:
    metadata = {"resourceVersion": str(version)}
    return json.dumps({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}).encode()
