"""Parses records of the kernel's log, from /dev/kmsg and from journalctl.

The device /dev/kmsg gives `priority,sequence,microseconds,flags;text`, followed by indented lines of further keys; its
times count from the boot. `journalctl -o json` gives the same text and time, but not the sequence number.

Programs write into the kernel's log, too: test tools, containers and forwarders repeat lines of the kernel with the
head of syslog or dmesg before them, or with colours. Rules and words look for the driver at the beginning of a line, so
such heads and colours are removed: `Nov 28 11:45:32 node7 kernel: [ 12.448791] nvme nvme0: I/O 42 timeout` is read like
`nvme nvme0: I/O 42 timeout`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class Record(NamedTuple):
    """One line of the kernel's log; `at_s` are the kernel's seconds since the boot.

    `seq` has no gaps unless lines were lost, and is None when they come from the journal. `device` is the PCI address
    of the device that the kernel itself names as the subject, if any. `level` is the kernel's own severity, 0 for the
    worst and 7 for what only developers read; None if it is not known.
    """

    seq: int | None
    at_s: float
    text: str
    device: str | None = None
    level: int | None = None


_KMSG = re.compile(r"(\d{1,10}),(\d{1,20}),(\d{1,20}),[^;]*;(.*)", re.DOTALL)
_LEVEL = 0b111
"""The bits of a priority that are the level; the others are the facility."""

_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
_COLOUR = re.compile(r"\x1b\[[\d;]*[A-Za-z]")
_SECONDS = r"\[[ ]*\d+\.\d{6}\](?:\[[ ]*[CT]\d+\])?\ "
"""The time since the boot, and the thread or the CPU that speaks."""

_REPEATED_HEAD = re.compile(
    rf"""
    (?:<\d{{1,3}}>)?(?:1\ )?(?:kern\ *:\w+\ *:\ )?              # priority, version of RFC 5424, dmesg -x
    (?:
        (?:
            (?:\w{{3}}\ )?\d{{4}}-\d\d-\d\d[T\ ]\S+(?:\ [A-Z]\w+)? # ISO 8601; journalctl -o short-full
            |\S{{1,12}}\ +\d{{1,2}}\ [\d:]{{8}}(?:\.\d+)?             # RFC 3164; journalctl -o short-precise
            |\d{{10}}\.\d{{6}}                                      # journalctl -o short-unix
        )(?:\ \S+)?\ kernel(?::|\ -\ -\ -)\ (?:{_SECONDS})?
        |kernel:\ (?=\[)(?:{_SECONDS})?
        |{_SECONDS}(?:\S+\ kernel:\ )?                            # dmesg; journalctl -o short-monotonic
        |\[\w{{3}}\ \w{{3}}\ [ \d]\d\ [\d:]{{8}}\ \d{{4}}\]\         # dmesg -T
        |\[(?:\w{{3}}[ \d]\d\ \d\d:\d\d|[ ]*\+\d+\.\d{{6}})\]\        # dmesg -H
        |\d{{4}}-\d\d-\d\dT[\d:]{{8}},\d{{6}}[+-]\d\d:\d\d\         # dmesg --time-format iso
    )
    """,
    re.VERBOSE,
)
_PCI_DEVICE = "+pci:"
_KEY_OF_DEVICE = f" DEVICE={_PCI_DEVICE}"


def kmsg_records(lines: Iterable[str]) -> Iterator[Record | None]:
    """The records in lines of /dev/kmsg; None for a line that is not a record."""
    record: Record | None = None
    for line in lines:
        if line.startswith(" "):
            if record and line.startswith(_KEY_OF_DEVICE):
                record = record._replace(device=line.removeprefix(_KEY_OF_DEVICE))
            continue
        if record:
            yield record
        record = _kmsg_record(line)
        if record is None:
            yield None
    if record:
        yield record


def _kmsg_record(line: str) -> Record | None:
    match = _KMSG.fullmatch(line)
    if match is None:
        return None
    priority, seq, microseconds, text = match.groups()
    if "\\x" in text:
        text = _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), text)
    return Record(int(seq), int(microseconds) / 1e6, _kernels_own(text), level=int(priority) & _LEVEL)


def _kernels_own(text: str) -> str:
    """The text without colours, and without the head of a program that repeats a line of the kernel."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    head = _REPEATED_HEAD.match(text)
    return text[head.end() :] if head else text


def journal_records(lines: Iterable[str]) -> Iterator[Record | None]:
    """The records in lines of `journalctl -o json`; None for a line that is not a record."""
    return (_journal_record(line) for line in lines)


def _journal_record(line: str) -> Record | None:
    try:
        entry: dict[str, Any] = json.loads(line)
        text = entry["MESSAGE"]
        if isinstance(text, list):  # text that is not UTF-8 comes as numbers
            text = bytes(text).decode(errors="replace")
        microseconds = int(entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry["__MONOTONIC_TIMESTAMP"])
        device = str(entry.get("_KERNEL_DEVICE", ""))
        level = int(entry["PRIORITY"]) if "PRIORITY" in entry else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    if not isinstance(text, str):
        return None
    address = device.removeprefix(_PCI_DEVICE) if _PCI_DEVICE in device else None
    return Record(None, microseconds / 1e6, _kernels_own(text), address, level)
