"""The rules in `rules.toml`: single kinds of lines of the kernel's log, and what each means."""

import re
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from muster import Action, Severity
from muster.model import Data
from muster.toml import shipped_table
from muster_plugins.checks.kernel_log.events import (
    ADDRESS,
    EventEnd,
    EventRate,
    KernelEvent,
    LinkStart,
    normal_address,
)
from muster_plugins.checks.kernel_log.machine_check import MachineCheckKind, is_of_amd, machine_check_kind
from muster_plugins.checks.kernel_log.record_parser import Record
from muster_plugins.shared import xids


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("<address>", f"(?P<address>{ADDRESS})"), re.DOTALL)


CompiledPattern = Annotated[re.Pattern[str], BeforeValidator(_compiled)]
"""A regular expression in which `<address>` stands for a PCI address."""


def _each(pattern: str | list[str]) -> list[str]:
    return [pattern] if isinstance(pattern, str) else pattern


CompiledPatterns = Annotated[tuple[CompiledPattern, ...], BeforeValidator(_each)]
"""One such expression, or several of which one must be found."""


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
    """One row: lines that match `pattern` end events of these `codes` that ask for `action`, or leave them milder."""

    pattern: CompiledPattern
    codes: tuple[str, ...]
    action: Action
    leaves: Severity | None = None
    source: str = Field(min_length=1)


class LinkStartRule(Data):
    """One row: in lines that match `pattern`, the driver of a network adapter starts. Its link has not been up yet."""

    pattern: CompiledPattern
    source: str = Field(min_length=1)


Word = Annotated[str, Field(min_length=1)]


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Finds any of the words. Each first letter stands in the pattern once, so that few are tried at each place."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return re.compile("|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items()))


class RuleGroup(Data):
    """Rules for lines that have one of `words`. Only such lines are held against their patterns, which take time."""

    words: tuple[Word, ...]
    rule: tuple[EventRule, ...]
    end: tuple[EndRule, ...] = ()
    link_start: tuple[LinkStartRule, ...] = ()

    @cached_property
    def any_word(self) -> re.Pattern[str]:
        """Finds any of the words."""
        return _any_of(self.words)

    def recognise(self, record: Record) -> KernelEvent | EventEnd | LinkStart | None:
        """What the first rule with a pattern in the record says of it."""
        for end in self.end:
            if match := end.pattern.search(record.text):
                return EventEnd(end.codes, end.action, _address(match, record), end.leaves)
        for rule in self.rule:
            for pattern in rule.pattern:
                if (match := pattern.search(record.text)) and rule.means(match):
                    return _event(rule, match, record)
        for start in self.link_start:
            if (match := start.pattern.search(record.text)) and (address := _address(match, record)):
                return LinkStart(address)
        return None


class RuleTable(Data):
    """The content of `rules.toml`: groups in their order."""

    group: tuple[RuleGroup, ...]

    @cached_property
    def any_word(self) -> re.Pattern[str]:
        """Finds any word of any group. Most lines have none, and are not looked at again."""
        return _any_of(word for group in self.group for word in group.words)


@cache
def rule_table() -> RuleTable:
    """The content of `rules.toml`."""
    return RuleTable.model_validate(shipped_table("muster_plugins.checks.kernel_log", "rules.toml"))


def by_rules(record: Record) -> KernelEvent | EventEnd | LinkStart | None:
    """What the first matching rule says of a record; None if there is none."""
    table = rule_table()
    if not table.any_word.search(record.text):
        return None
    for group in table.group:
        if group.any_word.search(record.text) and (recognised := group.recognise(record)):
            return recognised
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


def _address(match: re.Match[str], record: Record) -> str | None:
    """The address in the line, or else the device that the kernel names for the record."""
    named = match.groupdict().get("address") or record.device
    return normal_address(named) if named else None
