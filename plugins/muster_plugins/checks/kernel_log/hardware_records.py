"""Joins the lines that the kernel prints about one hardware error into one record.

What firmware reports (GHES at run time, BERT after a boot) takes a line for each field: severity, kind of section and
device stand in lines of their own, and only together they say what has failed. A machine check has its status in the
first line and the vendor of the processor in the last. All other records pass unchanged, also between such lines. The
number in braces tells apart reports whose lines are mixed, because CPUs print them at the same time.

Example, of which the second to the fifth line become one record:

    {1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 5
    {1}[Hardware Error]: event severity: recoverable
    {1}[Hardware Error]:  Error 0, type: fatal
    {1}[Hardware Error]:   section_type: PCIe error
    {1}[Hardware Error]:   device_id: 0000:04:00.0
    tg3 0000:04:00.0: AER: aer_status: 0x00100000, aer_mask: 0x00010000

Sources: Linux, drivers/firmware/efi/cper.c, drivers/acpi/apei and arch/x86/kernel/cpu/mce/core.c.
"""

import re
from collections.abc import Iterator

from muster_plugins.checks.kernel_log.record_parser import Record

MOST_LINES = 64
"""A section has at most about 40 lines; with more than this, lines of something else were taken for its own."""

MOST_REPORTS = 8
"""Reports that are collected at once: CPUs print theirs at the same time, and their lines are mixed then."""

_LINE = re.compile(r"(?P<report>\{\d+\})?(?:mce: )?\[Hardware Error\]: (?P<said>.*)", re.DOTALL)
_EVENT = re.compile(r"event severity: ")
_SECTION = re.compile(r"\s*Error \d+, type: ")
_MACHINE_CHECK = re.compile(r"CPU \d+: Machine Check: ")
_LAST_OF_MACHINE_CHECK = re.compile(r"PROCESSOR ")


class HardwareRecords:
    """The lines of hardware errors until the last one of each is known, by the number of the report."""

    def __init__(self) -> None:
        self._reports: dict[str | None, list[Record]] = {}

    def add(self, record: Record) -> Iterator[Record]:
        """The records that are complete with this one."""
        match = _LINE.match(record.text)
        if match is None:
            yield record
            return
        report, said = match["report"], match["said"]
        lines = self._reports.get(report, [])
        is_section = bool(_SECTION.match(said)) and not _is_event_alone(lines)
        if is_section or _EVENT.match(said) or _MACHINE_CHECK.match(said):
            yield from self._begin(report, record)
        elif not lines or len(lines) >= MOST_LINES:
            yield record
        else:
            lines.append(record)
            if _LAST_OF_MACHINE_CHECK.match(said):
                yield from self._complete(report)

    def rest(self) -> Iterator[Record]:
        """The records of the lines so far, if there are any."""
        for report in list(self._reports):
            yield from self._complete(report)

    def _begin(self, report: str | None, record: Record) -> Iterator[Record]:
        yield from self._complete(report)
        if len(self._reports) >= MOST_REPORTS:
            yield from self._complete(next(iter(self._reports)))
        self._reports[report] = [record]

    def _complete(self, report: str | None) -> Iterator[Record]:
        if lines := self._reports.pop(report, None):
            said = [_LINE.sub(r"\g<said>", line.text, count=1).strip() for line in lines]
            yield lines[0]._replace(text="[Hardware Error]: " + "\n".join(said))


def _is_event_alone(lines: list[Record]) -> bool:
    """Whether there is only the severity of the event, which stands in one record with its first section."""
    return len(lines) == 1 and "event severity" in lines[0].text
