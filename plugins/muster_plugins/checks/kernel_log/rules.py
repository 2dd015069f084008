"""Recognises events in lines of the kernel's log, by the rules in `rules.toml`."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from muster import Action, Severity
from muster.model import Data
from muster.toml import shipped_table
from muster_plugins.checks.kernel_log.record_parser import Record
from muster_plugins.shared import xids

_ADDRESS = r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.([0-7]))?"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("<address>", f"(?P<address>{_ADDRESS})"), re.DOTALL)


CompiledPattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A regular expression in which `<address>` stands for a PCI address."""


class EventRate(Data):
    """The metric that counts events of one kind, and the seconds over which it does."""

    metric: str
    per_s: float


class EventRule(Data):
    """One row: the event in lines that match `pattern`."""

    code: str
    pattern: CompiledPattern
    summary: str
    severity: Severity
    action: Action = Action.NONE
    source: str = Field(min_length=1)
    catalogue: Literal["xid", "sxid"] | None = None
    rate: EventRate | None = None


class EndRule(Data):
    """One row: lines that match `pattern` end events of these `codes` that ask for `action`."""

    pattern: CompiledPattern
    codes: tuple[str, ...]
    action: Action
    source: str = Field(min_length=1)


class KernelLogRules(Data):
    """All rows of `rules.toml`."""

    rule: tuple[EventRule, ...]
    end: tuple[EndRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """An event and its subject, equal for every repetition. `number` is the code of an XID or SXid."""

    code: str
    summary: str
    severity: Severity
    action: Action
    source: str
    address: str | None = None
    number: int | None = None
    rate: EventRate | None = None


@dataclass(frozen=True, slots=True)
class EventEnd:
    """The end of events with these codes and this `action`, of one device, or of all devices without an address."""

    codes: tuple[str, ...]
    action: Action
    address: str | None

    def ends(self, event: KernelEvent) -> bool:
        """Whether this ends `event`."""
        of_this_device = self.address is None or self.address == event.address
        return of_this_device and event.code in self.codes and event.action is self.action


@cache
def rules() -> KernelLogRules:
    """The rows of `rules.toml`."""
    return KernelLogRules.model_validate(shipped_table("muster_plugins.checks.kernel_log", "rules.toml"))


def recognise(record: Record) -> KernelEvent | EventEnd | None:
    """The event in a record; None if it has none."""
    for end in rules().end:
        if match := end.pattern.search(record.text):
            return EventEnd(end.codes, end.action, _address(match, record))
    for rule in rules().rule:
        if match := rule.pattern.search(record.text):
            return _event(rule, match, record)
    return None


_CATALOGUES = {"xid": ("XID", xids.meaning), "sxid": ("SXid", xids.switch_meaning)}


def _event(rule: EventRule, match: re.Match[str], record: Record) -> KernelEvent:
    address = _address(match, record)
    if rule.catalogue is None:
        return KernelEvent(
            code=rule.code,
            summary=rule.summary,
            severity=rule.severity,
            action=rule.action,
            source=rule.source,
            address=address,
            rate=rule.rate,
        )
    word, meaning = _CATALOGUES[rule.catalogue]
    row = meaning(int(match["number"]), record.text)
    return KernelEvent(
        code=rule.code,
        summary=f"{word} {row.code}, {row.name}",
        severity=row.severity,
        action=row.action,
        source=row.source,
        address=address,
        number=row.code,
    )


def normal_address(address: str) -> str | None:
    """A PCI address as in sysfs, `0000:17:00.0`; None if the text is not an address.

    NVIDIA's driver leaves the function out, and NVML gives the domain eight digits.
    """
    match = re.fullmatch(_ADDRESS, address)
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function or 0}".lower()


def _address(match: re.Match[str], record: Record) -> str | None:
    """The address in the line, or else the device that the kernel names for the record."""
    named = match.groupdict().get("address") or record.device
    return normal_address(named) if named else None
