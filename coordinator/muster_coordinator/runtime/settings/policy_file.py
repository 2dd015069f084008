"""Reads the policy: the rows that come with muster, and the operator's rows in the same form.

The operator's rows come before the shipped ones. `without = ["row"]` switches off some shipped rows, and `replace =
true` all of them.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, field_validator

from muster.errors import SettingsError, unknown
from muster.explain import explain
from muster.section import Section
from muster.text_file import read_text
from muster.toml import shipped_table
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.contradictions import pointless_rows
from muster_coordinator.runtime.settings.known_findings import KnownFinding, with_named

M = TypeVar("M", bound=BaseModel)


class _File(Section):
    """A policy file. Its rows are validated one by one, so that each error names its row."""

    replace: bool = False
    without: tuple[str, ...] = ()
    row: tuple[dict[str, Any], ...] = ()

    @field_validator("row", mode="before")
    @classmethod
    def _are_many(cls, rows: object) -> object:
        if isinstance(rows, dict):
            raise ValueError("each row begins with [[row]], in two brackets")
        return rows


@cache
def shipped_rows() -> tuple[Row, ...]:
    """The rows that come with muster."""
    return tuple(map(Row.model_validate, shipped_table("muster_coordinator.runtime.settings", "policy.toml")["row"]))


def read_policy(
    path: Path | None, known: frozenset[KnownFinding] | None = None, *, named_by: str = "quarantine.policy_file"
) -> Policy:
    """The policy in effect with the operator's file at `path`. Raises SettingsError with everything that is wrong.

    `known` are the findings that can exist; None if not all checks are known, and then the file may name any finding.
    `named_by` is the setting or option that names the file.
    """
    if path is None:
        return Policy(shipped_rows())
    problems: list[str] = []
    file = _valid(_File, _content(path, named_by), f"{named_by}: {path}", problems)
    rows = [_row(path, number, table, problems) for number, table in enumerate(file.row if file else (), 1)]
    valid = [row for row in rows if row is not None]
    if file is not None:
        problems += [f"{path}: {problem}" for problem in _wrong_choice(file, valid)]
    if known is not None:
        patterns = [pattern for row in valid for pattern in row.codes]
        problems += [f"{path}, {problem}" for problem in pointless_rows(valid, with_named(known, patterns))]
    if file is None or problems:
        raise SettingsError("\n".join(problems))
    return Policy((*valid, *_left(file)))


def _content(path: Path, named_by: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, named_by))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{named_by}: {path} is not TOML: {error}") from None


def _row(path: Path, number: int, table: dict[str, Any], problems: list[str]) -> Row | None:
    name = table.get("name")
    return _valid(Row, table, f"{path}, row {name if isinstance(name, str) else number}", problems)


def _valid(model: type[M], table: dict[str, Any], where: str, problems: list[str]) -> M | None:
    try:
        return model.model_validate(table)
    except ValidationError as error:
        problems += [f"{where}: {line}" for line in explain(model, error, what="field")]
        return None


def _left(file: _File) -> Iterable[Row]:
    """The shipped rows that the file leaves in effect."""
    return () if file.replace else (row for row in shipped_rows() if row.name not in file.without)


def _wrong_choice(file: _File, rows: Iterable[Row]) -> Iterator[str]:
    shipped = [row.name for row in shipped_rows()]
    for name in file.without:
        if name not in shipped:
            yield unknown("shipped row in without", name, shipped)
    if file.replace and file.without:
        yield "replace = true leaves no shipped row that without could switch off: give one of them"
    names = Counter(row.name for row in rows)
    for name in (name for name, times in names.items() if times > 1):
        yield f"two rows have the name {name!r}: give each its own"
    for name in sorted({row.name for row in _left(file)} & names.keys()):
        yield f"row {name!r} has the name of a shipped one: give it another, or switch that off: without = [{name!r}]"
