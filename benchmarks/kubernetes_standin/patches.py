"""The patches that Kubernetes knows, as functions from an object to the patched one; none changes what it is given."""

from copy import deepcopy
from typing import Any

from benchmarks.kubernetes_standin.resources import MERGE_KEYS, Object
from benchmarks.kubernetes_standin.statuses import unprocessable

_DIRECTIVE = "$patch"


def merge_patched(value: Any, patch: Any) -> Any:
    """RFC 7396: null removes, objects are merged, anything else is replaced."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    merged = dict(value) if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patched(merged.get(key), change)
    return merged


def strategic_patched(value: Any, patch: Any, path: tuple[str, ...] = ()) -> Any:
    """As a merge patch, but the items of keyed lists are merged by their key, and `$patch` may delete or replace."""
    if isinstance(patch, list) and path in MERGE_KEYS:
        return _list_patched(value or [], patch, path)
    if not isinstance(patch, dict):
        return deepcopy(patch)
    replaced = patch.get(_DIRECTIVE) == "replace"
    merged = dict(value) if isinstance(value, dict) and not replaced else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        elif not key.startswith("$"):
            merged[key] = strategic_patched(merged.get(key), change, (*path, key))
    return merged


def _list_patched(items: list[Object], patch: list[Object], path: tuple[str, ...]) -> list[Object]:
    key = MERGE_KEYS[path]
    replaced = any(change.get(_DIRECTIVE) == "replace" for change in patch)
    merged = {} if replaced else {item[key]: item for item in items}
    for change in patch:
        if change.get(_DIRECTIVE) == "delete":
            merged.pop(change[key], None)
        elif key in change:
            merged[change[key]] = strategic_patched(merged.get(change[key]), change, (*path, "*"))
    return list(merged.values())


def json_patched(value: Object, operations: list[Object]) -> Object:
    """RFC 6902, without `move` and `copy`; what does not fit, a failed `test` included, is refused as a whole."""
    patched = {"": deepcopy(value)}
    try:
        for operation in operations:
            _operate(patched, operation)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise unprocessable() from None
    return patched[""]


def _operate(document: Object, operation: Object) -> None:
    names = [name.replace("~1", "/").replace("~0", "~") for name in operation["path"].split("/")]
    parent: Any = document
    for name in names[:-1]:
        parent = parent[int(name) if isinstance(parent, list) else name]
    if isinstance(parent, list):
        _operate_in_list(parent, names[-1], operation)
    else:
        _operate_in_object(parent, names[-1], operation)


def _operate_in_object(parent: Object, name: str, operation: Object) -> None:
    match operation["op"]:
        case "add":
            parent[name] = operation["value"]
        case "replace" if name in parent:
            parent[name] = operation["value"]
        case "remove":
            del parent[name]
        case _:
            _test(parent.get(name), operation)


def _operate_in_list(parent: list[Any], name: str, operation: Object) -> None:
    index = len(parent) if name == "-" else int(name)
    if index not in range(len(parent) + (operation["op"] == "add")):
        raise IndexError(index)
    match operation["op"]:
        case "add":
            parent.insert(index, operation["value"])
        case "replace":
            parent[index] = operation["value"]
        case "remove":
            del parent[index]
        case _:
            _test(parent[index], operation)


def _test(value: Any, operation: Object) -> None:
    if operation["op"] != "test" or value != operation.get("value"):
        raise ValueError(operation["op"])
