"""The policy that the settings name: the operator's rows before the shipped ones, checked against the installed checks.

The operator's file has the same shape as the shipped one. `without = ["row"]` switches off single shipped rows, and
`replace = true` all of them.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError, field_validator

from muster.check import AnyCheck
from muster.config import Settings
from muster.errors import SettingsError, unknown
from muster.explain import explain
from muster.plugins import Plugins, collect_checks
from muster.section import Section
from muster.toml import shipped_table
from muster_coordinator.model.policy_row import Row
from muster_coordinator.quarantine.contradictions import pointless_rows, shadows
from muster_coordinator.quarantine.known_findings import Known, known_findings, with_named
from muster_coordinator.quarantine.policy import Policy

M = TypeVar("M", bound=BaseModel)


class _File(Section):
    """A policy file. Its rows are validated one by one, so each error names its row."""

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


def read_policy(path: Path | None, known: frozenset[Known] | None = None) -> Policy:
    """The policy in effect with the operator's file at `path`; SettingsError lists all problems of the file.

    `known` are all possible findings. If they are unknown (None), rows may name any finding.
    """
    if path is None:
        return Policy(shipped_rows())
    problems: list[str] = []
    file = _valid(_File, _content(path), f"quarantine.policy_file: {path}", problems)
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


def _content(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"quarantine.policy_file: cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"quarantine.policy_file: {path} is not TOML: {error}") from None


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


def known_checks(plugins: Plugins) -> Mapping[str, AnyCheck] | None:
    """All installed checks by name; None if a plugin has failed to load, because its checks are unknown."""
    checks = collect_checks(plugins)
    return None if plugins.failed else checks


def policy_of(settings: Settings, checks: Mapping[str, AnyCheck] | None) -> Policy:
    """The policy in effect; SettingsError lists all problems.

    `checks` are all installed checks by name. If they are unknown (None), rows may name any finding.
    """
    policy = read_policy(settings.quarantine.policy_file, None if checks is None else known_findings(checks))
    if settings.quarantine.mode == "enforce" and takes_nothing_out(policy, checks):
        raise SettingsError(
            f"quarantine.policy_file: {settings.quarantine.policy_file}: no row can take a node out of service, and "
            "mode = 'enforce' is for that: give rows that can, or let the shipped ones count (no replace = true, and "
            "no row before them that keeps every node in service)"
        )
    return policy


def takes_nothing_out(policy: Policy, checks: Mapping[str, AnyCheck] | None) -> bool:
    """Whether no row can ever drain a node, as far as known."""
    never = shadowed(policy, checks)
    return not any(row.takes_out and row.name not in never for row in policy.rows)


def shadowed(policy: Policy, checks: Mapping[str, AnyCheck] | None) -> Mapping[str, str]:
    """By name of a row that can never decide, the name of the earlier row that matches everything it matches."""
    if checks is None:
        return {}
    known = with_named(known_findings(checks), [pattern for row in policy.rows for pattern in row.codes])
    firsts = shadows(policy.rows, known)
    return {row.name: first.name for row, first in zip(policy.rows, firsts, strict=True) if first is not None}
