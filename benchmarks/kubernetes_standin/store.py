"""The objects of the stand-in: each write has a version of its own, and nobody overwrites what they have not seen."""

import json
import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from benchmarks.kubernetes_standin import ownership, statuses, validation
from benchmarks.kubernetes_standin.ownership import Owner, Writer
from benchmarks.kubernetes_standin.resources import Object, Resource

HISTORY = 50_000
"""So many of the last changes can be watched again; kube-apiserver keeps some minutes of them."""

Key = tuple[str, str]
"""Namespace, empty for what has none, and name."""

Write = tuple[Object, list[Owner]]

_IDENTITY = ("creationTimestamp", "name", "namespace", "resourceVersion", "uid")

_LEFT_OUT_EMPTY = ("annotations", "finalizers", "labels", "taints", "unschedulable")


class Stored:
    """A version of an object, which nobody may change.

    `listed` is how it stands in a list, which does not say of its items what they are. It is encoded here once, so that
    a list of many keeps nobody else waiting.
    """

    def __init__(self, item: Object) -> None:
        self.item = item
        rest = {name: value for name, value in item.items() if name not in {"kind", "apiVersion"}}
        self.listed = json.dumps(rest, separators=(",", ":")).encode()

    @property
    def encoded(self) -> bytes:
        """As an answer of its own."""
        kind, api_version = self.item["kind"], self.item["apiVersion"]
        return f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode() + self.listed[1:]


@dataclass(frozen=True)
class Change:
    """What a write has made of an object: `before` is None when it was created, `after` when it was deleted.

    `last` is the object as a watch shows it: as it is now or, with the version of its end, as it last was.
    """

    version: int
    resource: Resource
    before: Stored | None
    after: Stored | None
    last: Stored


class Store:
    """All objects, and the latest changes. `watchers` are called with each change."""

    def __init__(self) -> None:
        self.version = 1000
        self.oldest = self.version
        self.watchers: set[Callable[[Change], None]] = set()
        self._items: dict[Resource, dict[Key, Stored]] = {}
        self._changes: deque[Change] = deque(maxlen=HISTORY)

    def has(self, resource: Resource, namespace: str, name: str) -> bool:
        return (namespace, name) in self._items.get(resource, {})

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        try:
            return self._items[resource][namespace, name]
        except KeyError:
            raise statuses.not_found(resource, name) from None

    def all(self, resource: Resource) -> Iterator[tuple[Key, Stored]]:
        """Every object, in the order of keys."""
        items = self._items.get(resource, {})
        return ((key, items[key]) for key in sorted(items))

    def after(self, version: int) -> list[Change]:
        """The changes since a version; Refused when that is so long ago that they are forgotten."""
        if version < self.oldest:
            raise statuses.too_old(f"too old resource version: {version} ({self.oldest})")
        changes = list(self._changes)
        return changes[bisect_right(changes, version, key=lambda change: change.version) :]

    def copy(self) -> "Store":
        """Another store with the same objects, for a dry run."""
        other = Store()
        other.version = self.version
        other._items = {resource: dict(items) for resource, items in self._items.items()}
        return other

    def forget(self) -> None:
        """Compacts: no watch and no list can go on from what it knew before now."""
        self._changes.clear()
        self.version += 1
        self.oldest = self.version

    def create(self, resource: Resource, namespace: str, body: Object, writer: Writer) -> Stored:
        """Stores a new object under its name, or under one that is made of its `generateName`."""
        metadata = body.get("metadata", {})
        name = metadata.get("name") or f"{metadata['generateName']}{uuid.uuid4().hex[:5]}"
        if self.has(resource, namespace, name):
            raise statuses.already_exists(resource, name)
        now = _now()
        given = {key: value for key, value in metadata.items() if key not in {"managedFields", "resourceVersion"}}
        place = {"namespace": namespace} if namespace else {}
        own = {"name": name, **place, "uid": str(uuid.uuid4()), "creationTimestamp": now}
        kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        item = _as_stored(resource, {**kind, **deepcopy(body), "metadata": deepcopy(given) | own})
        return self._write(resource, None, item, ownership.updated([], {}, item, writer, now))

    def patch(
        self, resource: Resource, namespace: str, name: str, writer: Writer, change: Callable[[Object], Any]
    ) -> Stored:
        """Replaces an object by what `change` makes of it, which is as an update by the writer."""

        def update(old: Object, owners: list[Owner]) -> Write:
            new = _within(old, change(old), writer)
            return new, ownership.updated(owners, old, new, writer, _now())

        return self._replace(resource, namespace, name, update)

    def apply(
        self, resource: Resource, namespace: str, name: str, writer: Writer, config: Object, *, force: bool
    ) -> Stored:
        """Server-side apply to an object that is there."""

        def apply(old: Object, owners: list[Owner]) -> Write:
            return ownership.applied(owners, old, _within({}, config, writer), writer, _now(), force=force)

        return self._replace(resource, namespace, name, apply)

    def delete(self, resource: Resource, namespace: str, name: str) -> Stored:
        before = self.get(resource, namespace, name)
        del self._items[resource][namespace, name]
        self.version += 1
        last = deepcopy(before.item)
        last["metadata"]["resourceVersion"] = str(self.version)
        self._tell(Change(self.version, resource, before, None, Stored(last)))
        return before

    def _replace(
        self, resource: Resource, namespace: str, name: str, update: Callable[[Object, list[Owner]], Write]
    ) -> Stored:
        """A write that changes nothing but the time of its ownership makes no new version."""
        before = self.get(resource, namespace, name)
        old = deepcopy(before.item)
        owners = ownership.owners_of(old)
        old["metadata"].pop("managedFields", None)
        new, owners_after = update(old, owners)
        _refuse_changed_identity(resource, old["metadata"], new["metadata"])
        new = _as_stored(resource, new)
        if new == old and _claims(owners) == _claims(owners_after):
            return before
        return self._write(resource, before, new, owners_after)

    def _write(self, resource: Resource, before: Stored | None, item: Object, owners: list[Owner]) -> Stored:
        validation.check(resource, item)
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        item["metadata"]["managedFields"] = ownership.managed_fields(owners)
        after = Stored(item)
        key = item["metadata"].get("namespace", ""), item["metadata"]["name"]
        self._items.setdefault(resource, {})[key] = after
        self._tell(Change(self.version, resource, before, after, after))
        return after

    def _tell(self, change: Change) -> None:
        if len(self._changes) == HISTORY:
            self.oldest = self._changes[0].version
        self._changes.append(change)
        for watcher in tuple(self.watchers):
            watcher(change)


def _within(old: Object, new: Object, writer: Writer) -> Object:
    """Of `new` what the writer can write: its status only through that subresource, and nothing else of it there."""
    apart = "spec" if writer.subresource == "status" else "status"
    rest = {section: value for section, value in new.items() if section != apart}
    return rest | ({apart: old[apart]} if apart in old else {})


def _refuse_changed_identity(resource: Resource, old: Object, new: Object) -> None:
    """What a write says of an object's identity and version has to be so; it need not say anything."""
    if new.get("name", old["name"]) != old["name"]:
        raise statuses.bad_request(
            f"the name of the object ({new['name']}) does not match the name on the URL ({old['name']})"
        )
    if new.get("uid", old["uid"]) != old["uid"]:
        why = f'Invalid value: "{new["uid"]}": field is immutable'
        raise statuses.invalid(resource, old["name"], [("metadata.uid", why)])
    if new.get("resourceVersion", old["resourceVersion"]) != old["resourceVersion"]:
        raise statuses.conflict(resource, old["name"])
    new |= {key: old[key] for key in _IDENTITY if key in old}
    new.pop("managedFields", None)


def _as_stored(resource: Resource, item: Object) -> Object:
    """With all sections, and without the fields that Kubernetes leaves out when they are empty or false."""
    for section in resource.sections:
        item.setdefault(section, {})
    for section in ("metadata", "spec"):
        values = item.get(section, {})
        for name in [name for name in _LEFT_OUT_EMPTY if name in values and not values[name]]:
            del values[name]
    return item


def _claims(owners: list[Owner]) -> set[tuple[Writer, frozenset[ownership.Path]]]:
    return {(owner.writer, owner.fields) for owner in owners}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
