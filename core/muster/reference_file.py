"""Reads an operator's references for one host, in the form of `references.toml`."""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muster.errors import SettingsError
from muster.explain import explain
from muster.references import Reference, ReferenceRow, pointless
from muster.text_file import read_text

_SHAPE = 'must hold rows that begin with [[reference]] and give check = "gemm", metric = "tflops" and so on'


def read_references(path: Path | None, judged: Mapping[str, Collection[str]] | None = None) -> tuple[Reference, ...]:
    """The rows of the file at `path`; none without a path. SettingsError lists all wrong rows.

    `judged` has the judged metrics of each check; None if not all checks are known.
    """
    if path is None:
        return ()
    problems: list[str] = []
    rows: list[Reference] = []
    for number, table in enumerate(_tables(path), 1):
        try:
            row = ReferenceRow.model_validate(table)
        except ValidationError as error:
            wrong = explain(ReferenceRow, error, what="field")
        else:
            reason = None if judged is None else pointless(row, judged)
            wrong = [reason] if reason else []
            rows.append(Reference(**dict(row)))
        problems += [f"{path}, row {number}: {line}" for line in wrong]
    if problems:
        raise SettingsError("\n".join(problems))
    return tuple(rows)


def _tables(path: Path) -> list[Any]:
    try:
        content = tomllib.loads(read_text(path, "references_file"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"references_file: {path} is not TOML: {error}") from None
    tables = content.pop("reference", None)
    if content or not isinstance(tables, list):
        raise SettingsError(f"references_file: {path} {_SHAPE}")
    return tables
