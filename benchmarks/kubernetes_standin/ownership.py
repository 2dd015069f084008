"""Who owns which fields of an object: `metadata.managedFields`, and server-side apply, which respects them.

A field is the path to a value that is changed as a whole, in the words of FieldsV1: `f:name` for a field, `k:{...}` for
an item of a keyed list, `.` for that item itself. Owning `spec.taints` is owning all taints, since that list is atomic.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.kubernetes_standin.resources import MERGE_KEYS, Object
from benchmarks.kubernetes_standin.statuses import apply_conflict

Path = tuple[str, ...]

_OWNED_METADATA = frozenset({"annotations", "finalizers", "labels", "ownerReferences"})


@dataclass(frozen=True)
class Writer:
    """Who writes, as managedFields tells them apart: the same name by another operation is somebody else."""

    manager: str
    operation: str
    api_version: str = "v1"
    subresource: str | None = None

    def __str__(self) -> str:
        subresource = f' with subresource "{self.subresource}"' if self.subresource else ""
        version = f" using {self.api_version}" if self.operation == "Update" else ""
        return f'"{self.manager}"{subresource}{version}'


@dataclass(frozen=True)
class Owner:
    """An entry of managedFields."""

    writer: Writer
    time: str
    fields: frozenset[Path]


def owners_of(item: Object) -> list[Owner]:
    """The entries of an object's managedFields."""
    return [
        Owner(
            Writer(entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource")),
            entry["time"],
            frozenset(_paths(entry["fieldsV1"])),
        )
        for entry in item["metadata"].get("managedFields", [])
    ]


def managed_fields(owners: Iterable[Owner]) -> list[Object]:
    """The entries as an object's managedFields has them."""
    return [
        {
            "manager": owner.writer.manager,
            "operation": owner.writer.operation,
            "apiVersion": owner.writer.api_version,
            "time": owner.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _tree(owner.fields),
            **({"subresource": owner.writer.subresource} if owner.writer.subresource else {}),
        }
        for owner in owners
    ]


def updated(owners: Iterable[Owner], old: Object, new: Object, writer: Writer, now: str) -> list[Owner]:
    """The owners after a write that is not an apply: whoever changed a field is its only owner."""
    before, after = fields_of(old), fields_of(new)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    lost = changed | (before.keys() - after.keys())
    return _with(_without(owners, lost), writer, changed, now, keep=True) if lost else list(owners)


def applied(
    owners: list[Owner], old: Object, config: Object, writer: Writer, now: str, *, force: bool
) -> tuple[Object, list[Owner]]:
    """The object and its owners after a server-side apply of `config`; Refused when others own what it changes.

    What the writer applied before and does not apply now is removed, unless somebody else owns it too.
    """
    applying = fields_of(config)
    before = fields_of(old)
    others = [owner for owner in owners if owner.writer != writer]
    changed = {path for path, value in applying.items() if path not in before or before[path] != value}
    if not force:
        _refuse_conflicts(others, changed)
    others = _without(others, changed)
    mine = {path for owner in owners if owner.writer == writer for path in owner.fields}
    kept = {path for owner in others for path in owner.fields}
    new = _merged(deepcopy(old), config)
    for path in sorted(mine - applying.keys() - kept):
        _remove(new, path)
    return new, _with(others, writer, applying, now, keep=False)


def fields_of(item: Object) -> dict[Path, Any]:
    """Every field that can be owned, with its value; an object without fields is none."""
    metadata = {name: value for name, value in item.get("metadata", {}).items() if name in _OWNED_METADATA}
    rest = {name: value for name, value in item.items() if name not in {"apiVersion", "kind", "metadata"}}
    return dict(_leaves({"metadata": metadata, **rest}, (), ()))


def _leaves(value: Any, path: Path, names: tuple[str, ...]) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, f"f:{name}"), (*names, name))
    elif isinstance(value, list) and names in MERGE_KEYS:
        for inner in value:
            item = (*path, _item(inner, MERGE_KEYS[names]))
            yield (*item, "."), True
            yield from _leaves(inner, item, (*names, "*"))
    else:
        yield path, value


def _item(item: Object, key: str) -> str:
    return f"k:{json.dumps({key: item[key]}, separators=(',', ':'))}"


def _paths(tree: Object, path: Path = ()) -> Iterator[Path]:
    for name, inner in tree.items():
        if inner:
            yield from _paths(inner, (*path, name))
        else:
            yield (*path, name)


def _tree(paths: Collection[Path]) -> Object:
    tree: Object = {}
    for path in sorted(paths):
        branch = tree
        for name in path:
            branch = branch.setdefault(name, {})
    return tree


def _without(owners: Iterable[Owner], paths: Collection[Path]) -> list[Owner]:
    left = (replace(owner, fields=owner.fields.difference(paths)) for owner in owners)
    return [owner for owner in left if owner.fields]


def _with(owners: list[Owner], writer: Writer, paths: Iterable[Path], now: str, *, keep: bool) -> list[Owner]:
    """With `paths` as the writer's, beside those that it had if they are to be kept."""
    fields = frozenset(paths).union(*(owner.fields for owner in owners if keep and owner.writer == writer))
    others = [owner for owner in owners if owner.writer != writer]
    return [*others, Owner(writer, now, fields)] if fields else others


def _refuse_conflicts(others: Iterable[Owner], changed: Collection[Path]) -> None:
    conflicts = {
        str(owner.writer): sorted(_dotted(path) for path in owner.fields.intersection(changed))
        for owner in others
        if owner.fields.intersection(changed)
    }
    causes: list[Object] = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {writer}", "field": field}
        for writer, fields in sorted(conflicts.items())
        for field in fields
    ]
    if causes:
        raise apply_conflict(_conflict_message(conflicts), causes)


def _conflict_message(conflicts: Mapping[str, list[str]]) -> str:
    count = sum(map(len, conflicts.values()))
    if count == 1:
        ((writer, (field,)),) = conflicts.items()
        return f"Apply failed with 1 conflict: conflict with {writer}: {field}"
    parts = ("\n- ".join((f"conflicts with {writer}:", *fields)) for writer, fields in sorted(conflicts.items()))
    return f"Apply failed with {count} conflicts: " + "\n".join(parts)


def _dotted(path: Path) -> str:
    """The field as errors name it: `.status.conditions[type="Ready"].status`."""
    return "".join(_step(name) for name in path if name != ".")


def _step(name: str) -> str:
    kind, _, rest = name.partition(":")
    if kind == "f":
        return f".{rest}"
    keys = json.loads(rest)
    return f"[{','.join(f'{key}={json.dumps(value)}' for key, value in keys.items())}]"


def _merged(old: Any, config: Any, names: tuple[str, ...] = ()) -> Any:
    if isinstance(config, dict):
        base = dict(old) if isinstance(old, dict) else {}
        return base | {name: _merged(base.get(name), value, (*names, name)) for name, value in config.items()}
    if isinstance(config, list) and names in MERGE_KEYS:
        key = MERGE_KEYS[names]
        items = {item[key]: item for item in old or []}
        items |= {item[key]: _merged(items.get(item[key]), item, (*names, "*")) for item in config}
        return list(items.values())
    return deepcopy(config)


def _remove(item: Object, path: Path) -> None:
    """Removes a field, or an item of a keyed list, if it is there."""
    *parents, last = path[:-1] if path[-1] == "." else path
    holder: Any = item
    for name in parents:
        holder = _inner(holder, name)
    if holder is None:
        return
    if last.startswith("f:"):
        holder.pop(last.removeprefix("f:"), None)
    elif (found := _inner(holder, last)) is not None:
        holder.remove(found)


def _inner(holder: Any, name: str) -> Any:
    if holder is None:
        return None
    kind, _, rest = name.partition(":")
    if kind == "f":
        return holder.get(rest)
    keys = json.loads(rest).items()
    return next((item for item in holder if keys <= item.items()), None)
