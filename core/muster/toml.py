"""TOML: reads the tables that a package ships, and writes settings, which the standard library cannot.

Written by hand, because a secret is written as a comment in place of its value, and libraries write values only.
"""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, time
from importlib import resources
from typing import Any

from muster.secrecy import Masked


def shipped_table(package: str, name: str) -> dict[str, Any]:
    """The content of the file `name` in the import package `package`."""
    return tomllib.loads(resources.files(package).joinpath(name).read_text(encoding="utf-8"))


def to_toml(table: Mapping[str, Any]) -> str:
    """The table as TOML that reads back the same, except for comments in place of values that cannot be written.

    These are None, which TOML lacks, and masked values: a program would take `***` for the value.
    """
    return "\n".join(_table(table, ())).strip()


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {name: value for name, value in table.items() if isinstance(value, Mapping)}
    if path and (not tables or len(tables) < len(table)):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for name, value in table.items():
        if name not in tables:
            yield _line(name, value)
    for name, value in tables.items():
        yield from _table(value, (*path, name))


def _line(name: str, value: Any) -> str:
    if value is None:
        return f"# {_key(name)} is not set"
    line = f"{_key(name)} = {value_text(value)}"
    return f"# {line}  # holds a secret: put in the whole value" if _is_masked(value) else line


def _is_masked(value: Any) -> bool:
    match value:
        case Mapping():
            return any(map(_is_masked, value.values()))
        case list() | tuple():
            return any(map(_is_masked, value))
    return isinstance(value, Masked)


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("-", "_").isidentifier() else json.dumps(name)


def value_text(value: Any) -> str:
    """A value in TOML. Raises TypeError for one that TOML lacks."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)} = {value_text(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf and nan in TOML's form
    return json.dumps(value)
