"""What a line of the kernel's log means; the rules stand in `rules.toml`."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from muster import Action, Severity
from muster.model import Data
from muster.toml import shipped_table
from muster_plugins.checks.kernel_log.records import Record
from muster_plugins.shared import xids

_ADDRESS = r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.([0-7]))?"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("<address>", f"(?P<address>{_ADDRESS})"), re.DOTALL)


Pattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A regular expression in which `<address>` stands for a PCI address."""


class Rate(Data):
    """The metric that counts events of one kind, and the seconds over which it does."""

    metric: str
    per_s: float


class Rule(Data):
    """One row: the event that lines with `pattern` tell of."""

    code: str
    pattern: Pattern
    summary: str
    severity: Severity
    action: Action = Action.NONE
    source: str = Field(min_length=1)
    catalogue: Literal["xid", "sxid"] | None = None
    rate: Rate | None = None


class EndRule(Data):
    """One row: lines with `pattern` end events of these `codes` that asked for `action`."""

    pattern: Pattern
    codes: tuple[str, ...]
    action: Action
    source: str = Field(min_length=1)


class Rules(Data):
    """All rows of `rules.toml`."""

    rule: tuple[Rule, ...]
    end: tuple[EndRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened to what: equal for every repetition. `number` is the code of an XID or SXid."""

    code: str
    summary: str
    severity: Severity
    action: Action
    source: str
    address: str | None = None
    number: int | None = None
    rate: Rate | None = None


@dataclass(frozen=True, slots=True)
class End:
    """What is over: events of these codes that asked for `action`, of one device, or of all for no address."""

    codes: tuple[str, ...]
    action: Action
    address: str | None

    def ends(self, event: Event) -> bool:
        """Whether it ends that event."""
        of_this_device = self.address is None or self.address == event.address
        return of_this_device and event.code in self.codes and event.action is self.action


@cache
def rules() -> Rules:
    """The rows of `rules.toml`."""
    return Rules.model_validate(shipped_table("muster_plugins.checks.kernel_log", "rules.toml"))


def recognise(record: Record) -> Event | End | None:
    """What a record tells of; None for one that matters to nobody."""
    for end in rules().end:
        if match := end.pattern.search(record.text):
            return End(end.codes, end.action, _address(match, record))
    for rule in rules().rule:
        if match := rule.pattern.search(record.text):
            return _event(rule, match, record)
    return None


_CATALOGUES = {"xid": ("XID", xids.meaning), "sxid": ("SXid", xids.switch_meaning)}


def _event(rule: Rule, match: re.Match[str], record: Record) -> Event:
    address = _address(match, record)
    if rule.catalogue is None:
        return Event(
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
    return Event(
        code=rule.code,
        summary=f"{word} {row.code}, {row.name}",
        severity=row.severity,
        action=row.action,
        source=row.source,
        address=address,
        number=row.code,
    )


def normal_address(address: str) -> str | None:
    """A PCI address as sysfs writes it, `0000:17:00.0`; None for what is none.

    NVIDIA's driver leaves the function out, and NVML gives the domain eight digits.
    """
    match = re.fullmatch(_ADDRESS, address)
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function or 0}".lower()


def _address(match: re.Match[str], record: Record) -> str | None:
    """What the line names goes before what the kernel says that the record is about."""
    named = match.groupdict().get("address") or record.device
    return normal_address(named) if named else None
