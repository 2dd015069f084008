"""What a single line of the kernel's log means, for the tests of the rules."""

from collections.abc import Iterable
from typing import Any

from muster_plugins.checks.kernel_log.recognition import recognise
from muster_plugins.checks.kernel_log.record_parser import Record
from muster_plugins.checks.kernel_log.rules import by_rules, rule_table


def told_by(line: str, device: str | None = None, level: int | None = None) -> Any:
    """What the rules, or else the words, say of a line; None if it has no meaning."""
    return recognise(Record(1, 1.0, line, device, level))


def must_not_be_hidden(lines: Iterable[str]) -> None:
    """Fails if the words of a group hide one of these lines from its rules: the words only save time."""
    for record in (Record(1, 1.0, line) for line in lines):
        found = next(filter(None, (group.recognise(record) for group in rule_table().group)), None)
        assert by_rules(record) == found, record.text
