"""The findings that stand against a node, with the fields that decide about its service state."""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator

from muster.model import Action, Data, Finding, Instant, Json, Name, Severity, format_instant, parse_instant
from muster.transition import Cause

NUMBERS = ("xid", "sxid")
"""Evidence keys with the driver's error number. Errors with different numbers share one finding code."""

_NUMBERED = re.compile(r"\.(?P<what>s?xid) (?P<number>\d+)$")

FindingKey = tuple[str, str, int | None, str]
"""What stays the same when something is found again: the check, the code, the device, and the number if it has one."""


def number_in(evidence: Json) -> str:
    """The number by which a driver calls an error; empty where it has none."""
    return " ".join(str(evidence[name]) for name in NUMBERS if name in evidence)


def cause_label(cause: str) -> str:
    """What operators call the cause that nodes share: `kernel_log.xid 79` is XID 79."""
    found = _NUMBERED.search(cause)
    return cause if found is None else f"{found['what'].upper()} {found['number']}"


@lru_cache(maxsize=64)  # the same few moments come again and again
def as_stored(moment: float) -> float:
    """A time in whole milliseconds, rounded down as it is stored, so that a restart compares the same times."""
    return float(parse_instant(format_instant(moment)))


StoredInstant = Annotated[Instant, AfterValidator(as_stored)]


class Proof(StrEnum):
    """How well founded a finding is.

    ONCE: one run has found it. TWICE: a second run has found it again and no two passes in a row came between.
    LOCALISED: a sweep has convicted the node. COMPARED: the node is out of line with its fleet or with itself.
    """

    ONCE = "ONCE"
    TWICE = "TWICE"
    LOCALISED = "LOCALISED"
    COMPARED = "COMPARED"


class StandingFinding(Data):
    """A finding that stands against a node.

    `since` is when it was found first, `seen` when last, both by the start of the run, and `run` the id of that run, of
    a sweep when it is LOCALISED. Both times are as they are stored, otherwise it could begin after the time of the
    decision. `evidence` is that of the finding, such as the number of an XID. `uuid` is that of the device when the run
    was taken.
    """

    check: Name
    code: str
    device: int | None
    severity: Severity
    action: Action
    summary: str
    since: StoredInstant
    seen: StoredInstant
    run: str
    proof: Proof
    evidence: Json = {}
    uuid: str = ""

    @property
    def cause(self) -> str:
        """What nodes with the same trouble have in common: the code, and the number where a code stands for many."""
        return " ".join(filter(None, (self.code, number_in(self.evidence))))

    @property
    def as_cause(self) -> Cause:
        """The same as what a node is drained for."""
        finding = Finding(**{name: getattr(self, name) for name in Finding.model_fields})
        return Cause.of(finding, self.check, self.uuid).model_copy(update={"since": self.since})

    @property
    def key(self) -> FindingKey:
        """What stays the same when it is found again."""
        return self.check, self.code, self.device, number_in(self.evidence)
