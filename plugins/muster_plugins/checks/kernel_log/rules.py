"""Recognises events in lines of the kernel's log, by the rules in `rules.toml`."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from muster import Action, Severity
from muster.model import Data
from muster.toml import shipped_table
from muster_plugins.checks.kernel_log.machine_check import MachineCheckKind, is_of_amd, machine_check_kind
from muster_plugins.checks.kernel_log.record_parser import Record
from muster_plugins.shared import xids

_ADDRESS = r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.([0-7]))?"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("<address>", f"(?P<address>{_ADDRESS})"), re.DOTALL)


CompiledPattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A regular expression in which `<address>` stands for a PCI address."""


def _each(pattern: str | list[str]) -> list[str]:
    return [pattern] if isinstance(pattern, str) else pattern


CompiledPatterns = Annotated[tuple[CompiledPattern, ...], BeforeValidator(_each)]
"""One such expression, or several of which one must be found."""


class EventRate(Data):
    """The metric that counts events of one kind, and the seconds over which it does."""

    metric: str
    per_s: float


class EventRule(Data):
    """One row: the event in lines that match `pattern`.

    `status` are the kinds of machine checks that are meant, where the group `status` of a pattern has their status.
    `link` says that the event is a link that goes down, which means little before it was up for the first time.
    """

    code: str
    pattern: CompiledPatterns
    summary: str
    severity: Severity
    action: Action = Action.NONE
    source: str = Field(min_length=1)
    catalogue: Literal["xid", "sxid"] | None = None
    rate: EventRate | None = None
    status: tuple[MachineCheckKind, ...] = ()
    link: bool = False

    def means(self, match: re.Match[str]) -> bool:
        """Whether a match is the event: where it has the status of a machine check, that must be one that is meant."""
        status = match.groupdict().get("status")
        return status is None or machine_check_kind(int(status, 16), amd=is_of_amd(match.string)) in self.status


class EndRule(Data):
    """One row: lines that match `pattern` end events of these `codes` that ask for `action`."""

    pattern: CompiledPattern
    codes: tuple[str, ...]
    action: Action
    source: str = Field(min_length=1)


class LinkStartRule(Data):
    """One row: in lines that match `pattern`, the driver of a network adapter starts. Its link has not been up yet."""

    pattern: CompiledPattern
    source: str = Field(min_length=1)


class KernelLogRules(Data):
    """All rows of `rules.toml`."""

    rule: tuple[EventRule, ...]
    end: tuple[EndRule, ...]
    link_start: tuple[LinkStartRule, ...]


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
    link: bool = False


@dataclass(frozen=True, slots=True)
class LinkStart:
    """The driver of the network adapter at `address` starts."""

    address: str


@dataclass(frozen=True, slots=True)
class EventEnd:
    """The end of events with these codes and this `action`, of one device, or of all devices without an address.

    It also ends events whose lines do not say of which device they are.
    """

    codes: tuple[str, ...]
    action: Action
    address: str | None

    def ends(self, event: KernelEvent) -> bool:
        """Whether this ends `event`."""
        of_this_device = self.address is None or event.address in {None, self.address}
        return of_this_device and event.code in self.codes and event.action is self.action


@cache
def rules() -> KernelLogRules:
    """The rows of `rules.toml`."""
    return KernelLogRules.model_validate(shipped_table("muster_plugins.checks.kernel_log", "rules.toml"))


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], EventRule], ...]:
    """All patterns in their order: what is asked of every line of the log must be quick."""
    return tuple((pattern, rule) for rule in rules().rule for pattern in rule.pattern)


def recognise(record: Record) -> KernelEvent | EventEnd | LinkStart | None:
    """The event in a record; None if it has none."""
    for end in rules().end:
        if match := end.pattern.search(record.text):
            return EventEnd(end.codes, end.action, _address(match, record))
    for pattern, rule in _patterns():
        if (match := pattern.search(record.text)) and rule.means(match):
            return _event(rule, match, record)
    for start in rules().link_start:
        if (match := start.pattern.search(record.text)) and (address := _address(match, record)):
            return LinkStart(address)
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
            link=rule.link,
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
