"""Joins the lines that the kernel prints about one hardware error into one record.

What firmware reports (GHES at run time, BERT after a boot) takes a line for each field: severity, kind of section and
device stand in lines of their own, and only together they say what has failed. A machine check has its status in the
first line and the vendor of the processor in the last. All other records pass unchanged, also between such lines.

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

_LINE = re.compile(r"(?P<report>\{\d+\})?(?:mce: )?\[Hardware Error\]: (?P<said>.*)", re.DOTALL)
_EVENT = re.compile(r"event severity: ")
_SECTION = re.compile(r"\s*Error \d+, type: ")
_MACHINE_CHECK = re.compile(r"CPU \d+: Machine Check: ")
_LAST_OF_MACHINE_CHECK = re.compile(r"PROCESSOR ")


class HardwareRecords:
    """The lines of a hardware error until its last one is known."""

    def __init__(self) -> None:
        self._report: str | None = None
        self._lines: list[Record] = []

    def add(self, record: Record) -> Iterator[Record]:
        """The records that are complete with this one."""
        match = _LINE.match(record.text)
        if match is None:
            yield record
            return
        report, said = match["report"], match["said"]
        if _EVENT.match(said) or _MACHINE_CHECK.match(said):
            yield from self.rest()
            self._report, self._lines = report, [record]
        elif _SECTION.match(said):
            yield from self._next_section(report, record)
        elif not self._lines or report != self._report or len(self._lines) >= MOST_LINES:
            yield record
        else:
            self._lines.append(record)
            if _LAST_OF_MACHINE_CHECK.match(said):
                yield from self.rest()

    def rest(self) -> Iterator[Record]:
        """The record of the lines so far, if there are any."""
        if self._lines:
            said = [_LINE.sub(r"\g<said>", line.text, count=1).strip() for line in self._lines]
            yield self._lines[0]._replace(text="[Hardware Error]: " + "\n".join(said))
        self._lines = []

    def _next_section(self, report: str | None, record: Record) -> Iterator[Record]:
        """Begins a section. The severity of the event stands before the first one, in the same record."""
        is_first = len(self._lines) == 1 and report == self._report and "event severity" in self._lines[0].text
        if not is_first:
            yield from self.rest()
            self._report = report
        self._lines.append(record)
