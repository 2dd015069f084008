"""The meaning of each XID error of NVIDIA's driver and each SXid error of NVSwitch for a node.

The rows are in `xids.toml` and `sxids.toml`, each with its source.
"""

from functools import cache

from pydantic import Field, TypeAdapter

from muster import Action, Severity
from muster.model import Data
from muster.toml import shipped_table


class Detail(Data):
    """Severity and action of an error if `text` is in its line."""

    text: str = Field(min_length=1)
    severity: Severity
    action: Action


class Xid(Data):
    """One row: name, severity, action and source of an error."""

    code: int
    name: str
    severity: Severity
    action: Action
    source: str = Field(min_length=1)
    details: tuple[Detail, ...] = ()

    def for_line(self, line: str) -> "Xid":
        """The row with the first of its details whose text is in `line`."""
        detail = next((detail for detail in self.details if detail.text in line), None)
        return self.model_copy(update={"severity": detail.severity, "action": detail.action}) if detail else self


_ROWS = TypeAdapter(tuple[Xid, ...])

_UNLISTED = Xid(code=0, name="unlisted", severity=Severity.WARNING, action=Action.NONE, source="no row in muster")

_UNLISTED_OF_SWITCH = _UNLISTED.model_copy(
    update={
        "source": "no row in muster; the severity is the driver's own, from the line",
        "details": (Detail(text=" Fatal,", severity=Severity.ERROR, action=Action.REBOOT_NODE),),
    }
)


@cache
def catalogue() -> dict[int, Xid]:
    """The rows of the XIDs by code."""
    return _rows("xid")


@cache
def switch_catalogue() -> dict[int, Xid]:
    """The rows of the SXids by code."""
    return _rows("sxid")


def meaning(code: int, line: str = "") -> Xid:
    """The row of an XID, with details from the kernel's `line`. For an XID without a row, a WARNING that says so."""
    row = catalogue().get(code) or _UNLISTED.model_copy(update={"code": code})
    return row.for_line(line)


def switch_meaning(code: int, line: str = "") -> Xid:
    """The row of an SXid. For an SXid without a row, an ERROR if `line` calls it fatal, else a WARNING."""
    row = switch_catalogue().get(code) or _UNLISTED_OF_SWITCH.model_copy(update={"code": code})
    return row.for_line(line)


def _rows(kind: str) -> dict[int, Xid]:
    table = shipped_table("muster_plugins.shared", f"{kind}s.toml")
    return {row.code: row for row in _ROWS.validate_python(table[kind])}
