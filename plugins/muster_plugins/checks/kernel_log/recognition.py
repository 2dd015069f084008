"""Recognises what a record of the kernel's log means: by the rule for such lines, else by its words."""

from muster_plugins.checks.kernel_log.drivers import by_words
from muster_plugins.checks.kernel_log.events import EventEnd, KernelEvent, LinkStart
from muster_plugins.checks.kernel_log.record_parser import Record
from muster_plugins.checks.kernel_log.rules import by_rules


def recognise(record: Record) -> KernelEvent | EventEnd | LinkStart | None:
    """The meaning of a record; None if it has none."""
    return by_rules(record) or by_words(record)
