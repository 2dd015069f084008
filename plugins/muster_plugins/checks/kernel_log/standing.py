"""The events of the kernel's log that still stand: a fold over its records.

Equal events are counted in one entry. An entry stands until something ends it, such as the reset that it asks for, or
until it has not been seen for the time in `StandingTimes`. After a reboot nothing stands. At most `MOST_KINDS` entries
are kept.

Example: a GPU logs an XID that asks for a reset a million times, and then its reset. The million lines are one entry
with the count 1,000,000, and the line about the reset ends it. The time is proportional to the lines, the memory to the
kinds of events.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from muster import Action, Severity
from muster_plugins.checks.kernel_log.events import EventEnd, KernelEvent, LinkStart
from muster_plugins.checks.kernel_log.hardware_records import HardwareRecords
from muster_plugins.checks.kernel_log.recognition import recognise
from muster_plugins.checks.kernel_log.record_parser import Record

MOST_KINDS = 64
"""Above this number, errors are kept before other events, and later ones before earlier ones."""

MOST_TEXT = 300
"""Characters of a line that are kept as a sample."""

LOST = KernelEvent(
    code="lost",
    summary="lines of the kernel log were overwritten before they could be read",
    severity=Severity.WARNING,
    action=Action.NONE,
    source="gaps in the kernel's sequence numbers",
)
UNREADABLE = KernelEvent(
    code="unreadable",
    summary="lines of the kernel log are not in its format",
    severity=Severity.INFO,
    action=Action.NONE,
    source="Linux, Documentation/ABI/testing/dev-kmsg",
)
CROWDED = KernelEvent(
    code="crowded",
    summary=f"more than {MOST_KINDS} kinds of events: the least recent were dropped",
    severity=Severity.WARNING,
    action=Action.NONE,
    source="muster",
)


@dataclass(slots=True)
class StandingEvent:
    """One kind of event: its count, the first and last second since the boot, and its last line.

    `recent` is about the number within the period of the event's rate: each occurrence fades away with that period as
    its time constant. Without a rate it is the count.
    """

    event: KernelEvent
    count: int
    recent: float
    first_s: float
    last_s: float
    sample: str = ""

    def recent_at(self, at_s: float) -> float:
        """The value of `recent` at `at_s`."""
        if self.event.rate is None:
            return self.recent
        return self.recent * math.exp(-max(0.0, at_s - self.last_s) / self.event.rate.per_s)

    def add(self, count: int, at_s: float, sample: str) -> None:
        """Counts further occurrences."""
        self.recent = self.recent_at(at_s) + count
        self.count += count
        self.last_s = max(self.last_s, at_s)
        self.sample = sample[:MOST_TEXT]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingTimes:
    """How many seconds errors and other events stand after they were seen last."""

    error_s: float
    other_s: float

    def hold(self, entry: StandingEvent, now_s: float) -> bool:
        """Whether the entry still stands."""
        window_s = self.error_s if entry.event.severity is Severity.ERROR else self.other_s
        if entry.event.rate:
            window_s = max(window_s, entry.event.rate.per_s)
        return now_s - entry.last_s <= window_s


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingEvents:
    """The standing events, and how far the log of this boot is read: the last sequence number and time.

    `starting` are the PCI addresses of network adapters whose link has not been up since their driver started.
    """

    boot_id: str
    seq: int | None = None
    at_s: float = -1.0
    entries: list[StandingEvent] = field(default_factory=list)
    starting: list[str] = field(default_factory=list)


def fold(
    before: StandingEvents,
    records: Iterable[Record | None],
    *,
    now_s: float,
    windows: StandingTimes,
    forgiven_s: float = -1.0,
) -> StandingEvents:
    """The events that stand after `records`. Records that were read before are skipped.

    `now_s` is the time since the boot, which no record is later than. Events up to `forgiven_s` do not count.
    """
    entries = {entry.event: replace(entry) for entry in before.entries if entry.last_s > forgiven_s}
    tally = _EventTally(entries, set(before.starting))
    hardware = HardwareRecords()
    seq, at_s = before.seq, before.at_s
    for record in records:
        if record is None:
            tally.count(UNREADABLE, now_s)
            continue
        if not _is_new(record, before):
            continue
        if record.seq is not None and seq is not None and record.seq > seq + 1:
            tally.count(LOST, min(record.at_s, now_s), times=record.seq - seq - 1)
        seq, at_s = record.seq, max(at_s, record.at_s)
        if record.at_s > forgiven_s:
            tally.take(hardware.add(record), now_s)
    tally.take(hardware.rest(), now_s)
    return StandingEvents(
        boot_id=before.boot_id,
        seq=seq,
        at_s=at_s,
        entries=[entry for entry in tally.most_relevant() if windows.hold(entry, now_s)],
        starting=sorted(tally.starting),
    )


def _is_new(record: Record, before: StandingEvents) -> bool:
    """Whether the record is new, by its sequence number, or by its time if the source has changed since."""
    if record.seq is not None and before.seq is not None:
        return record.seq > before.seq
    return record.at_s > before.at_s


class _EventTally:
    """Entries during counting; never more than twice as many as are kept."""

    def __init__(self, entries: dict[KernelEvent, StandingEvent], starting: set[str]) -> None:
        self._entries = entries
        self.starting = starting

    def take(self, records: Iterable[Record], now_s: float) -> None:
        for record in records:
            match recognise(record):
                case KernelEvent() as event:
                    self.count(self._weighed(event), min(record.at_s, now_s), sample=record.text)
                case EventEnd() as end:
                    self._end(end)
                case LinkStart(address) if len(self.starting) < MOST_KINDS:
                    self.starting.add(address)

    def _end(self, end: EventEnd) -> None:
        for event in [event for event in self._entries if end.ends(event)]:
            entry = self._entries.pop(event)
            if end.leaves:
                left = self._entry(replace(event, severity=end.leaves), entry.first_s)
                left.add(entry.count, entry.last_s, entry.sample)
        self.starting.discard(end.address or "")

    def _weighed(self, event: KernelEvent) -> KernelEvent:
        """The event; only INFO if it is a link that has never been up, as that of a port without a cable."""
        if event.link and event.address in self.starting:
            return replace(event, severity=Severity.INFO)
        return event

    def count(self, event: KernelEvent, at_s: float, *, times: int = 1, sample: str = "") -> None:
        self._entry(event, at_s).add(times, at_s, sample)
        if len(self._entries) > 2 * MOST_KINDS:
            self.most_relevant()

    def _entry(self, event: KernelEvent, at_s: float) -> StandingEvent:
        return self._entries.setdefault(event, StandingEvent(event, 0, 0.0, at_s, at_s))

    def most_relevant(self) -> list[StandingEvent]:
        """The entries to keep, in order of their first occurrence. The others are dropped and counted."""
        ranked = sorted(self._entries.values(), key=_relevance, reverse=True)
        kept, dropped = ranked[:MOST_KINDS], ranked[MOST_KINDS:]
        self._entries = {entry.event: entry for entry in sorted(kept, key=lambda entry: entry.first_s)}
        if dropped:
            self.count(CROWDED, max(entry.last_s for entry in ranked), times=len(dropped))
        return list(self._entries.values())


def _relevance(entry: StandingEvent) -> tuple[bool, bool, float]:
    return entry.event == CROWDED, entry.event.severity is Severity.ERROR, entry.last_s
