"""Severity and action for each problem that DCGM reports. The rows are in `advice.toml`."""

from functools import cache

from pydantic import Field, TypeAdapter

from muster import Action, Severity
from muster.model import Data
from muster.toml import shipped_table


class Advice(Data):
    """One row, matched by DCGM's own severity or by words in its text, with severity, action and source."""

    error_severity: int | None = None
    words: str | None = None
    severity: Severity
    action: Action
    source: str = Field(min_length=1)


_ROWS = TypeAdapter(tuple[Advice, ...])

UNLISTED = Advice(severity=Severity.ERROR, action=Action.INSPECT_HARDWARE, source="no row in muster")
"""The row for a problem that no other row matches."""


@cache
def _rows() -> tuple[Advice, ...]:
    return _ROWS.validate_python(shipped_table("muster_plugins.checks.dcgm", "advice.toml")["advice"])


def advice(text: str, error_severity: int | None) -> Advice:
    """The row for a problem with this text and, if DCGM gives one, this severity."""
    for row in _rows():
        if row.error_severity is not None and row.error_severity == error_severity:
            return row
    said = text.lower()
    return next((row for row in _rows() if row.words is not None and row.words.lower() in said), UNLISTED)
