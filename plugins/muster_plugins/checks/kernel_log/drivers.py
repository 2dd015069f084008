"""Reads lines of drivers for which there is no rule: by the part of the node that speaks, and by its words.

The table is `drivers.toml`. Each part, such as the disks, has a list of drivers and says which words count as a fault:

    lost     the device does not answer, has lost data or is broken
    vital    the same, and failures of what the device cannot work without
    failed   the same, and any other failure

Example: `lpfc 0000:82:00.0: 2:(0):2755 ADISC failure` is a fault, because each failure of a disk controller counts.
`i40e 0000:3b:00.1: Failed configuring TC map 0` is none, because a network adapter works without traffic classes.

What is read here is a WARNING; an ERROR needs a rule of its own. If the kernel's level is known, a message milder than
the `level` of the part counts only if the device is lost: drivers tell resets and timeouts as information, too.
"""

import re
from enum import StrEnum
from functools import cache, cached_property
from typing import Annotated

from pydantic import BeforeValidator, Field

from muster import Action, Severity
from muster.model import Data
from muster.toml import shipped_table
from muster_plugins.checks.kernel_log.events import ADDRESS, KernelEvent, normal_address
from muster_plugins.checks.kernel_log.record_parser import Record

LEVEL_WARNING = 4
"""The kernel's level `warning`; what is worse has a lower one (Linux, include/linux/kern_levels.h)."""

LEVEL_DEBUG = 7

ANY_OTHER = "*"
"""In place of a driver: any other one whose device is at a PCI address."""

MOST_NAME = 24
"""Characters of the longest word that is taken for the name of a device."""

_HEAD = re.compile(
    r"\s*(?:\[drm[:\w]* \[|<)?(?P<driver>(?P<letters>[A-Za-z]*)[\w-]*)\S*(?: " + f"(?P<address>{ADDRESS}))?"
)


class Counted(StrEnum):
    """Which words count as a fault, from few to many."""

    LOST = "lost"
    VITAL = "vital"
    FAILED = "failed"


def _any_of(expressions: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(expressions))


AnyOf = Annotated[re.Pattern[str], BeforeValidator(_any_of)]
"""Regular expressions of which one must be found."""


class FailureWords(Data):
    """What drivers say of faults, and of what is none."""

    stems: AnyOf
    lost: AnyOf
    failed: AnyOf
    vital: AnyOf
    harmless: AnyOf
    refused: AnyOf

    def tell(self, text: str, counted: Counted) -> bool:
        """Whether `text`, in small letters, tells of a fault, where the words of `counted` count."""
        if not self.stems.search(text):
            return False
        is_fault = self.lost.search(text) or self._fails(text, counted)
        return bool(is_fault) and not self.harmless.search(text)

    def _fails(self, text: str, counted: Counted) -> bool:
        """Whether something failed that counts, and no request was refused."""
        if counted is Counted.LOST or not self.failed.search(text):
            return False
        return (counted is Counted.FAILED or bool(self.vital.search(text))) and not self.refused.search(text)


class NodePart(Data):
    """One row: a part of the node, its drivers, and the event that their failures are.

    `level` is the mildest of the kernel's levels at which not only lost devices count.
    """

    code: str
    drivers: tuple[str, ...]
    counts: Counted
    level: int = LEVEL_WARNING
    summary: str
    action: Action = Action.NONE
    source: str = Field(min_length=1)


class _Ignored(Data):
    drivers: tuple[str, ...]


class DriverTable(Data):
    """The content of `drivers.toml`."""

    words: FailureWords
    part: tuple[NodePart, ...]
    ignored: _Ignored

    @cached_property
    def by_driver(self) -> dict[str, NodePart | None]:
        """The part of each driver, by its name in small letters; None for a driver that does not matter."""
        parts: dict[str, NodePart | None] = {driver.lower(): None for driver in self.ignored.drivers}
        return parts | {driver.lower(): part for part in self.part for driver in part.drivers}


@cache
def driver_table() -> DriverTable:
    """The content of `drivers.toml`."""
    return DriverTable.model_validate(shipped_table("muster_plugins.checks.kernel_log", "drivers.toml"))


def by_words(record: Record) -> KernelEvent | None:
    """The fault that the words of a record tell of; None without one, or if no driver speaks that matters."""
    head = _HEAD.match(record.text)
    part = head and _part(head)
    level = LEVEL_WARNING if record.level is None else record.level
    if not head or not part or level == LEVEL_DEBUG:
        return None
    counted = part.counts if level <= part.level else Counted.LOST
    if not driver_table().words.tell(record.text[head.end() :].lower(), counted):
        return None
    address = normal_address(head["address"] or record.device or "")
    return KernelEvent(
        code=part.code,
        summary=part.summary,
        severity=Severity.WARNING,
        action=part.action,
        source=part.source,
        address=address,
        name=None if address else _name(record.text),
    )


def _part(head: re.Match[str]) -> NodePart | None:
    """The part of the driver; of any other driver, if its device is at a PCI address."""
    parts = driver_table().by_driver
    for name in (head["driver"].lower(), head["letters"].lower()):
        if name in parts:
            return parts[name]
    return parts[ANY_OTHER] if head["address"] else None


def _name(text: str) -> str | None:
    """What the head of a line calls the device: `nvme0` in `nvme nvme0: …`, `mpt3sas_cm0` in `mpt3sas_cm0: …`."""
    words = text.partition(": ")[0].split()
    return words[-1].strip("()") if words and len(words) <= 2 and len(words[-1]) <= MOST_NAME else None
