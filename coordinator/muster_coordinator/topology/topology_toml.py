"""Reads muster's own topology file: TOML with a table for each leaf, rack or block, such as `[[leaf]]`."""

import tomllib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from muster.errors import unknown
from muster.explain import explain
from muster.model import Topology
from muster_coordinator.topology.statements import Statement, names_in

_LEVELS = tuple(Topology.model_fields)


class _Place(BaseModel):
    """One table: its name, its nodes, and the other levels that they share."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    nodes: tuple[str, ...] = Field(min_length=1)
    block: str | None = None
    rack: str | None = None
    leaf: str | None = None
    host: str | None = None

    @field_validator("nodes")
    @classmethod
    def _expanded(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for item in value for name in names_in(item))

    @field_validator("name", *_LEVELS)
    @classmethod
    def _is_one_name(cls, value: str | None) -> str | None:
        if value is not None and names_in(value) != [value]:
            raise ValueError("must be one name")
        return value


def parse_tables(text: str) -> tuple[list[Statement], list[str]]:
    """The statements of the file about nodes, and its problems, one line each."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [], [f"not TOML: {error}"]
    statements: list[Statement] = []
    problems = [unknown("table", key, _LEVELS) for key in content if key not in _LEVELS]
    first: dict[tuple[str, str], str] = {}
    for level, origin, row in _rows(content):
        try:
            place = _Place.model_validate(row)
        except ValidationError as error:
            problems += [f"{origin}: {line}" for line in explain(_Place, error, what="field")]
            continue
        before = first.setdefault((level, place.name), origin)
        if before != origin:
            problems.append(f"{origin}: {place.name} is {before} already: give each another name")
        elif level in row:
            problems.append(f"{origin}: field {level!r}: the name of the table already says it")
        statements.append(Statement(origin, place.nodes, _topology(level, place)))
    return statements, problems


def _rows(content: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Each table with its level and its name in messages. A value that is not a list of tables fails validation."""
    for level in _LEVELS:
        rows = content.get(level, [])
        for number, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
            yield level, f"[[{level}]] number {number}", row


def _topology(level: str, place: _Place) -> Topology:
    others = place.model_dump(include={*_LEVELS})
    return Topology(**{**others, level: place.name})
