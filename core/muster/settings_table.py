"""The unchecked settings from the file and the environment, as one table.

The environment overrides the file: `MUSTER_HTTP__LISTEN` is the key `listen` of the table `[http]`.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.errors import SettingsError
from muster.text_file import read_text

ENVIRONMENT_PREFIX = "MUSTER_"

CLIENT_VARIABLES = frozenset({"MUSTER_CONFIG", "MUSTER_URL", "MUSTER_RUN"})
"""Variables that are not settings: the first two are options of the command line, the last marks the processes of a
run.
"""


def read_table(path: Path | None, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The settings in the file at `path`, if any, and in the environment; empty if there are none.

    Raises SettingsError if the file cannot be read or is not TOML.
    """
    table = {} if path is None else _read(path)
    _overlay(table, environment)
    return table


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, "settings"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"settings: {path} is not TOML: {error}") from None


def _overlay(table: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable in sorted(environment):
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in CLIENT_VARIABLES:
            continue
        *parents, last = variable.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")
        level = table
        for parent in parents:
            level = level.setdefault(parent, {})
            if not isinstance(level, dict):
                raise SettingsError(f"{variable}: {parent!r} is a single value, not a table")
        level[last] = _value(environment[variable])


def _value(text: str) -> Any:
    """Lists and tables are given as JSON; anything else stays a string, which pydantic converts."""
    if text[:1] not in ("[", "{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
