"""What each XID error of NVIDIA's driver means for a node; the rows stand in `xids.toml`."""

import tomllib
from functools import cache
from importlib import resources

from pydantic import Field, TypeAdapter

from muster import Action, Severity
from muster.model import Data


class Xid(Data):
    """One row: what the error is called, what it weighs, what to do, and who says so."""

    code: int
    name: str
    severity: Severity
    action: Action
    source: str = Field(min_length=1)


_ROWS = TypeAdapter(tuple[Xid, ...])


@cache
def catalogue() -> dict[int, Xid]:
    """The rows by code."""
    text = resources.files("muster_plugins").joinpath("xids.toml").read_text(encoding="utf-8")
    return {row.code: row for row in _ROWS.validate_python(tomllib.loads(text)["xid"])}


def meaning(code: int) -> Xid:
    """The row of an XID; of one without a row, a WARNING that says so."""
    unlisted = Xid(code=code, name="unlisted", severity=Severity.WARNING, action=Action.NONE, source="no row in muster")
    return catalogue().get(code, unlisted)
